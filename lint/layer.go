package lint

import (
	"math"
	"time"

	"github.com/abate-go/abate/topology"
)

// assumption is how values are taken that nobody knows: in the worst case as the worst, else as the least that is
// certain.
type assumption struct {
	worst   bool
	methods topology.Methods
	// written takes in the worst case numbers of tries, copies and calls that nobody knows as the least that they can be:
	// what is left is what the files do say.
	written bool
	// guessed is set when a value that nobody knows has decided the worst case.
	guessed bool
	// work is how much was looked at.
	work int
}

// limits of a layer, 0 for none. Without knowledge of one, blind is set.
type limits struct {
	try, all time.Duration
	blind    bool // a limit of a try may exist, of any length
	veiled   bool // the same, of what is proved: nothing is certain but what begins at once
}

func (a *assumption) limits(l *topology.Layer) (m limits) {
	m.try, m.all = l.PerTry.Or(0), l.Overall.Or(0)
	m.blind = a.worst && l.PerTry.IsUnknown()
	m.veiled = !a.worst && (l.PerTry.IsUnknown() || l.Overall.IsUnknown() || m.all > 0 && unknownWait(&l.Backoff))
	return m
}

// tries returns how often a layer tries a call that fails as seen, when time does not matter.
func (a *assumption) tries(l *topology.Layer, seen topology.Outcome, m topology.Methods) float64 {
	most := 1.0
	for i := range l.Repeats {
		r := &l.Repeats[i]
		if !r.About(seen, m) {
			continue
		}
		switch n, known := r.Tries.Get(); {
		case known && n == topology.Unbounded:
			most = math.Inf(1)
		case known:
			most = max(most, float64(n))
		case r.Tries.IsUnknown() && a.worst && !a.written:
			a.guessed, most = true, math.Inf(1)
		}
	}
	return most
}

// wait returns the shortest and the longest wait before the n-th retry that count.
func (a *assumption) wait(l *topology.Layer, n int) (least, most time.Duration) {
	b := &l.Backoff
	switch {
	case !unknownWait(b):
		return b.Wait(n)
	case a.worst:
		return 0, never
	}
	return someday, 0
}

// unknownWait reports that nobody knows how long a layer waits before it tries again.
func unknownWait(b *topology.Backoff) bool {
	if first, known := b.First.Get(); b.First.IsZero() || known && first == 0 {
		return false
	}
	return b.First.IsUnknown() || b.Max.IsUnknown() || b.Multiplier.IsUnknown() || b.Jitter.IsUnknown()
}

// copies returns how many copies of a try run beside it, and from when.
func (a *assumption) copies(l *topology.Layer, m limits) (n float64, after time.Duration) {
	h := &l.Hedge
	if h.Copies.IsUnknown() && a.worst && !a.written {
		a.guessed, n = true, math.Inf(1)
	} else {
		n = float64(h.Copies.Or(0))
	}
	if h.Copies.Or(0) == topology.Unbounded {
		n = math.Inf(1)
	}
	if after = h.Delay.Or(0); h.Delay.IsUnknown() && !a.worst {
		return 0, 0
	}
	if m.try > 0 && after >= m.try || m.all > 0 && after >= m.all {
		return 0, 0
	}
	return n, after
}

// truth is a value of yes or no, as the assumption takes it. bad is what is worse.
func (a *assumption) truth(v topology.Value[bool], bad bool) bool {
	if got, ok := v.Get(); ok {
		return got
	}
	return bad == a.worst
}

// maxPlayed is how many tries of one layer are followed one by one. More are counted together.
const maxPlayed = 256

// played is a layer's tries of one call.
type played struct {
	a       *assumption
	l       *topology.Layer
	m       limits
	methods topology.Methods
	seen    []failure       // how one try can end, as the layer sees it
	starts  []time.Duration // of the tries, at the earliest
	more    float64         // tries beyond those
	hangs   bool            // a try may never end
	one     time.Duration   // the longest that a try takes
	cut     bool            // a limit of time ended them
}

