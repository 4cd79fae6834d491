package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary run the parts of this command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveWord {
		fmt.Fprintln(os.Stderr, serve(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// watched calls told at the first write.
type watched struct {
	strings.Builder
	told func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.told()
	return w.Builder.Write(p)
}

// command runs the whole command, and sees that it leaves neither files nor processes.
func command(t *testing.T, ctx context.Context, told func(), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var out strings.Builder
	progress := &watched{told: told}
	code = run(ctx, args, &out, progress)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	all, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	if tree := all.tree(os.Getpid()); len(tree) != 1 {
		t.Errorf("%d processes left", len(tree)-1)
	}
	return code, out.String(), progress.String()
}

func TestStreamsThroughProxiesAndLeavesNothing(t *testing.T) {
	code, stdout, stderr := command(t, t.Context(), func() {}, "-stream", "1MiB", "-passes", "2", "-targets",
		"direct,httputil,fasthttp")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		"\ndirect ", "\nhttputil ", "not measured", "upstream: net/http, one answer of 1048576 bytes", "passes: 2",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\n"+fast) {
		t.Errorf("fasthttp took part:\n%s", stdout)
	}
}

func TestStreamsThroughAbateLoseNoMessage(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	code, stdout, stderr := command(t, t.Context(), func() {}, "-chats", "200", "-chattime", "2s", "-targets",
		"httputil,abate")
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, want := range []string{
		"\nhttputil ", "\nabate ", "\nmessages lost on streams  0 ", "\nstreams that broke        0 ", "passes: 1",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("lacks %q:\n%s%s", want, stdout, stderr)
		}
	}
}

func TestInterruptedItLeavesNothing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	code, stdout, stderr := command(t, ctx, interrupt, "-stream", "64MiB", "-targets", "direct,httputil")
	if code != 1 || stdout != "" || !strings.HasSuffix(stderr, "interrupted; everything that was started is stopped\n") {
		t.Errorf("exit code %d, printed %q and %q", code, stdout, stderr)
	}
}

func TestMissingProgramIsNoFailureButAFailureIs(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, stdout, stderr := command(t, t.Context(), func() {}, "-stream", "1MiB", "-passes", "1", "-targets",
		"nginx,httputil")
	if code != 0 || !strings.Contains(stdout, "\nnginx: not installed\n") {
		t.Errorf("without nginx: exit code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, t.Context(), func() {}, "-stream", "1MiB", "-passes", "1", "-targets",
		"abate,httputil")
	if code != 1 || !strings.Contains(stdout, "\nabate: could not be measured: not built: ") {
		t.Errorf("without go: exit code %d, %s%s", code, stdout, stderr)
	}
}
