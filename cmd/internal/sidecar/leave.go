package sidecar

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
)

const leaveUsage = `Usage: abate leave [--for D] [--pid N]

Has the proxy that runs here ask its clients to go elsewhere, and waits. It is what to do before the
proxy, or the service behind its gates, gets SIGTERM: as preStop in Kubernetes, in images that have
no shell, or as ExecStop of systemd. No request is lost that way; a proxy that is only told to end
closes connections on which a request may be under way.

The proxy goes on serving, new connections too. /readyz says 503, answers over HTTP/1.1 say
"Connection: close", and HTTP/2 gets GOAWAY. That holds for a gateway, and for the services that
protect lists; calls that go out of a sidecar go on as before. It cannot be taken back.

  --for D       how long to wait (default 0s): until the last of those who send requests has heard
                that this one is going
  --pid N       the proxy's process (default: the one there is of this program; process 1 first)
  -h, --help    print this

Exit code: 0 the proxy leaves, 1 it could not be told (after waiting all the same), 2 wrong usage.
`

// LeaveCommand is "abate leave".
func LeaveCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("leave", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	wait, pid := flags.Duration("for", 0, ""), flags.Int("pid", 0, "")
	words, err := cli.ParseAll(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, leaveUsage)
		return 0
	case err == nil && len(words) > 0:
		err = fmt.Errorf("%q is not a flag", words[0])
	case err == nil && (*wait < 0 || *wait > 24*time.Hour):
		err = fmt.Errorf("--for %v is out of range: write 0s to 24h", *wait)
	case err == nil && *pid < 0:
		err = fmt.Errorf("--pid %d is out of range: write the number of a process", *pid)
	}
	if err != nil {
		fmt.Fprintf(stderr, "abate leave: %v\n\n%s", err, leaveUsage)
		return 2
	}
	code := 0
	if err := askToLeave(*pid); err != nil {
		fmt.Fprintf(stderr, "abate leave: %v\n", err)
		code = 1
	}
	// Whether it could be told or not: what follows is SIGTERM, and that must not come earlier.
	over := time.NewTimer(*wait)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
	return code
}

// askToLeave sends the signal to a process; 0 looks for it.
func askToLeave(pid int) error {
	if len(leaveSignals) == 0 {
		return errors.New("this system has no signals for that")
	}
	if pid == 0 {
		found, err := findProxy("/proc")
		if err != nil {
			return err
		}
		pid = found
	} else if _, err := os.Stat("/proc/self"); err == nil && !isOurs("/proc", pid) { // another program would end by it
		return fmt.Errorf("process %d is not this program", pid)
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(leaveSignals[0])
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}

// findProxy looks for the proxy among the processes: in a container it is the first one, unless the pod's containers
// share their processes.
func findProxy(proc string) (int, error) {
	if isProxy(proc, 1) {
		return 1, nil
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, fmt.Errorf("looking for the proxy: %w; name its process with --pid", err)
	}
	var found []string
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && isProxy(proc, pid) {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 0:
		return 0, errors.New("no proxy runs here that this user may signal; name its process with --pid")
	case 1:
		return strconv.Atoi(found[0])
	}
	slices.Sort(found)
	return 0, fmt.Errorf("several proxies run here, %s: name one with --pid", strings.Join(found, ", "))
}

// isProxy reports whether a process is this program, started to be a proxy.
func isProxy(proc string, pid int) bool {
	words := commandOf(proc, pid)
	return len(words) > 1 && (words[1] == "proxy" || strings.HasPrefix(words[1], "-")) && isOurs(proc, pid)
}

func commandOf(proc string, pid int) []string {
	line, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// isOurs reports whether a process runs this program, or one of its name. Of a process whose file may not be seen, what
// it was called with counts.
func isOurs(proc string, pid int) bool {
	own, err := os.Executable()
	if err != nil {
		return false
	}
	exe := filepath.Join(proc, strconv.Itoa(pid), "exe")
	name, err := os.Readlink(exe)
	if err != nil {
		name = commandOf(proc, pid)[0]
	}
	a, errA := os.Stat(exe)
	b, errB := os.Stat(own)
	return errA == nil && errB == nil && os.SameFile(a, b) ||
		filepath.Base(strings.TrimSuffix(name, " (deleted)")) == filepath.Base(own)
}
