package lint_test

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/topology"
)

const never = time.Duration(math.MaxInt64)

// system plays requests through a form in virtual time while one service fails. Layers of Abate are the real guards;
// the others do what their settings say, try by try. What the form leaves open is decided by fortune.
type system struct {
	form     topology.Form
	calls    map[string][]*topology.Call // by caller
	services map[string]*topology.Service
	leads    map[string]bool // services whose requests can reach the one that fails
	fails    string
	how      topology.Outcome
	methods  topology.Methods
	guards   map[*topology.Layer]*core.Guard
	// answers of services that nobody knows: what somebody repeats, and one that nobody does
	plausible []topology.Outcome
	tokens    map[*topology.Layer]float64 // of budgets; nil while budgets have enough

	fortune
	count  int // attempts at the service that fails
	capped bool
}

// fortune is how a run decides what the form leaves open.
type fortune struct {
	rnd    *rand.Rand
	waits  int     // 0 the shortest, 1 the longest, 2 any
	slow   bool    // failures take so long that hedges are sent
	wants  bool    // calls before the last one succeed at their last try
	lost   float64 // share of answers that are lost on the way, with what they say of the call tree
	way    uint64  // decides once and for all: which alternative, what a service answers
	within bool    // ties of two limits
}

// result is how a call ended.
type result struct {
	ok    bool
	seen  topology.Outcome
	end   time.Duration
	below core.Below
}

const most = 3000 // attempts that are played

func newSystem(f topology.Form, fails string, how topology.Outcome, m topology.Methods) *system {
	s := &system{form: f, fails: fails, how: how, methods: m, calls: map[string][]*topology.Call{},
		services: map[string]*topology.Service{}, guards: map[*topology.Layer]*core.Guard{},
		leads: map[string]bool{fails: true}}
	for i := range f.Services {
		s.services[f.Services[i].Name] = &f.Services[i]
	}
	for i := range f.Calls {
		c := &f.Calls[i]
		s.calls[c.From] = append(s.calls[c.From], c)
		for j := range c.Layers {
			if l := &c.Layers[j]; l.Product == "abate" {
				s.guards[l] = s.guard(l)
			}
		}
	}
	s.plausible = []topology.Outcome{topology.S4xx}
	for _, c := range f.Calls {
		for _, l := range c.Layers {
			for _, r := range l.Repeats {
				for _, o := range r.On {
					if o >= topology.ResetSent && r.Tries.Or(1) > 1 && !slices.Contains(s.plausible, o) {
						s.plausible = append(s.plausible, o)
					}
				}
			}
		}
	}
	for range f.Services {
		for _, c := range f.Calls {
			if s.leads[c.To] {
				s.leads[c.From] = true
			}
		}
	}
	return s
}

func (s *system) guard(l *topology.Layer) *core.Guard {
	tries := 1
	for _, r := range l.Repeats {
		tries = max(tries, r.Tries.Or(1))
	}
	p := core.Policy{Timeout: l.Overall.Or(0), AttemptTimeout: l.PerTry.Or(0), RetryOwner: core.RetryOwner(l.Owner.Or("")),
		Retry: retry.Config{MaxRetries: tries - 1, MaxDelay: time.Hour}, RetryBudget: budget.Config{Disabled: true},
		CircuitBreaker: breaker.Config{Disabled: true}}
	p.Delay = func(n int, _ core.Outcome, _ uint64) time.Duration { return s.wait(l, n) }
	p.Classify = nil
	g, err := core.New("g", p)
	if err != nil {
		panic(err)
	}
	return g
}

func (s *system) wait(l *topology.Layer, n int) time.Duration {
	least, most := l.Backoff.Wait(n)
	switch s.waits {
	case 0:
		return least
	case 1:
		return most
	}
	return least + time.Duration(s.rnd.Float64()*float64(most-least))
}

