package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestAProgramRunsTheCommandThatIsNamed(t *testing.T) {
	answer := func(code int) Run { return func(context.Context, []string, io.Writer, io.Writer) int { return code } }
	p := &Program{Name: "abate", Intro: "What it is.", Default: answer(13), Commands: []Command{
		{"one", "the first", answer(11)}, {"two", "the second", answer(12)}}}
	for _, c := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"one -x", 11, "", ""},
		{"two", 12, "", ""},
		{"-c policy.yaml", 13, "", ""},
		{"", 2, "", "Usage: abate COMMAND"},
		{"three", 2, "", `there is no command "three"`},
		{"help", 0, "the second", ""},
		{"-h", 0, "What it is.", ""},
		{"version", 0, "abate ", ""},
		{"--version", 0, "abate ", ""},
	} {
		var out, errs bytes.Buffer
		code := p.Run(t.Context(), strings.Fields(c.args), &out, &errs)
		said := strings.Contains(out.String(), c.stdout) && strings.Contains(errs.String(), c.stderr)
		if code != c.code || !said || (c.stderr == "") != (errs.Len() == 0) {
			t.Errorf("%q: exit code %d, want %d\n%s%s", c.args, code, c.code, &out, &errs)
		}
	}
}

func TestVersionIsTheReleasesOrElseTheCheckouts(t *testing.T) {
	checkout := func(settings ...string) func() (*debug.BuildInfo, bool) {
		info := &debug.BuildInfo{}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return func() (*debug.BuildInfo, bool) { return info, true }
	}
	for _, c := range []struct {
		released string
		read     func() (*debug.BuildInfo, bool)
		want     string
	}{
		{"v0.2.0 0123abc 2026-01-31T10:20:30Z\n", checkout("vcs.revision", "feed"),
			"v0.2.0, commit 0123abc of 2026-01-31T10:20:30Z,"},
		{"", checkout("vcs.revision", "feed", "vcs.time", "2026-01-31T10:20:30Z", "vcs.modified", "false"),
			"devel, commit feed of 2026-01-31T10:20:30Z,"},
		{"", checkout("vcs.revision", "feed", "vcs.time", "2026-01-31T10:20:30Z", "vcs.modified", "true"),
			"devel, commit feed of 2026-01-31T10:20:30Z with changes,"},
		{"", checkout(), "devel, built without its commit,"},
		{"", func() (*debug.BuildInfo, bool) { return nil, false }, "devel, built without its commit,"},
	} {
		if got := versionOf(c.released, c.read); got != c.want {
			t.Errorf("%q: %q, want %q", c.released, got, c.want)
		}
	}
}

func TestACheckoutSaysThatItIsNoRelease(t *testing.T) {
	if released != "" {
		t.Errorf("released.txt has %q; only a release writes it", released)
	}
}

// script puts a program that says how it was called, and ends with 7, into a folder.
func script(t *testing.T, folder string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, Full), []byte("#!/bin/sh\necho \"$@\"\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestTheOtherProgramIsLookedForBesideThisOneAndInPATH(t *testing.T) {
	beside, path, neither := t.TempDir(), t.TempDir(), t.TempDir()
	script(t, beside)
	script(t, path)
	for _, c := range []struct {
		beside, path, want string
	}{
		{beside, path, filepath.Join(beside, Full)},
		{neither, path, filepath.Join(path, Full)},
		{neither, neither, ""},
	} {
		t.Setenv("PATH", c.path)
		got, err := places{beside: c.beside}.find(t.Context(), Full, io.Discard)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "go install github.com/abate-go/abate/cmd/abate-full@latest") {
			t.Errorf("the error does not say what to do: %v", err)
		}
	}
}

func TestACommandIsHandedOverWithItsWordsAndItsExitCode(t *testing.T) {
	folder := t.TempDir()
	script(t, folder)
	var out, errs bytes.Buffer
	e := Elsewhere{Program: "abate", To: Full, Why: "a Kafka client"}
	in := places{beside: folder}
	code := e.run(t.Context(), in, []string{"dlq", "ls", "--topic", "x"}, &out, &errs)
	if code != 7 || out.String() != "dlq ls --topic x\n" || errs.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, &out, &errs)
	}
	t.Setenv("PATH", t.TempDir())
	in.beside = t.TempDir()
	const want = `abate: "drill kafka" needs a Kafka client, which abate-full has`
	code = e.run(t.Context(), in, []string{"drill", "kafka", "--json"}, &out, &errs)
	if code != 127 || !strings.HasPrefix(errs.String(), want) {
		t.Errorf("exit code %d, %q", code, &errs)
	}
}

func TestACheckoutIsKnownByItsWorkspaceAndThePrograms(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "cmd", "internal", "cli", "elsewhere.go")
	if got := checkoutOf(file); got != "" {
		t.Errorf("an empty folder: %q", got)
	}
	if err := os.MkdirAll(filepath.Join(root, "cmd", Full), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.work", filepath.Join("cmd", Full, "main.go")} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := checkoutOf(file); got != root {
		t.Errorf("%q, want %q", got, root)
	}
	if here().checkout == "" {
		t.Error("this test runs in a checkout, and it was not found")
	}
}
