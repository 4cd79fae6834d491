package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Run carries out a command. It returns the exit code: 0 yes, 1 no; the command's help says what else there is.
type Run func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Command is one word behind the name of a program.
type Command struct {
	Name, Summary string
	Run           Run
}

// Program is one of our programs.
type Program struct {
	Name, Intro string
	Commands    []Command
	Default     Run // what flags without a command are for; nil for nothing
}

// Main runs the program with the words of the process, and ends the process.
func (p *Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run runs the program with these words, and returns its exit code.
func (p *Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		p.usage(stderr)
		return 2
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		p.usage(stdout)
		return 0
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, p.Name, Version())
		return 0
	}
	for _, c := range p.Commands {
		if c.Name == args[0] {
			return c.Run(ctx, args[1:], stdout, stderr)
		}
	}
	if p.Default != nil && args[0] != "" && args[0][0] == '-' {
		return p.Default(ctx, args, stdout, stderr)
	}
	fmt.Fprintf(stderr, "%s: there is no command %q\n\n", p.Name, args[0])
	p.usage(stderr)
	return 2
}

func (p *Program) usage(w io.Writer) {
	fmt.Fprintf(w, "%s\n\nUsage: %s COMMAND [FLAGS] [ARGS]\n\n", p.Intro, p.Name)
	for _, c := range p.Commands {
		fmt.Fprintf(w, "  %-8s %s\n", c.Name, c.Summary)
	}
	fmt.Fprintf(w, "  %-8s %s\n", "version", "print the version, the commit and the date of this program")
	fmt.Fprintf(w, "\n\"%s COMMAND -h\" explains a command.\n", p.Name)
}