// choose returns a number below n that stays the same for one thing during a run.
func (f *fortune) choose(what string, n int) int {
	h := f.way
	for _, b := range []byte(what) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return int((h >> 20) % uint64(n))
}

func (s *system) truth(v topology.Value[bool], what string) bool {
	return v.Or(s.choose(what, 2) == 1)
}

// service handles a request that arrived, whose caller leaves at a time. It is to fail if it can,
// or to succeed at last.
func (s *system) service(name string, at, leave time.Duration, want bool, told *core.Allowance) result {
	if name == s.fails {
		return s.failing(at, want)
	}
	svc := s.services[name]
	if !s.truth(svc.Cancels, "cancels "+name) {
		leave = never
	}
	tree := core.NewOpenCallTree()
	takes := s.truth(svc.CallTree, "tree "+name)
	if takes && told != nil {
		tree = core.NewCallTree(*told)
	}
	if !takes {
		tree = nil
	}
	res := s.all(name, at, leave, want, tree)
	if takes {
		if res.below = tree.Report(); res.ok {
			res.below.Final = false
		}
	}
	if res.ok || res.end == never {
		return res
	}
	switch word := svc.AnswersWith.Or("unknown"); word {
	case "same":
	case "unknown":
		may := s.plausible
		if !svc.Codes() {
			may = slices.DeleteFunc(slices.Clone(may), topology.Outcome.GRPC)
		}
		if n := s.choose("answer "+name, len(may)+1); n < len(may) {
			res.seen = may[n] // else it passes on what it saw
		}
	case "200":
		res.ok = true
	default:
		if err := res.seen.UnmarshalText([]byte(word)); err != nil {
			panic(err)
		}
	}
	return res
}

func (s *system) failing(at time.Duration, want bool) result {
	s.count++
	s.capped = s.capped || s.count >= most
	switch {
	case want:
		return result{ok: true, end: at}
	case s.how == topology.Hang:
		return result{seen: s.how, end: never}
	case s.slow:
		return result{seen: s.how, end: at + 2*time.Microsecond}
	}
	return result{seen: s.how, end: at}
}

// chosen is the call that a proxy makes, of those that lead to the failing service.
func (s *system) chosen(name string) *topology.Call {
	var ways []*topology.Call
	for _, c := range s.calls[name] {
		if s.leads[c.To] && c.PerRequest.Or(1) > 0 {
			ways = append(ways, c)
		}
	}
	return ways[s.choose("proxy "+name, len(ways))]
}

// all makes the calls of a service that lead to the failing one, in their order.
func (s *system) all(name string, at, leave time.Duration, want bool, tree *core.CallTree) result {
	type one struct {
		c *topology.Call
		n int
	}
	groups, last := map[int][]one{}, -1
	for _, c := range s.calls[name] {
		n := int(math.Ceil(c.PerRequest.Or(1)))
		if !s.leads[c.To] || n == 0 {
			continue
		}
		if svc := s.services[name]; svc != nil && svc.Proxy && c != s.chosen(name) {
			continue
		}
		o := c.Order.Or(-1)
		groups[o], last = append(groups[o], one{c, n}), max(last, o)
	}
	now := at
	for o := -1; o <= last; o++ {
		if len(groups[o]) == 0 {
			continue
		}
		if now >= leave && now > at {
			return result{seen: topology.Hang, end: never}
		}
		failed, end := result{ok: true}, now
		for _, g := range groups[o] {
			for range g.n {
				r := s.call(g.c, 0, now, leave, want || s.wants && o < last, tree, nil)
				if end = max(end, r.end); !r.ok && (failed.ok || r.end == never) {
					failed = r
				}
			}
		}
		if failed.end = end; !failed.ok {
			return failed
		}
		now = end
	}
	return result{ok: true, end: now}
}