// layer returns the state of a call through a layer, when in is the state of each try.
func (a *assumption) layer(l *topology.Layer, in state, methods topology.Methods, weight func(extra float64) float64,
) state {
	p := &played{a: a, l: l, m: a.limits(l), methods: methods, seen: make([]failure, 0, len(in.fails)+2)}
	if p.m.veiled && !inTime(l, &in) || in.vague && p.m.try+p.m.all > 0 {
		in = in.atOnce()
		p.m = limits{}
	}
	p.ends(in)
	p.play()
	copies, after := a.copies(l, p.m)
	tries := float64(len(p.starts)) + p.more
	left := weight(tries*(1+copies) - 1)
	pays := func(extra float64) float64 { // for the earliest first, so that a caller that leaves early saves nothing
		paid := min(extra, left)
		if !math.IsInf(left, 1) {
			left -= paid
		}
		return paid
	}
	out := state{cancels: a.truth(l.Cancels, false), base: in.base, best: in.best}
	started := in.started()
	for i, at := range p.starts {
		times, mean := 1.0, 1.0
		if i > 0 {
			mean = pays(1)
		}
		if i == len(p.starts)-1 {
			times, mean = times+p.more, mean+pays(p.more)
		}
		out.steps = p.attempts(out.steps, started, at, times, mean)
		if copies > 0 {
			out.steps = p.attempts(out.steps, started, later(at, after), times*copies, pays(times*copies))
		}
	}
	a.work += 8 + len(p.starts) + len(out.steps) + len(l.Repeats)
	out.steps = a.tidy(out.steps)
	out.fails = make([]failure, 0, len(p.seen)+2)
	p.fails(&out)
	out.vague = in.vague || !a.worst && p.vague()
	a.allowances(l, &out, tries, copies)
	return out
}

// ends finds how a try can end, as the layer sees it: with an answer that comes in time, or at the try's limit.
func (p *played) ends(in state) {
	for _, f := range in.fails {
		if f.least == never || p.m.try > 0 && f.least > p.m.try {
			p.hangs = p.hangs || p.m.try == 0
			continue
		}
		if p.m.try > 0 {
			f.most = min(f.most, p.m.try)
		}
		p.see(f)
	}
	p.one = in.longest
	if p.m.try > 0 {
		p.one = min(in.longest, p.m.try)
	}
	switch {
	case p.m.try > 0 && in.longest >= p.m.try:
		p.see(failure{topology.Hang, p.m.try, p.m.try})
	case p.m.blind && in.longest > 0:
		p.see(failure{topology.Hang, 0, never})
	}
}

func (p *played) see(f failure) {
	s := state{fails: p.seen}
	s.fail(f)
	p.seen = s.fails
}

// play lets the tries follow each other as early as they can.
func (p *played) play() {
	at := time.Duration(0)
	tries := make([]float64, 0, 32)
	for _, f := range p.seen {
		tries = append(tries, p.a.tries(p.l, f.seen, p.methods))
	}
	for i := 1; ; i++ {
		p.starts = append(p.starts, at)
		best, most := never, 1.0
		for k, f := range p.seen {
			if n := tries[k]; n > float64(i) {
				best, most = min(best, f.least), max(most, n)
			}
		}
		if best == never {
			return
		}
		wait, _ := p.a.wait(p.l, i)
		gap := later(best, wait)
		next := min(later(at, gap), someday)
		if p.m.all > 0 && next >= p.m.all {
			p.cut = true
			return
		}
		if i < maxPlayed {
			at = next
			continue
		}
		p.more = most - float64(i)
		if p.m.all > 0 && gap > 0 {
			if fit := math.Ceil(float64(p.m.all-at)/float64(gap)) - 1; fit < p.more {
				p.more, p.cut = fit, true
			}
		}
		return
	}
}

