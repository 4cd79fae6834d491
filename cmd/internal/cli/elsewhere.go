package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Full is the program that has every command and every client.
const Full = "abate-full"

// Elsewhere hands commands of this program over to another one of ours, which has what this one lacks: Why says what.
type Elsewhere struct {
	Program, To, Why string
}

// Command hands over one command and the words behind it.
func (e Elsewhere) Command(words ...string) Run {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return e.Run(ctx, append(words, args...), stdout, stderr)
	}
}

// Run hands over a command line. The other program takes the place of this one if the output is the process's own.
func (e Elsewhere) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return e.run(ctx, here(), args, stdout, stderr)
}

func (e Elsewhere) run(ctx context.Context, in places, args []string, stdout, stderr io.Writer) int {
	path, err := in.find(ctx, e.To, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %q needs %s, which %s has and this program has not: %v\n",
			e.Program, firstWords(args), e.Why, e.To, err)
		return 127
	}
	argv := append([]string{path}, args...)
	code := 0
	if stdout == os.Stdout && stderr == os.Stderr {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // from here on they are for the other program
		code, err = Become(path, argv)
	} else {
		cmd := &exec.Cmd{Path: path, Args: argv, Stdin: os.Stdin, Stdout: stdout, Stderr: stderr}
		if err = cmd.Run(); cmd.ProcessState != nil {
			code, err = cmd.ProcessState.ExitCode(), nil
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %s cannot be run: %v\n", e.Program, path, err)
		return 126
	}
	return code
}

// firstWords are the command of a command line.
func firstWords(args []string) string {
	if len(args) > 1 && args[0] == "drill" {
		return strings.Join(args[:2], " ")
	}
	return args[0]
}

// places are where the other program is looked for, before PATH and after it.
type places struct {
	beside   string // a folder
	checkout string // the repository that this program was built in, "" if it was installed
}

func here() places {
	var p places
	if self, err := os.Executable(); err == nil {
		p.beside = filepath.Dir(self)
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		p.checkout = checkoutOf(file)
	}
	return p
}

// checkoutOf returns the repository that a source file of this package belongs to, "" if it is in the module cache or
// gone.
func checkoutOf(file string) string {
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	for _, name := range []string{"go.work", filepath.Join("cmd", Full, "main.go")} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return ""
		}
	}
	return root
}

// find returns the path of the other program. In a checkout it is built, if it is not installed.
func (p places) find(ctx context.Context, name string, stderr io.Writer) (string, error) {
	if path, err := exec.LookPath(filepath.Join(p.beside, name)); p.beside != "" && err == nil {
		return path, nil
	}
	if p.checkout != "" {
		return p.build(ctx, name, stderr)
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("it is neither beside it nor in PATH: go install github.com/abate-go/abate/cmd/%s@%s",
		name, number(released))
}

// build builds the other program in the checkout.
func (p places) build(ctx context.Context, name string, stderr io.Writer) (string, error) {
	to := filepath.Join(p.checkout, ".bin", name)
	if _, err := os.Stat(to); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(stderr, "building %s from %s, for the first time this takes a minute or two\n", name, p.checkout)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", to, "./cmd/"+name)
	build.Dir = p.checkout
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/%s in %s: %w\n%s", name, p.checkout, err, strings.TrimSpace(string(said)))
	}
	return to, nil
}
