package launch_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/abate-go/abate/cmd/internal/clitest"
)

// terminal opens a pseudo terminal: what is written to the keyboard is typed there.
func terminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	var unlocked, number int32
	for request, at := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, keyboard.Fd(), request, uintptr(unsafe.Pointer(at)))
		if errno != 0 {
			t.Fatal(errno)
		}
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return keyboard, tty
}

// A terminal that is closed tells whoever leads its session, and when that is a shell, which ends by it, the group in
// front. The program hears of it either way, and its exit code is passed on.
func TestProgramHearsThatTheTerminalIsClosed(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // else those that are started may be told to ignore it, as this process was
	t.Cleanup(func() { signal.Stop(heard) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	policy := policyFor(t, "http://192.0.2.1")
	const program = `trap "echo hup; exit 7" HUP; echo ready; while :; do sleep 0.05; done`
	for _, shell := range []string{"", `"$0" "$@"; true`} {
		keyboard, tty := terminal(t)
		var out, errs clitest.Buffer
		cmd := exec.CommandContext(t.Context(), self, "-c", policy, "--", "sh", "-c", program)
		if shell != "" {
			cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", shell}, cmd.Args...)
		}
		cmd.Env = append(os.Environ(), commandWay+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, &out, &errs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tty.Close()
		clitest.Eventually(t, "the program is ready", func() bool { return strings.Contains(out.String(), "ready") })
		keyboard.Close()
		clitest.Eventually(t, "the end of the command", func() bool {
			return strings.Contains(errs.String(), "no call went through")
		})
		_ = cmd.Wait() // the code says all
		if code := cmd.ProcessState.ExitCode(); !strings.Contains(out.String(), "hup") || shell == "" && code != 7 {
			t.Errorf("shell %q: code %d: %s%s", shell, code, out.String(), errs.String())
		}
	}
}

// What nohup(1) says of the command holds for the program too.
func TestProgramIgnoresTheEndOfTheTerminalIfTheCommandDoes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs clitest.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP; exec "$0" "$@"`, self, "-c",
		policyFor(t, "http://192.0.2.1"), "--", "sh", "-c", "kill -HUP $PPID; kill -HUP $$; echo still; exit 3")
	cmd.Env = append(os.Environ(), commandWay+"=1")
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the code says all
	if code := cmd.ProcessState.ExitCode(); code != 3 || out.String() != "still\n" {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
}

// The proxy does not end before the program because nobody reads any more what it says.
func TestNobodyHasToReadWhatTheCommandSays(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reads, errs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reads.Close()
	var out clitest.Buffer
	cmd := exec.CommandContext(t.Context(), self, "-c", policyFor(t, "http://192.0.2.1"), "--", "sh", "-c",
		"echo here; exit 4")
	cmd.Env = append(os.Environ(), commandWay+"=1")
	cmd.Stdout, cmd.Stderr = &out, errs
	_ = cmd.Run() // the code says all
	errs.Close()
	if code := cmd.ProcessState.ExitCode(); code != 4 || out.String() != "here\n" {
		t.Errorf("code %d: %s", code, out.String())
	}
}

// A shell with jobs runs the command on a terminal, with standard input from elsewhere. What is typed, and what the
// shell does with its job, must do what they do to the program alone.
func TestProgramHasTheTerminalAlsoWhereStandardInputIsAPipe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const command = "export " + commandWay + `=1; "$0" "$@" <&3`
	const reads = `echo ready; read line </dev/tty; echo "got $line"`
	for name, c := range map[string]struct {
		shell, program string
		steps          []string // what is waited for, and then typed
		want           string
	}{
		"keyboard": {command + "; echo code $?", reads, []string{"ready", "hello\n"}, "got hello\ncode 0"},
		"Ctrl-C": {command + "; echo code $?", `trap "echo int; exit 3" INT; echo ready; read line </dev/tty`,
			[]string{"ready", "\x03"}, "int\ncode 3"},
		"Ctrl-Z and fg": {command + "; echo stopped; fg >/dev/null; echo code $?", reads,
			[]string{"ready", "\x1a", "stopped", "hello\n"}, "got hello\ncode 0"},
		"background and fg": {command + " & fg >/dev/null; echo code $?", reads, []string{"ready", "hello\n"},
			"got hello\ncode 0"},
		"interrupted in the background": {command + " & read x </dev/tty; kill -INT $!; wait $!; echo code $?",
			`trap "exit 3" INT; echo set; while :; do sleep 0.05; done`, []string{"set", "\n"}, "code 3"},
	} {
		keyboard, tty := terminal(t)
		nothing, end, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var out, errs clitest.Buffer
		cmd := exec.CommandContext(t.Context(), "sh", "-mc", c.shell, self, "-c",
			policyFor(t, "http://192.0.2.1"), "--", "sh", "-c", c.program)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = tty, &out, &errs, []*os.File{nothing}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		nothing.Close()
		for i := 0; i < len(c.steps); i += 2 {
			clitest.Eventually(t, name+": "+c.steps[i], func() bool { return strings.Contains(out.String(), c.steps[i]) })
			_, _ = keyboard.WriteString(c.steps[i+1]) // else the next step does not come
		}
		clitest.Eventually(t, name+": "+c.want, func() bool { return strings.Contains(out.String(), c.want) })
		_ = cmd.Wait() // its output says all
		end.Close()
	}
}