// call passes a call through its layers from the i-th on.
func (s *system) call(c *topology.Call, i int, at, leave time.Duration, want bool, tree *core.CallTree,
	told *core.Allowance,
) result {
	if s.capped {
		return result{seen: topology.Hang, end: never}
	}
	if i == len(c.Layers) {
		return s.service(c.To, at, leave, want, told)
	}
	l, next := &c.Layers[i], i+1
	if l.Match.Path != "" { // the layers of one place, of which a call passes one
		for next < len(c.Layers) && c.Layers[next].Match.Path != "" && c.Layers[next].Kind == l.Kind {
			next++
		}
		l = &c.Layers[i+s.choose("route "+c.From+c.To+strconv.Itoa(i), next-i)]
	}
	if !s.truth(l.Cancels, "layer "+c.From+c.To+strconv.Itoa(i)) {
		leave = never
	}
	inner := func(at, leave time.Duration, want bool, told *core.Allowance) result {
		return s.call(c, next, at, leave, want, nil, told)
	}
	if g := s.guards[l]; g != nil {
		if told != nil { // a proxy that is one of ours takes part in the tree of who calls it
			tree = core.NewCallTree(*told)
		}
		return s.guarded(g, l, at, leave, want, tree, inner)
	}
	return s.layer(c, l, at, leave, want, func(at, leave time.Duration, want bool) result {
		return inner(at, leave, want,
			told)
	})
}

func (s *system) tries(c *topology.Call, l *topology.Layer, seen topology.Outcome) int {
	m := s.methods
	if u, known := c.Unsafe.Get(); known {
		m = topology.Safe
		if u {
			m = topology.Unsafe
		}
	}
	n := 1
	for _, r := range l.Repeats {
		if r.About(seen, m) {
			n = max(n, r.Tries.Or(1))
		}
	}
	return n
}

// pays takes a token for an extra try, if budgets are played.
func (s *system) pays(l *topology.Layer) bool {
	if s.tokens == nil || l.Budget.Ratio.IsZero() {
		return true
	}
	if s.tokens[l] < 1 {
		return false
	}
	s.tokens[l]--
	return true
}

// layer is any other product: it tries, waits, and tries again.
func (s *system) layer(c *topology.Call, l *topology.Layer, at, leave time.Duration, want bool,
	inner func(at, leave time.Duration, want bool) result) result {
	end := never
	if d := l.Overall.Or(0); d > 0 {
		end = at + d
	}
	if s.tokens != nil {
		s.tokens[l] += l.Budget.Ratio.Or(0)
	}
	gives := func(seen topology.Outcome, at time.Duration) result { return result{seen: l.Gives(seen), end: at} }
	now := at
	for i := 1; ; i++ {
		limit := never
		if p := l.PerTry.Or(0); p > 0 {
			limit = now + p
		}
		before, had := s.count, maps.Clone(s.tokens)
		r, hung := s.try(l, now, limit, end, leave, false, inner)
		again := !r.ok && (!hung || limit < end || l.StartsOnly) && i < s.tries(c, l, r.seen)
		next := never
		if again && r.end < never {
			next = r.end + s.wait(l, i)
		}
		cut := next >= end || next >= leave && leave < never
		if want && (!again || cut) {
			// This was the last try that it can make: it brings the success.
			s.count, s.tokens = before, had
			if r, _ = s.try(l, now, limit, end, leave, true, inner); r.ok {
				return r
			}
			if r.end == never || again {
				return result{seen: topology.Hang, end: never}
			}
			return gives(r.seen, r.end)
		}
		switch {
		case r.ok:
			return r
		case r.end == never:
			return result{seen: topology.Hang, end: never}
		case !again || !s.pays(l):
			return gives(r.seen, r.end)
		case next >= end && l.StartsOnly:
			return gives(r.seen, r.end)
		case next >= end:
			return gives(topology.Hang, end)
		case cut: // nobody is there to be answered
			return result{seen: topology.Hang, end: never}
		}
		if now = next; s.capped {
			return result{seen: topology.Hang, end: never}
		}
	}
}

