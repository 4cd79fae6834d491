package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/abate-go/abate/bench/program"
	"github.com/abate-go/abate/internal/loopback"
)

// A run counts as disturbed when other programs kept more than this many processors busy.
const quietEnough = 0.25

// lab is what all measurements of one command share.
type lab struct {
	ctx   context.Context
	opt   options
	log   io.Writer // progress, for the person waiting
	dir   string    // temporary
	files int       // how many files may be open
	wrk   string    // its path, empty when it is not installed
	abate string    // the built binary

	targets  []target
	absent   map[string]error // targets that cannot be started, and why
	upstream string           // what answers, in words
}

// newLab makes the temporary folder; close removes it.
func newLab(ctx context.Context, opt options, log io.Writer) (*lab, error) {
	if !program.Supported {
		return nil, errors.New("processor time and memory are read from /proc, so this needs Linux")
	}
	l := &lab{ctx: ctx, opt: opt, log: log, absent: make(map[string]error)}
	var err error
	if l.files, err = program.RaiseFileLimit(); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "abate-proxies-"); err != nil {
		return nil, err
	}
	// The workers of an nginx started as root are nobody, and pass through here to their own folders.
	return l, os.Chmod(l.dir, 0o755)
}

func (l *lab) close() error { return os.RemoveAll(l.dir) }

// prepare finds out which targets there are, and builds abate.
func (l *lab) prepare() error {
	l.wrk, _ = exec.LookPath("wrk")
	for _, t := range allTargets {
		if len(l.opt.targets) > 0 && !slices.Contains(l.opt.targets, t.name) {
			continue
		}
		l.targets = append(l.targets, t)
		if err := l.available(t); err != nil {
			l.absent[t.name] = err
			l.say("%s: %v", t.name, err)
		}
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
	}
	return nil
}

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.log, format+"\n", args...) }

// mode is one kind of measurement.
type mode struct {
	title    string
	load     string   // who makes the requests; empty for the load generator
	without  []string // targets that take no part
	clients  int      // connections that may be open at once
	stream   int64    // length of the long answer, 0 for short ones
	grpc     bool     // is spoken, over HTTP/2 on both sides
	chats    int      // gRPC streams that are open at once, 0 for unary calls
	passes   int      // 0 for what the options say
	repeats  int      // how often a disturbed run may be repeated
	columns  []column
	promises []promise
	run      func(*lab, mode, started) (sample, error)
	drive    func(l *lab, addr string, duration time.Duration) (loadResult, error) // the load, where run is runLoad
}

// probe asks a target once.
func (m mode) probe() func(context.Context, string) error {
	if m.grpc {
		return probeGRPC
	}
	return probe
}

// passesOf is how often every target is measured.
func (m mode) passesOf(opt options) int {
	if m.passes > 0 {
		return m.passes
	}
	return opt.passes
}

// started is a target that runs, ready to be measured.
type started struct {
	addr     string
	proxy    *program.Process // nil when the upstream is asked directly
	upstream *program.Process
}

// pids are the proxy's and the upstream's; the proxy's is 0 when there is none.
func (s started) pids() (proxy, upstream int) {
	if s.proxy != nil {
		proxy = s.proxy.PID()
	}
	return proxy, s.upstream.PID()
}

// measured is whose memory counts: the proxy's, or the upstream's when there is none.
func (s started) measured() *program.Process {
	if s.proxy != nil {
		return s.proxy
	}
	return s.upstream
}

// measure takes all samples of a mode: pass by pass, every target in each, so that a slow minute hits all of them.
func (l *lab) measure(m mode) (rows []row, err error) {
	upstream, addr, what, err := l.startUpstream(m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, upstream.Stop()) }()
	l.upstream = what
	for _, t := range l.targets {
		r := row{target: t.name}
		if why := l.absent[t.name]; errors.As(why, new(program.Missing)) {
			r.absent = why.Error()
		} else if r.err = why; slices.Contains(m.without, t.name) {
			continue
		}
		rows = append(rows, r)
	}
	for pass := range m.passesOf(l.opt) {
		for i := range rows {
			r := &rows[i]
			if r.absent != "" || r.err != nil {
				continue
			}
			s, repeated, err := l.sample(m, r.target, addr, upstream)
			if l.ctx.Err() != nil {
				return nil, l.ctx.Err()
			}
			if r.repeated += repeated; err != nil {
				r.err = err
				l.say("%s, pass %d: %v", r.target, pass+1, err)
				continue
			}
			r.samples = append(r.samples, s)
			l.say("pass %d of %d, %s: %s", pass+1, m.passesOf(l.opt), r.target, m.line(s))
		}
	}
	return rows, nil
}

// sample starts one target, measures it and stops it. Of a run that was disturbed and its repetitions the least
// disturbed counts.
func (l *lab) sample(m mode, name, upstreamAddr string, upstream *program.Process) (best sample, repeated int,
	err error) {
	s := started{addr: upstreamAddr, upstream: upstream}
	t := allTargets[slices.IndexFunc(allTargets, func(t target) bool { return t.name == name })]
	if t.argv != nil {
		if s.proxy, s.addr, err = l.start(m, t, upstreamAddr); err != nil {
			return nil, 0, err
		}
		defer func() { err = errors.Join(err, s.proxy.Stop()) }()
	}
	for {
		now, err := m.run(l, m, s)
		if err != nil {
			if s.measured().Ended() {
				err = fmt.Errorf("%w; %s has ended: %s", err, name, s.measured().LastWords(600))
			}
			return nil, repeated, err
		}
		if best == nil || now[others] < best[others] {
			best = now
		}
		if best[others] <= quietEnough || repeated == m.repeats {
			return best, repeated, nil
		}
		repeated++
	}
}

// start brings a target up at an address of its own.
func (l *lab) start(m mode, t target, upstream string) (*program.Process, string, error) {
	addr, err := loopback.Address()
	if err != nil {
		return nil, "", err
	}
	argv, err := t.argv(l, m, addr, upstream)
	if err != nil {
		return nil, "", err
	}
	p, err := program.Start(l.dir, t.name, 2, argv)
	if err != nil {
		return nil, "", err
	}
	if err := p.Await(l.ctx, addr, m.probe()); err != nil {
		return nil, "", errors.Join(err, p.Stop())
	}
	return p, addr, nil
}

// watch measures processor time around work.
func (s started) watch(work func() error) (spent meter, seconds float64, err error) {
	proxy, upstream := s.pids()
	before, err := readMeter(proxy, upstream)
	if err != nil {
		return meter{}, 0, err
	}
	start := time.Now()
	if err := work(); err != nil {
		return meter{}, 0, err
	}
	seconds = time.Since(start).Seconds()
	after, err := readMeter(proxy, upstream)
	return after.since(before), seconds, err
}
