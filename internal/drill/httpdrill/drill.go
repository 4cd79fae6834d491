package httpdrill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/scenario"
)

// Run runs the acts of c one after the other, each against services of its own, and returns what came of them. When ctx
// is done it stops at once and returns what is known so far, with Interrupted set. An error means that the drill could
// not be run; then nothing was measured. Every goroutine and socket of the drill is gone when Run returns.
func Run(ctx context.Context, c Config) (Result, error) {
	if found := c.Problems(); len(found) > 0 {
		return Result{}, errors.New(strings.Join(found, "\n"))
	}
	result := Result{Version: Version, Setup: c.setup()}
	for _, name := range c.Acts {
		a := &act{config: c, cast: c.cast(c.variant(name))}
		d := drill.Drill{WarmUp: c.Scenario.WarmUp, Length: c.Scenario.Duration, Drain: c.Scenario.Model.Drain}
		if c.Progress != nil {
			d.EachSecond = func(at time.Duration) { c.Progress(a.progress(at)) }
		}
		c.Watch.begin(name)
		if err := d.Run(ctx, a); err != nil {
			return Result{}, fmt.Errorf("act %q: %w", name, err)
		}
		result.Acts = append(result.Acts, a.result())
		if ctx.Err() != nil {
			result.Interrupted = true
			break
		}
	}
	result.Passed = result.passed()
	result.Verdict = result.verdict()
	return result, nil
}

// act is clients that call a service under the policies of one variant.
type act struct {
	cast
	config  Config
	servers [][]*Server // replicas, as the services
	clients []*caller
	behind  []*caller // of the replicas of the service, to the one behind it
	record  *Recorder
	since   func() time.Duration
	calls   *calls
	reached time.Duration // how far the load came
	cpu     time.Duration // what this process had used when the load began
	cores   float64       // what it used while the load ran
}

// SetUp starts the services, the one behind first, and makes the clients: each has connections and a guard of its own,
// they are as many programs, which know nothing of each other.
func (a *act) SetUp(_ context.Context, since func() time.Duration) error {
	c := &a.config
	a.record, a.since = NewRecorder(c.Scenario, a.variant, c.Seed, since), since
	a.servers = make([][]*Server, len(a.services))
	if a.back >= 0 {
		s, err := StartServer(a.services[a.back], a.back, c.Seed, a.record, since, nil, a.protection(a.back), c.Watch)
		if err != nil {
			return err
		}
		a.servers[a.back] = []*Server{s}
	}
	urls, err := a.startFront()
	if err != nil {
		return err
	}
	naive := a.variant.NaiveCall(a.fleet.Name, &a.fleet.Calls[0])
	turn := new(atomic.Uint32)
	for range max(a.fleet.Instances, 1) {
		by, err := a.client(urls, edge{record: a.record, service: a.front, since: since, idle: 4, naive: naive,
			to: a.endpointsOf(urls, turn)})
		if err != nil {
			return err
		}
		a.clients = append(a.clients, by)
	}
	return nil
}

// startFront starts the replicas of the service that the clients call, and returns where they are.
func (a *act) startFront() (urls []string, err error) {
	c := &a.config
	for n := range replicas(a.service()) {
		backend, err := a.backend()
		if err != nil {
			return nil, err
		}
		seed := c.Seed + uint64(n)<<32 // each draws service times of its own
		s, err := StartServer(a.frontService(), a.front, seed, a.record, a.since, backend, a.protection(a.front), c.Watch)
		if err != nil {
			return nil, err
		}
		a.servers[a.front] = append(a.servers[a.front], s)
		urls = append(urls, s.URL())
	}
	return urls, nil
}

// protection is that of the gate in front of a service; nil without one.
func (a *act) protection(n int) *inbound.Protection {
	p, ok := a.variant.ProtectionOf(a.services[n].Name)
	if !ok {
		return nil
	}
	return &p.Protection
}