// try makes one try and the copies beside it, which end together. It reports whether a limit has ended it.
func (s *system) try(l *topology.Layer, now, limit, end, leave time.Duration, want bool,
	inner func(at, leave time.Duration, want bool) result) (r result, hung bool) {
	stop := min(limit, end)
	if l.StartsOnly {
		stop = limit
	}
	copies, delay := l.Hedge.Copies.Or(0), l.Hedge.Delay.Or(0)
	before, had := s.count, maps.Clone(s.tokens)
	r = inner(now, min(stop, leave), want && copies == 0)
	if sent := now + delay; copies > 0 && r.end > sent && sent < stop && sent < leave {
		for n := range copies {
			if other := inner(sent, min(stop, leave), want && n == copies-1); other.ok {
				r = other
			} else {
				r.end = max(r.end, other.end)
			}
		}
	} else if want && copies > 0 {
		s.count, s.tokens = before, had
		r = inner(now, min(stop, leave), true)
	}
	if r.end > stop || r.end == stop && stop < never && !s.within {
		return result{seen: topology.Hang, end: stop}, true
	}
	return r, false
}

var errDown = errors.New("down")

// guarded is a layer of Abate: a guard decides, and is told of the call tree what the headers would say.
func (s *system) guarded(g *core.Guard, l *topology.Layer, at, leave time.Duration, want bool, tree *core.CallTree,
	inner func(at, leave time.Duration, want bool, told *core.Allowance) result) result {
	var c core.Call
	c.Under(tree)
	now, most, last := at, 1, result{}
	for _, r := range l.Repeats {
		most = max(most, r.Tries.Or(1))
	}
	ended := func(r result) result {
		if r.below = (core.Below{}); tree != nil {
			r.below = tree.Report()
		}
		return r
	}
	for step := g.Begin(&c, at, core.NoDeadline); ; {
		switch step.Action {
		case core.Attempt:
			var told *core.Allowance
			if a, ok := c.Delegate(0); ok {
				told = &a
			}
			final := c.Attempts() >= most
			if tree != nil {
				left, limited := tree.Allowance()
				final = final || limited && left.Left == 0
			}
			r := inner(now, min(step.Until, leave), want && final, told)
			if stop := step.Until; r.end > stop || r.end == stop && stop < never && !s.within {
				r = result{seen: topology.Hang, end: stop}
			}
			if r.end == never || r.end >= leave && r.end > now {
				c.Abort(now)
				return result{seen: topology.Hang, end: never}
			}
			o := core.Outcome{Below: r.below, Err: errDown}
			if s.rnd.Float64() < s.lost {
				o.Below = core.Below{}
			}
			if o.Class = core.Success; !r.ok {
				o.Class, o.NoRetry = core.Failure, !repeats(l, r.seen)
			} else {
				o.Err = nil
			}
			now, last = r.end, r
			step = c.AttemptDone(now, 0, o)
		case core.Sleep:
			if step.Until >= leave {
				c.Cancel(now, errDown)
				return result{seen: topology.Hang, end: never}
			}
			now = step.Until
			step = c.Resume(now)
		case core.Finish:
			if last.ok {
				return ended(last)
			}
			return ended(result{seen: l.Gives(last.seen), end: now})
		default:
			panic(step.Action)
		}
	}
}

func repeats(l *topology.Layer, seen topology.Outcome) bool {
	for _, r := range l.Repeats {
		if r.About(seen, topology.Safe) && r.Tries.Or(1) > 1 {
			return true
		}
	}
	return false
}

// request plays one request that arrives at a root.
func (s *system) request(root string, outside bool) result {
	if !outside {
		return s.service(root, 0, never, false, nil)
	}
	for _, c := range s.calls[""] {
		if c.To == root {
			return s.call(c, 0, 0, never, false, nil, nil)
		}
	}
	return result{}
}
