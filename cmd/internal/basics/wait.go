package basics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/internal/connfail"
	"github.com/abate-go/abate/startup"
)

const waitUsage = `Usage: abate wait TARGET... [--timeout D] [--policy FILE [--service NAME]] [--quiet]
                  [-- PROGRAM [ARG...]]

Waits until all targets answer, then replaces itself by the program in the same process. So signals
and the exit code are the program's own, also for process 1 of a container. Without "--" it only
waits.

  abate wait postgres://app:secret@db/shop redis://cache --timeout 2m -- /server --port 8080

Targets are asked in parallel. The wait between two attempts grows from 100 ms to 5 s, half of it
random:

  postgres://USER:PASSWORD@HOST:PORT/DB  logs in and asks SELECT 1; PGPASSWORD and the like count
  redis://USER:PASSWORD@HOST:PORT/DB     logs in and sends PING; rediss:// does so with TLS
  kafka://HOST:PORT,HOST:PORT            asks one of the brokers for metadata; with USER:PASSWORD@
                                         and ?sasl=plain (default), scram-sha-256 or scram-sha-512
                                         it logs in; kafka+ssl:// does so with TLS, ?ca=FILE
  http://HOST:PORT/PATH                  GET gets 2xx or 3xx, which is not followed; Retry-After
                                         counts; https:// does so with TLS; uses no proxy
  mysql://HOST:PORT                      only opens a connection, which says little about the server
  tcp://HOST:PORT  unix:///PATH          opens a connection

Failures that waiting cannot fix end the wait at once: a wrong password, an unknown database, a
certificate that is not trusted. Other failures are retried: nobody listens yet, the name is not
known yet, the server is starting, too many connections. Passwords are not printed.

  --timeout D     when to give up (default 60s, or the maxElapsed of the policy)
  --policy FILE   take the back-off and the attemptTimeout from the defaults of a policy file
  --service NAME  or from this service of it
  --quiet         only report why the wait failed
  -h, --help      print this

Exit code: the program's own, 0 without one; 1 a target is not there, or the wait was interrupted;
2 wrong usage, nothing was asked; 126 the program cannot be run, 127 it does not exist: the program
is looked for before the wait.
`

// WaitCommand is "abate wait". What needs a client that this program has not is handed over to the one that has all.
func (c Clients) WaitCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	w, help, problems := c.parseWait(args)
	switch {
	case help:
		fmt.Fprint(stdout, waitUsage)
		return 0
	case c.Elsewhere != nil && slices.ContainsFunc(problems, isElsewhere):
		return c.Elsewhere(ctx, append([]string{"wait"}, args...), stdout, stderr)
	case len(problems) > 0:
		for _, p := range problems {
			for line := range strings.Lines(p.Error()) {
				fmt.Fprintf(stderr, "abate wait: %s\n", strings.TrimSpace(line))
			}
		}
		fmt.Fprintln(stderr, `"abate wait --help" explains targets and flags`)
		return waitCode(problems)
	}
	if !w.await(ctx, stderr) {
		return 1
	}
	if len(w.program) == 0 {
		return 0
	}
	return w.become(ctx, stderr)
}

func isElsewhere(err error) bool {
	var e elsewhere
	return errors.As(err, &e)
}

// noProgram is a program that cannot be run: code is what a shell would return.
type noProgram struct {
	code int
	text string
}

func (e noProgram) Error() string { return e.text }

// waitCode is the exit code for what is wrong with the words: the shell's, if only the program is wrong.
func waitCode(problems []error) int {
	var program noProgram
	if len(problems) == 1 && errors.As(problems[0], &program) {
		return program.code
	}
	return 2
}

// findProgram returns the path of a program, as a shell would find it.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", noProgram{127, fmt.Sprintf("program %q is only in the current folder: write ./%s", name, name)}
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EISDIR):
		return "", noProgram{126, fmt.Sprintf("program %q cannot be run: it is a folder, or not executable (chmod +x)", name)}
	case strings.ContainsRune(name, os.PathSeparator):
		return "", noProgram{127, fmt.Sprintf("program %q does not exist", name)}
	}
	return "", noProgram{127, fmt.Sprintf("program %q is in no folder of PATH (%s)", name, os.Getenv("PATH"))}
}

// await waits for all targets, and reports whether all are there.
func (w *waiting) await(ctx context.Context, stderr io.Writer) bool {
	all, cancel := context.WithCancel(startup.ContextWithLogger(ctx, slog.New(slog.DiscardHandler)))
	defer cancel()
	say := &waitTeller{out: stderr, quiet: w.quiet}
	errs := make([]error, len(w.targets))
	var group sync.WaitGroup
	for i := range w.targets {
		group.Go(func() {
			errs[i] = w.targets[i].await(all, w.policy, say)
			if errs[i] != nil && !errors.Is(errs[i], startup.ErrGaveUp) {
				cancel() // all have to be there, and this one will not be
			}
		})
	}
	group.Wait()
	there := true
	for i, err := range errs {
		if err != nil {
			there = false
			say.missing(&w.targets[i], err)
		}
	}
	if ctx.Err() != nil {
		say.line("interrupted")
		return false
	}
	return there
}

func (t *waitTarget) await(ctx context.Context, p abate.Policy, say *waitTeller) error {
	p.Classify = connfail.Classify
	p.Observer = say.observer(t)
	_, err := startup.Connect(ctx, t.shown, p, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, t.probe(ctx)
	})
	return err
}

// become replaces this process by the program. It returns only if that cannot be done.
func (w *waiting) become(ctx context.Context, stderr io.Writer) int {
	signal.Reset(os.Interrupt, syscall.SIGTERM) // from here on they are for the program
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "abate wait: interrupted")
		return 1
	}
	code, err := cli.Become(w.path, w.program)
	if err != nil {
		fmt.Fprintf(stderr, "abate wait: program %q cannot be run: %v%s\n", w.program[0], err, runHint(err))
		if errors.Is(err, os.ErrNotExist) {
			return 127
		}
		return 126
	}
	return code
}

// runHint says what to do about an error of the operating system that few can read.
func runHint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return "; it is made for another machine, or a script without a first line like #!/bin/sh"
	case errors.Is(err, os.ErrNotExist):
		return "; the interpreter in its first line, or its loader, is not in this image"
	}
	return ""
}
