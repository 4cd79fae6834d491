package needs_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// witness is a test that notes how it was ended.
type witness struct {
	testing.TB
	skipped, failed string
}

func (w *witness) Helper()           {}
func (w *witness) Skip(args ...any)  { w.skipped = fmt.Sprint(args...); panic(w) }
func (w *witness) Fatal(args ...any) { w.failed = fmt.Sprint(args...); panic(w) }

// short runs the rest of the test with the flag -short, or without.
func short(t *testing.T, value bool) {
	t.Helper()
	was := testing.Short()
	set := func(v bool) {
		if err := flag.Set("test.short", strconv.FormatBool(v)); err != nil {
			t.Fatal(err)
		}
	}
	set(value)
	t.Cleanup(func() { set(was) })
}

func ask(w *witness, names ...string) (path string) {
	defer func() { _ = recover() }()
	return needs.Program(w, names...)
}

func TestProgramIsFoundUnderAnyOfItsNames(t *testing.T) {
	dir := t.TempDir()
	want := filepath.Join(dir, "second")
	short(t, false)
	if err := os.WriteFile(want, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	w := &witness{}
	if got := ask(w, "first", "second"); got != want || w.skipped+w.failed != "" {
		t.Errorf("found %q, want %q; skipped %q, failed %q", got, want, w.skipped, w.failed)
	}
}

func TestMissingProgramSkipsForAUserAndFailsInCI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	short(t, false)
	for ci, want := range map[string]string{"": "skip", "false": "skip", "true": "fail"} {
		t.Setenv("CI", ci)
		w := &witness{}
		ask(w, "first", "second")
		said, got := w.skipped, "skip"
		if w.failed != "" {
			said, got = w.failed, "fail"
		}
		if got != want || !strings.Contains(said, "first or second") || !strings.Contains(said, "install the package first") {
			t.Errorf("CI=%q: %s with %q, want %s", ci, got, said, want)
		}
	}
}

func TestShortStartsNoPrograms(t *testing.T) {
	t.Setenv("CI", "true")
	for name, find := range map[string]func(w *witness){
		"program": func(w *witness) { needs.Program(w, "sh") },
		"Python":  func(w *witness) { needs.Python(w, "sys") },
		"Java":    func(w *witness) { needs.Jars(w, "libnetty-java", "netty-*.jar") },
	} {
		w := &witness{}
		short(t, true)
		func() {
			defer func() { _ = recover() }()
			find(w)
		}()
		if !strings.Contains(w.skipped, "make test") || w.failed != "" {
			t.Errorf("%s: skipped %q, failed %q", name, w.skipped, w.failed)
		}
	}
}

func TestWhatFillsTheMachineWaitsUntilItIsAlone(t *testing.T) {
	alone := func() (w *witness) {
		w = new(witness)
		defer func() { _ = recover() }()
		needs.Alone(w)
		return w
	}
	t.Setenv("ABATE_ALONE", "")
	t.Setenv("CI", "true")
	if w := alone(); !strings.Contains(w.skipped, "make storms") || w.failed != "" {
		t.Errorf("skipped %q, failed %q", w.skipped, w.failed)
	}
	t.Setenv("ABATE_ALONE", "1")
	if w := alone(); w.skipped != "" || w.failed != "" {
		t.Errorf("skipped %q, failed %q", w.skipped, w.failed)
	}
}
