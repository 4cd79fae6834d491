package program

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Missing says why a program takes no part without anything being wrong.
type Missing string

func (m Missing) Error() string { return string(m) }

// Installed returns a [Missing] if the program is not in the path.
func Installed(name string) error {
	if _, err := exec.LookPath(name); err != nil {
		return Missing("not installed")
	}
	return nil
}

const abatePackage = "github.com/abate-go/abate/cmd/abate-proxy"

// BuildAbate builds the real binary at path, as a user gets it, from the workspace that the working directory belongs
// to. It returns a [Missing] if that has no proxy.
func BuildAbate(ctx context.Context, path string) error {
	out, err := Output(ctx, "go", "build", "-o", path, abatePackage)
	if err != nil {
		return fmt.Errorf("not built: %w: %s", err, FirstLine(out))
	}
	out, err = Output(ctx, path, "proxy", "-h")
	if strings.Contains(out, "there is no command") {
		return Missing("not built: this abate has no command proxy")
	}
	if err != nil {
		return fmt.Errorf("abate proxy -h: %w: %s", err, FirstLine(out))
	}
	return nil
}

// Output runs a short command to its end and returns what it wrote.
func Output(ctx context.Context, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	isolate(cmd)
	cmd.Cancel = func() error { interrupt(cmd.Process.Pid); return nil } // the go command cleans up after itself
	cmd.WaitDelay = stopLimit
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(context.Cause(ctx), err)
}

// FirstLine returns the first line of a text that is not empty.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
