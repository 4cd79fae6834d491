// Command proxies measures HTTP proxies side by side on the loopback interface, in one run, interleaved, and compares
// abate's with what the project promises:
//
//	go run ./bench/proxies                  CPU per request and gRPC call, requests per second, latency, memory
//	go run ./bench/proxies -grpc            the gRPC part of it only
//	go run ./bench/proxies -chats 10000     so many gRPC streams open for a minute: is a message lost? Memory of each
//	go run ./bench/proxies -idle 10000      memory of each idle keep-alive connection
//	go run ./bench/proxies -stream 10GiB    one long answer: throughput, and memory while it flows
//	go run ./bench/proxies -quick           does everything work? One short pass
//
// make proxies runs the first and the third.
//
// The measured proxies are programs of their own: nginx, HAProxy, Envoy, abate as it is built from this workspace, and
// two in Go that this command runs itself (httputil.ReverseProxy, fasthttp on both sides). Everybody gets two
// processors, 32 KB copy buffers where they can be chosen, connections to the upstream kept open, and no access log.
// gRPC is HTTP/2 without TLS on both sides, from a client of this command's own to a grpc-go server.
//
// Compare CPU seconds per request: everything shares one machine, so requests per second also pay for the load
// generator and the upstream. What other programs used meanwhile is printed beside the results; a run they disturbed
// is repeated. Needs Linux: processor time and memory are read from /proc.
//
// The exit status is 0 when everything that is installed could be measured, whatever the verdicts, 1 when something
// could not, 2 for wrong arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	passes   int
	duration time.Duration
	warmUp   time.Duration
	idle     int
	stream   byteSize
	grpc     bool
	chats    int
	chatTime time.Duration
	targets  []string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveWord {
		fmt.Fprintln(os.Stderr, "proxies:", serve(os.Args[2:]))
		os.Exit(1)
	}
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
		fmt.Fprintln(stderr, "proxies:", err)
		return 2
	}
	complete, err := measureAll(ctx, opt, stdout, stderr)
	if ctx.Err() != nil {
		err = errors.New("interrupted; everything that was started is stopped")
	}
	if err != nil {
		fmt.Fprintln(stderr, "proxies:", err)
	}
	if err != nil || !complete {
		return 1
	}
	return 0
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	var only string
	fs := flag.NewFlagSet("proxies", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&opt.passes, "passes", 3, "measure every target this `many` times, interleaved")
	fs.DurationVar(&opt.duration, "duration", 5*time.Second, "length of one measured run, in whole seconds")
	fs.IntVar(&opt.idle, "idle", 0, "measure the memory of `N` idle connections instead of load")
	fs.Var(&opt.stream, "stream", "stream a body of this `size` (as in 64MiB, 10GiB) instead of load")
	fs.BoolVar(&opt.grpc, "grpc", false, "measure gRPC calls only")
	fs.IntVar(&opt.chats, "chats", 0, "keep `N` gRPC streams open instead of load, once through each target")
	fs.DurationVar(&opt.chatTime, "chattime", time.Minute, "how long the streams of -chats are open")
	fs.StringVar(&only, "targets", "", "only these, as in `direct,nginx,abate`")
	fs.BoolVar(&quick, "quick", false, "one pass of one second each: a test of this command, not a measurement")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return opt, err
		}
		return opt, errors.New("the arguments are wrong: go run ./bench/proxies -h lists them")
	}
	opt.warmUp = time.Second
	if quick {
		opt.passes, opt.duration, opt.chatTime = 1, time.Second, min(opt.chatTime, 2*time.Second)
	}
	if only != "" {
		opt.targets = strings.Split(only, ",")
	}
	return opt, opt.check(fs.Args())
}

func (o options) check(rest []string) error {
	for _, name := range o.targets {
		if !slices.ContainsFunc(allTargets, func(t target) bool { return t.name == name }) {
			return fmt.Errorf("-targets: there is no target %q, only %s", name, targetNames())
		}
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: everything is a flag", rest[0])
	case o.passes < 1:
		return fmt.Errorf("-passes %d: at least 1", o.passes)
	case o.duration < time.Second || o.duration%time.Second != 0:
		return fmt.Errorf("-duration %v: whole seconds, at least 1s (wrk knows no others)", o.duration)
	case o.idle < 0:
		return fmt.Errorf("-idle %d: at least 1", o.idle)
	case o.chats < 0:
		return fmt.Errorf("-chats %d: at least 1", o.chats)
	case o.chatTime < time.Second:
		return fmt.Errorf("-chattime %v: at least 1s", o.chatTime)
	}
	return nil
}

// measureAll measures in every mode that was asked for, and prints. complete reports whether nothing failed.
func measureAll(ctx context.Context, opt options, stdout, stderr io.Writer) (complete bool, err error) {
	l, err := newLab(ctx, opt, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.prepare(); err != nil {
		return false, err
	}
	complete = true
	for _, m := range modes(opt) {
		rows, err := l.measure(m)
		if err != nil {
			return false, err
		}
		if err := report(stdout, l.describe(m), m, rows); err != nil {
			return false, err
		}
		complete = complete && !slices.ContainsFunc(rows, func(r row) bool { return r.err != nil })
	}
	return complete, nil
}

// modes are the measurements asked for: load of both kinds unless another is.
func modes(opt options) []mode {
	var all []mode
	if opt.idle > 0 {
		all = append(all, idleMode(opt.idle))
	}
	if opt.stream > 0 {
		all = append(all, streamMode(opt.stream))
	}
	if opt.chats > 0 {
		all = append(all, chatMode(opt.chats, opt.chatTime))
	}
	load := all == nil && !opt.grpc
	if load {
		for _, s := range shapes {
			all = append(all, shapeMode(opt, s))
		}
	}
	if load || opt.grpc {
		for _, u := range unaryShapes {
			all = append(all, unaryMode(opt, u))
		}
	}
	return all
}
