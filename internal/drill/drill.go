package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/sim/scenario"
)

// Run plays the acts of c one after the other, each against services of its own, and returns what came of them. When ctx
// is done it stops at once and returns what is known so far, with Interrupted set. An error means that the drill could not
// be played; then nothing was measured. Every goroutine and socket of the drill is gone when Run returns.
func Run(ctx context.Context, c Config) (Result, error) {
	if found := c.Problems(); len(found) > 0 {
		return Result{}, errors.New(strings.Join(found, "\n"))
	}
	result := Result{Version: Version, Setup: c.setup()}
	for _, name := range c.Acts {
		a, err := c.play(ctx, c.variant(name))
		if err != nil {
			return Result{}, fmt.Errorf("act %q: %w", name, err)
		}
		result.Acts = append(result.Acts, a)
		if ctx.Err() != nil {
			result.Interrupted = true
			break
		}
	}
	result.Passed = result.passed()
	result.Verdict = result.verdict()
	return result, nil
}

// stage is what an act is played on.
type stage struct {
	cast
	servers []*Server // as the services
	clients []*caller
	behind  *caller // of the service, to the one behind it
	record  *Recorder
	since   func() time.Duration
}

// play gives one act.
func (c Config) play(ctx context.Context, v *scenario.Variant) (ActResult, error) {
	begin := time.Now()
	since := func() time.Duration { return time.Since(begin) - c.Scenario.WarmUp }
	st, err := c.build(v, since)
	defer st.close()
	if err != nil {
		return ActResult{}, err
	}
	callCtx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	begin = time.Now()
	cpu := cpuTime()
	clients := &crowd{record: st.record, since: since, from: -c.Scenario.WarmUp, to: c.Scenario.Duration, patience: st.fleet.Patience}
	instances := max(st.fleet.Instances, 1)
	period := float64(instances) / st.fleet.Rate * float64(time.Second)
	for n := range instances {
		clients.start(ctx, callCtx, n, newSchedule(c.Seed, n, st.fleet.Arrivals, period), st.clients[n].send)
	}
	over := make(chan struct{})
	clients.arrival.Go(func() { st.sample(over) })
	err = c.watch(ctx, st)
	close(over)
	played := min(since(), c.Scenario.Duration)
	if err != nil {
		hangUp()
	}
	clients.arrival.Wait()
	// Whoever is still waiting gets as long as the scenario's drain; then the act is over for all.
	last := time.AfterFunc(c.Scenario.Model.Drain, hangUp)
	clients.calls.Wait()
	last.Stop()
	if err != nil {
		return ActResult{}, err
	}
	used := (cpuTime() - cpu).Seconds() / (since() + c.Scenario.WarmUp).Seconds()
	st.close() // nothing is recorded any more
	a := c.actResult(st.cast, st.record, played)
	a.CPU = used
	return a, nil
}

// build starts the services of an act, the one behind first, and makes its clients: each has connections and a guard of
// its own, they are as many programs, which know nothing of each other. What was built has to be closed, error or not.
func (c Config) build(v *scenario.Variant, since func() time.Duration) (*stage, error) {
	st := &stage{cast: c.cast(v), record: NewRecorder(c.Scenario, v, c.Seed, since), since: since}
	st.servers = make([]*Server, len(st.services))
	if st.back >= 0 {
		s, err := StartServer(st.services[st.back], st.back, c.Seed, st.record, since, nil, st.protection(st.back), c.Watch)
		if err != nil {
			return st, err
		}
		st.servers[st.back] = s
	}
	backend, err := st.backend(c.Watch)
	if err != nil {
		return st, err
	}
	server, err := StartServer(st.frontService(), st.front, c.Seed, st.record, since, backend, st.protection(st.front), c.Watch)
	if err != nil {
		return st, err
	}
	st.servers[st.front] = server
	for range max(st.fleet.Instances, 1) {
		e := edge{record: st.record, service: st.front, since: since, idle: 4, naive: st.variant.NaiveCall(st.fleet.Name, &st.fleet.Calls[0])}
		by, err := c.client(st, server.URL(), e)
		if err != nil {
			return st, err
		}
		st.clients = append(st.clients, by)
	}
	return st, nil
}

