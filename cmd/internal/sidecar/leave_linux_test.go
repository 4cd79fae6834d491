package sidecar

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLeaveSignalsNoOtherProgram: it would end by that. SIGTERM follows, so the wait is waited all the same.
func TestLeaveSignalsNoOtherProgram(t *testing.T) {
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	const wait = 20 * time.Millisecond
	pid, began := strconv.Itoa(other.Process.Pid), time.Now()
	code, _, stderr := runLeave(t, "--pid", pid, "--for", wait.String())
	if code != 1 || !strings.Contains(stderr, "abate leave: process "+pid+" is not this program") {
		t.Errorf("%d %q", code, stderr)
	}
	if time.Since(began) < wait {
		t.Error("it has not waited")
	}
	in.Close()
	if err := other.Wait(); err != nil {
		t.Errorf("the other program: %v", err)
	}
}