// attempts appends what tries that start at a time add, as far as the layer's limits let them.
func (p *played) attempts(steps, of []step, at time.Duration, times, mean float64) []step {
	for _, s := range of {
		if p.m.try > 0 && s.at >= p.m.try && s.at > 0 {
			continue
		}
		when := later(at, s.at)
		if p.m.all > 0 && !p.l.StartsOnly && when >= p.m.all && when > 0 {
			continue
		}
		steps = append(steps, step{when, product(s.n, times), product(s.mean, mean)})
	}
	return steps
}

func product(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a * b
}

// fails adds how the layer itself can fail, and when.
func (p *played) fails(out *state) {
	most, ends := p.longest(), p.m.all > 0 && !p.l.StartsOnly
	if out.longest = most; ends {
		out.longest = min(most, p.m.all)
	}
	for _, f := range p.seen {
		n, last := p.a.tries(p.l, f.seen, p.methods), len(p.starts)-1
		reached := n <= float64(len(p.starts))+p.more
		if n <= float64(len(p.starts)) {
			last = int(n) - 1
		}
		unknown := p.a.worst && p.unknown(f.seen)
		late := p.l.StartsOnly && p.m.all > 0 && most >= p.m.all // the next try may come too late, and earlier ones too
		if p.a.worst && (unknown || late || early(p.l)) {
			last = 0
		}
		least := min(later(p.starts[last], f.least), someday)
		answers := reached || unknown || p.cut && (p.l.StartsOnly || p.l.Product == ours)
		if answers && !(ends && least > p.m.all) {
			out.fail(failure{p.l.Gives(f.seen), least, out.longest})
		}
	}
	if p.a.worst && p.l.Overall.IsUnknown() && most > 0 { // it may end the call at any time
		out.fail(failure{p.l.Gives(topology.Hang), 0, never})
	}
	switch {
	case ends && most >= p.m.all:
		out.fail(failure{p.l.Gives(topology.Hang), p.m.all, p.m.all})
	case p.hangs:
		out.fail(failure{topology.Hang, never, never})
	}
}

// vague reports that a value is unknown on which it depends when the layer fails.
func (p *played) vague() bool {
	for _, f := range p.seen {
		if p.unknown(f.seen) {
			return true
		}
	}
	return len(p.starts) > 1 && unknownWait(&p.l.Backoff)
}

// unknown reports that nobody knows how often calls are tried that fail as seen.
func (p *played) unknown(seen topology.Outcome) bool {
	for i := range p.l.Repeats {
		if r := &p.l.Repeats[i]; r.Tries.IsUnknown() && r.About(seen, p.methods) {
			return true
		}
	}
	return false
}

// early reports whether a layer may give up before it has made all its tries, because what it shares with other calls
// has run out.
func early(l *topology.Layer) bool {
	b := &l.Budget
	return !l.Owner.IsZero() || !b.Ratio.IsZero() || !b.PerSecond.IsZero() || !b.Concurrent.IsZero() || !b.Tokens.IsZero()
}

// longest returns how long the tries and the waits between them take at most, without the limit of all of them.
func (p *played) longest() time.Duration {
	if p.hangs {
		return never
	}
	one, n := p.one, 1.0
	for _, f := range p.seen {
		one, n = max(one, f.most), max(n, p.a.tries(p.l, f.seen, p.methods))
	}
	total := time.Duration(0)
	for i := 1; float64(i) <= n && total < never; i++ {
		total = later(total, one)
		if float64(i) == n {
			break
		}
		_, wait := p.a.wait(p.l, i)
		if i == maxPlayed {
			total = later(total, times(n-float64(i), later(one, wait)))
			break
		}
		total = later(total, wait)
	}
	if p.l.StartsOnly && p.m.all > 0 {
		total = min(total, later(p.m.all, one))
	}
	return total
}