// protection is that of the gate in front of a service; nil without one.
func (st *stage) protection(n int) *abate.Protection {
	p, ok := st.variant.ProtectionOf(st.services[n].Name)
	if !ok {
		return nil
	}
	return &p
}

// client makes one client of the service.
func (c Config) client(st *stage, url string, e edge) (*caller, error) {
	if c.Via != nil {
		return newRelayed(c.Via, st.service().Name, url, st.clientPolicy(), c.Watch, e)
	}
	return newCaller(st.service().Name, url, st.clientPolicy(), st.record, c.Watch, e)
}

// backend is the call that the service makes for every request, through one guard: it is one program.
func (st *stage) backend(watch Watchers) (func(context.Context) error, error) {
	if st.back < 0 {
		return nil, nil
	}
	name := st.services[st.back].Name
	e := edge{record: st.record, service: st.back, since: st.since, idle: st.service().Workers, naive: st.variant.NaiveCall(st.service().Name, &st.service().Calls[0])}
	by, err := newCaller(name, st.servers[st.back].URL(), st.variant.PolicyOf(st.service().Name, name), nil, watch, e)
	if err != nil {
		return nil, err
	}
	st.behind = by
	var calls atomic.Int64
	return func(ctx context.Context) error {
		if e.naive { // it has no part in the call tree of the request
			ctx = abate.WithCallTree(ctx, nil)
		}
		return by.send(ctx, strconv.FormatInt(calls.Add(1), 10))
	}, nil
}

// frontService is the service that the clients call, with calls that are as naive as the variant says.
func (st *stage) frontService() scenario.Service {
	s := *st.service()
	s.Calls = slices.Clone(s.Calls)
	for i := range s.Calls {
		s.Calls[i].Naive = st.variant.NaiveCall(s.Name, &s.Calls[i])
	}
	return s
}

// close ends everything, once or more often. The service goes first, so that it does not see the one behind it go.
func (st *stage) close() {
	if st.servers[st.front] != nil {
		st.servers[st.front].Close()
	}
	if st.back >= 0 && st.servers[st.back] != nil {
		st.servers[st.back].Close()
	}
	if st.behind != nil {
		st.behind.close()
	}
	for _, by := range st.clients {
		by.close()
	}
}

// turn is something that happens to a server at a time.
type turn struct {
	at time.Duration
	do func() error
}

// turns are the begins and ends of all faults, in order of time.
func (st *stage) turns(s *scenario.Scenario) []turn {
	var all []turn
	for i := range s.Faults {
		f := &s.Faults[i]
		_, target := f.Kind()
		for n := range st.services {
			if server := st.servers[n]; st.services[n].Name == target {
				all = append(all,
					turn{f.At, func() error { server.Break(f); return nil }},
					turn{f.At + f.For, func() error { return server.Mend(f) }})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return all
}

// watch lets the time of an act pass: faults begin and end, and progress is reported once a second.
func (c Config) watch(ctx context.Context, st *stage) error {
	turns := st.turns(c.Scenario)
	length := c.Scenario.Duration
	for at := st.since(); at < length; at = st.since() {
		wake := min((at + time.Second).Truncate(time.Second), length)
		if at < 0 { // Truncate rounds towards zero
			wake = at.Truncate(time.Second)
		}
		if len(turns) > 0 {
			wake = min(wake, max(turns[0].at, at))
		}
		if !sleep(wake-at, ctx.Done()) {
			return nil
		}
		for len(turns) > 0 && turns[0].at <= st.since() {
			if err := turns[0].do(); err != nil {
				return err
			}
			turns = turns[1:]
		}
		if c.Progress != nil && wake%time.Second == 0 {
			c.Progress(Progress{
				Act: st.variant.Name, Elapsed: wake, Trouble: c.trouble(wake - 1), Waiting: st.servers[st.front].Waiting(),
				Second: st.record.Between(st.front, wake-time.Second, wake),
			})
		}
	}
	return nil
}