// client makes one client of the service.
func (a *act) client(urls []string, e edge) (*caller, error) {
	c := &a.config
	if c.Via != nil {
		return newRelayed(c.Via, a.service().Name, urls, a.clientPolicy(), c.Watch, e)
	}
	return newCaller(a.service().Name, urls[0], a.clientPolicy().Policy, a.record, c.Watch, e)
}

// backend is the call that a replica of the service makes for every request, through one guard: it is one program.
func (a *act) backend() (func(context.Context) error, error) {
	if a.back < 0 {
		return nil, nil
	}
	front, name := a.service(), a.services[a.back].Name
	naive := a.variant.NaiveCall(front.Name, &front.Calls[0])
	e := edge{record: a.record, service: a.back, since: a.since, idle: front.Workers, naive: naive}
	p := a.variant.PolicyOf(front.Name, name).Policy
	by, err := newCaller(name, a.servers[a.back][0].URL(), p, nil, a.config.Watch, e)
	if err != nil {
		return nil, err
	}
	a.behind = append(a.behind, by)
	var calls atomic.Int64
	return func(ctx context.Context) error {
		if e.naive { // it has no part in the call tree of the request
			ctx = core.WithCallTree(ctx, nil)
		}
		return by.send(ctx, strconv.FormatInt(calls.Add(1), 10))
	}, nil
}

// frontService is the service that the clients call, with calls that are as naive as the variant says.
func (a *act) frontService() scenario.Service {
	s := *a.service()
	s.Calls = slices.Clone(s.Calls)
	for i := range s.Calls {
		s.Calls[i].Naive = a.variant.NaiveCall(s.Name, &s.Calls[i])
	}
	return s
}

// Events are the begins and ends of all faults.
func (a *act) Events() []drill.Event {
	var all []drill.Event
	faults := a.config.Scenario.Faults
	for i := range faults {
		f := &faults[i]
		_, target := f.Kind()
		for n, servers := range a.servers {
			if a.services[n].Name != target {
				continue
			}
			for _, server := range servers[:f.Hits(len(servers))] {
				all = append(all,
					drill.Event{At: f.At, Do: func() error { server.Break(f); return nil }},
					drill.Event{At: f.At + f.For, Do: func() error { return server.Fix(f) }})
			}
		}
	}
	return all
}

// Load lets all clients send on schedule.
func (a *act) Load(ctx context.Context) error {
	s := a.config.Scenario
	a.cpu = cpuTime()
	a.calls = newCalls(ctx, a.record, a.since, a.fleet.Patience)
	var load sync.WaitGroup
	period := float64(len(a.clients)) / a.fleet.Rate * float64(time.Second)
	for n, by := range a.clients {
		due := newSchedule(a.config.Seed, n, a.fleet.Arrivals, period)
		next := func() time.Duration { return due.next() - s.WarmUp }
		load.Go(func() {
			drill.Send(ctx, a.since, next, s.Duration, func(i int, due time.Duration) {
				a.calls.start(due, strconv.Itoa(n)+"-"+strconv.Itoa(i), by.send)
			})
		})
	}
	over := make(chan struct{})
	load.Go(func() { a.sample(over) })
	drill.Sleep(s.Duration-a.since(), ctx.Done())
	close(over)
	a.reached = min(a.since(), s.Duration)
	load.Wait()
	return nil
}

// Drain gives whoever still waits until ctx is done. Then the act is over for all.
func (a *act) Drain(ctx context.Context) {
	a.calls.end(ctx)
	a.cores = (cpuTime() - a.cpu).Seconds() / (a.since() + a.config.Scenario.WarmUp).Seconds()
}

// TearDown ends everything. The service goes first, so that it does not see the one behind it go.
func (a *act) TearDown() {
	for _, n := range []int{a.front, a.back} {
		if n >= 0 && n < len(a.servers) {
			for _, s := range a.servers[n] {
				s.Close()
			}
		}
	}
	for _, by := range a.behind {
		by.close()
	}
	for _, by := range a.clients {
		by.close()
	}
}

// result is what came of an act that is torn down.
func (a *act) result() ActResult {
	r := a.config.actResult(a.cast, a.record, a.reached)
	r.CPU = a.cores
	return r
}
