package program_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/bench/program"
)

func TestProcessThatEndsOrDoesNotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	p, err := program.Start(dir, "actor", 1, []string{"sh", "-c", "echo there is no part hamlet; exit 1"})
	if err != nil {
		t.Fatal(err)
	}
	silent := func(context.Context, string) error { return errors.New("nobody answers") }
	if err := p.Await(t.Context(), "127.0.0.1:1", silent); err == nil ||
		!strings.Contains(err.Error(), "there is no part hamlet") {
		t.Errorf("awaiting: %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
	if _, err := program.Start(dir, "none", 1, []string{filepath.Join(dir, "none")}); err == nil ||
		!strings.Contains(err.Error(), "does not start") {
		t.Errorf("starting what is not there: %v", err)
	}
}

func TestEnvironmentTunesNobody(t *testing.T) {
	t.Setenv("GOGC", "off")
	t.Setenv("GOMAXPROCS", "7")
	t.Setenv("HARMLESS", "yes")
	p, err := program.Start(t.TempDir(), "env", 2, []string{"env"})
	if err != nil {
		t.Fatal(err)
	}
	silent := func(context.Context, string) error { return errors.New("nobody answers") }
	_ = p.Await(t.Context(), "127.0.0.1:1", silent) // until it has ended
	env := p.LastWords(1 << 20)
	if !strings.Contains(env, "GOMAXPROCS=2") || strings.Contains(env, "GOMAXPROCS=7") ||
		strings.Contains(env, "GOGC") || !strings.Contains(env, "HARMLESS=yes") {
		t.Error(env)
	}
}

func TestAProgramThatIsNotInstalledIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := program.Installed("nginx"); !errors.As(err, new(program.Missing)) {
		t.Errorf("%v", err)
	}
}
