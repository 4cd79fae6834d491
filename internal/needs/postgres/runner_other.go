//go:build !unix

package postgres

import (
	"os/exec"
	"testing"
)

// runner is whoever runs the tests.
type runner struct{}

func runnerFor(testing.TB) runner { return runner{} }

func (runner) own(string) error { return nil }

func (runner) run(*exec.Cmd) {}
