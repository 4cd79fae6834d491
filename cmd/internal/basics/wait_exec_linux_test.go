package basics

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
)

// waitProcess starts "abate wait" in a process of its own. It is killed at the end of the test.
func waitProcess(t *testing.T, args ...string) (cmd *exec.Cmd, out *bufio.Reader, stderr *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(built(t), append([]string{"wait"}, args...)...)
	cmd.Env = append(cmd.Environ(), "ABATE_WAIT_TEST=from outside")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(stdout), bufio.NewReader(errs)
}

// endOf is the exit code of a process whose output has been read to its end.
func endOf(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	_ = cmd.Wait() // told by its exit code
	return cmd.ProcessState.ExitCode()
}

func TestWaitBecomesTheProgram(t *testing.T) {
	if testing.Short() {
		return // the command has to be built
	}
	there := clitest.OnLoopback(t)
	cmd, out, _ := waitProcess(t, "tcp://"+there.Addr().String(), "--quiet", "--", "sh", "-c",
		`echo "$$|$ABATE_WAIT_TEST|$0|$1"; exit 7`, "name", "--help")
	text, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d|from outside|name|--help\n", cmd.Process.Pid)
	if code := endOf(t, cmd); code != 7 || string(text) != want {
		t.Errorf("exit code %d, want 7\n got %q\nwant %q", code, text, want)
	}
}

// The program has the open files, and the signals that are blocked or ignored, that it would have had without the wait.
func TestWaitLeavesNothingOfItsOwnToTheProgram(t *testing.T) {
	if testing.Short() {
		return // the command has to be built
	}
	there := clitest.OnLoopback(t)
	for _, program := range [][]string{
		{"ls", "/proc/self/fd"}, {"grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"}, {"sh", "-c", "ulimit -n"},
	} {
		direct := exec.Command(program[0], program[1:]...)
		want, err := direct.Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd, out, _ := waitProcess(t, append([]string{"tcp://" + there.Addr().String(), "--quiet", "--"}, program...)...)
		got, err := io.ReadAll(out)
		if code := endOf(t, cmd); code != 0 || err != nil || string(got) != string(want) {
			t.Errorf("%q: exit code %d, %v\n got %q\nwant %q", program, code, err, got, want)
		}
	}
}

func TestSignalsReachTheProgramThatWaitHasBecome(t *testing.T) {
	if testing.Short() {
		return // the command has to be built
	}
	there := clitest.OnLoopback(t)
	cmd, out, _ := waitProcess(t, "tcp://"+there.Addr().String(), "--", "sh", "-c",
		`trap 'exit 42' TERM; echo trapped; for i in $(seq 1000); do sleep 0.05; done`)
	if line, err := out.ReadString('\n'); line != "trapped\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := endOf(t, cmd); code != 42 {
		t.Errorf("exit code %d, want 42", code)
	}
}

func TestSignalsEndTheWait(t *testing.T) {
	if testing.Short() {
		return // the command has to be built
	}
	address, _ := later(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, _, stderr := waitProcess(t, "tcp://"+address, "--timeout", "1h", "--", "true")
		if line, err := stderr.ReadString('\n'); !strings.Contains(line, " is not there, attempt 1") {
			t.Fatalf("%q, %v", line, err)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(stderr)
		if code := endOf(t, cmd); code != 1 || !strings.HasSuffix(string(rest), "abate wait: interrupted\n") {
			t.Errorf("%v: exit code %d, %v\n%s", s, code, err, rest)
		}
	}
}

func TestAProgramThatCannotBeRunIs126(t *testing.T) {
	if testing.Short() {
		return // the command has to be built
	}
	there := clitest.OnLoopback(t)
	for content, want := range map[string]string{
		"no first line\n": "exec format error; it is made for another machine, or a script without a first line " +
			"like #!/bin/sh",
		"#!/no/such/interpreter\n": "no such file or directory; the interpreter in its first line, or its loader, is not " +
			"in this image",
	} {
		script := clitest.Put(t, "script", content)
		if out, err := exec.Command("chmod", "+x", script).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		cmd, _, stderr := waitProcess(t, "tcp://"+there.Addr().String(), "--quiet", "--", script)
		text, err := io.ReadAll(stderr)
		code := map[bool]int{true: 127, false: 126}[strings.HasPrefix(content, "#!")]
		if got := endOf(t, cmd); got != code || !strings.Contains(string(text), want) {
			t.Errorf("exit code %d, want %d, %v\n%s", got, code, err, text)
		}
	}
}
