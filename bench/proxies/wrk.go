package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/abate-go/abate/bench/program"
)

// The load: so many connections with one request in flight on each, from so many threads.
const (
	connections = 64
	threads     = 2
)

// loadResult is what a load generator saw.
type loadResult struct {
	requests int           // answered, well or not
	failed   int           // with another status, or not at all
	took     time.Duration // from the first request to the last answer
	p50, p99 time.Duration
}

// check returns an error if the result is worth nothing. A proxy that refuses is fast.
func (r loadResult) check() error {
	if r.requests == 0 {
		return errors.New("no request was answered")
	}
	if r.failed*10000 > r.requests {
		return fmt.Errorf("%d of %d requests failed", r.failed, r.requests)
	}
	return nil
}

// load puts load of a shape on addr, from wrk if it is installed.
func (l *lab) load(s shape, addr string, duration time.Duration) (loadResult, error) {
	if l.wrk == "" {
		return ownLoad(l.ctx, s, addr, duration)
	}
	argv := append([]string{l.wrk}, wrkArguments(addr, duration)...)
	if text := s.script(); text != "" {
		path, err := l.write("wrk.lua", text)
		if err != nil {
			return loadResult{}, err
		}
		argv = append(argv, "-s", path)
	}
	out, err := program.Output(l.ctx, argv...)
	if err != nil {
		return loadResult{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	return parseWrk(out)
}

func wrkArguments(addr string, duration time.Duration) []string {
	return []string{
		"-t" + strconv.Itoa(threads), "-c" + strconv.Itoa(connections),
		fmt.Sprintf("-d%ds", int(duration.Seconds())), "--latency", "http://" + addr + "/",
	}
}

// What is read of wrk's output. The last two lines are there only when something failed.
var (
	wrkTotal    = regexp.MustCompile(`(?m)^\s+(\d+) requests in ([0-9.]+[a-z]+),`)
	wrkQuantile = regexp.MustCompile(`(?m)^\s+(50|99)%\s+([0-9.]+[a-z]+)$`)
	wrkSockets  = regexp.MustCompile(`(?m)^\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`)
	wrkStatus   = regexp.MustCompile(`(?m)^\s+Non-2xx or 3xx responses: (\d+)$`)
)

// parseWrk reads the output of wrk --latency.
func parseWrk(out string) (loadResult, error) {
	var r loadResult
	total := wrkTotal.FindStringSubmatch(out)
	quantiles := wrkQuantile.FindAllStringSubmatch(out, -1)
	if total == nil || len(quantiles) != 2 {
		return r, fmt.Errorf("this is not the output of wrk --latency: %q", out)
	}
	var err [4]error
	r.requests, err[0] = strconv.Atoi(total[1])
	r.took, err[1] = time.ParseDuration(total[2])
	for i, q := range quantiles {
		value := &r.p50
		if q[1] == "99" {
			value = &r.p99
		}
		*value, err[2+i] = time.ParseDuration(q[2])
	}
	for _, failures := range []*regexp.Regexp{wrkSockets, wrkStatus} {
		if found := failures.FindStringSubmatch(out); found != nil {
			for _, digits := range found[1:] {
				n, _ := strconv.Atoi(digits) // the pattern lets digits through only
				r.failed += n
			}
		}
	}
	return r, errors.Join(err[:]...)
}
