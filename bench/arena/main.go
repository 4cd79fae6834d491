// Command arena puts one service through storms and healthy days, on real sockets, behind everything that promises to
// help: nothing, naive retries, Envoy, HAProxy, nginx, grpc-go, failsafe-go, and abate with its default policies.
//
//	go run ./bench/arena                       every day and every contender, three times: more than an hour
//	go run ./bench/arena -quick                the three storms that the project's targets are about, once
//	go run ./bench/arena -days hang,bursts -contenders 'nothing,abate library'
//	go run ./bench/arena -write docs/arena.md  puts the table into the page
//
// make arena runs the first. docs/arena.md says how to read what comes out; bench/out/arena/index.html has the curves
// and is written anew after each day. What is not installed is left out, with a line that says how to get it.
//
// The service, the callers and the libraries run in this process, everybody else's programs beside it. Needs Linux.
//
// The exit status is 0 when everything that is installed took part, whatever the results, 1 when something could not, 2
// for wrong arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	passes     int
	beside     int
	repeats    int // how often a disturbed run may be repeated
	seed       uint64
	days       []day
	contenders []contender
	out        string
	write      string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without its process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opt, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "arena:", err)
		return 2
	}
	complete, err := playAll(ctx, opt, stdout, stderr)
	if ctx.Err() != nil {
		err = errors.New("interrupted; everything that was started is stopped")
	}
	if err != nil {
		fmt.Fprintln(stderr, "arena:", err)
	}
	if err != nil || !complete {
		return 1
	}
	return 0
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	var days, contenders string
	fs := flag.NewFlagSet("arena", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&opt.passes, "passes", 0, "play every day this `many` times, interleaved (default 3; 1 with -quick)")
	fs.IntVar(&opt.beside, "beside", 2*runtime.NumCPU(),
		"so `many` contenders at the same time, each with its own service")
	fs.IntVar(&opt.repeats, "repeats", 2,
		"repeat a run that was disturbed so many `times` at most; the least disturbed counts")
	fs.Uint64Var(&opt.seed, "seed", 1, "of the times at which requests come")
	fs.BoolVar(&quick, "quick", false, "only the storms hang, slow and errors, once")
	fs.StringVar(&days, "days", "", "only these, as in `hang,bursts`")
	fs.StringVar(&contenders, "contenders", "", "only these, as in `nothing,haproxy`")
	fs.StringVar(&opt.out, "out", filepath.Join("bench", "out", "arena"), "`folder` for the page with the curves")
	fs.StringVar(&opt.write, "write", "", "put the tables into this `page`, between its markers")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return opt, err
		}
		return opt, errors.New("the arguments are wrong: go run ./bench/arena -h lists them")
	}
	opt.days, opt.contenders = allDays, allContenders
	if quick {
		opt.days = slices.DeleteFunc(slices.Clone(allDays), func(d day) bool { return !d.quick })
	}
	if opt.passes == 0 {
		opt.passes = 3
		if quick {
			opt.passes = 1
		}
	}
	var err error
	if days != "" {
		if opt.days, err = pick("-days", days, allDays, func(d day) string { return d.name }); err != nil {
			return opt, err
		}
	}
	if contenders != "" {
		opt.contenders, err = pick("-contenders", contenders, allContenders, func(c contender) string { return c.name })
		if err != nil {
			return opt, err
		}
	}
	return opt, opt.check(fs.Args())
}

// pick returns those of all that a list names, in the order of all.
func pick[T any](option, list string, all []T, name func(T) string) (picked []T, err error) {
	wanted := strings.Split(list, ",")
	for i := range wanted {
		wanted[i] = strings.TrimSpace(wanted[i])
	}
	var names []string
	for _, one := range all {
		names = append(names, name(one))
		if slices.Contains(wanted, name(one)) {
			picked = append(picked, one)
		}
	}
	for _, w := range wanted {
		if !slices.Contains(names, w) {
			return nil, fmt.Errorf("%s: there is no %q, only %s", option, w, strings.Join(names, ", "))
		}
	}
	return picked, nil
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: everything is a flag", rest[0])
	case o.passes < 1:
		return fmt.Errorf("-passes %d: at least 1", o.passes)
	case o.repeats < 0:
		return fmt.Errorf("-repeats %d: at least 0", o.repeats)
	case o.beside < 1:
		return fmt.Errorf("-beside %d: at least 1", o.beside)
	}
	return nil
}

// lasts is about how long the whole takes, without repetitions.
func (o options) lasts() time.Duration {
	batches := (len(o.contenders) + o.beside - 1) / o.beside
	return time.Duration(o.passes*len(o.days)*batches) * (dayLength + patience)
}
