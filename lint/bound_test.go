package lint_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

var nowhere topology.Position

func value[T topology.Scalar](v T) topology.Value[T] { return topology.Write(v, nowhere) }

// drawing makes random forms.
type drawing struct {
	*rand.Rand
	ours bool // with guards of Abate
}

func (d drawing) chance(p float64) bool { return d.Float64() < p }

func pick[T any](d drawing, of ...T) T { return of[d.IntN(len(of))] }

const ms = time.Millisecond

func (d drawing) outcomes() (on []topology.Outcome) {
	words := [][]topology.Outcome{
		{topology.Refused, topology.ResetUnsent},
		{topology.S500, topology.S502, topology.S503, topology.S504},
		{topology.S502, topology.S503, topology.S504, topology.Hang},
		{topology.Hang}, {topology.S503, topology.Unavailable}, {topology.Refused, topology.S503, topology.Hang},
		{topology.CancelledCode},
		topology.AllOutcomes(),
	}
	return words[d.IntN(len(words))]
}

func (d drawing) layer(kind topology.Kind) topology.Layer {
	l := topology.Layer{Kind: kind, Product: "envoy"}
	for range 1 + d.IntN(2) {
		r := topology.Repeat{On: d.outcomes(), Tries: value(1 + d.IntN(4)),
			Methods: pick(d, 0, 0, topology.Safe, topology.Unsafe)}
		l.Repeats = append(l.Repeats, r)
	}
	if d.chance(0.5) {
		l.PerTry = value(time.Duration(1+d.IntN(8)) * 10 * ms)
	}
	if d.chance(0.4) {
		l.Overall = value(time.Duration(2+d.IntN(15)) * 10 * ms)
		l.StartsOnly = d.chance(0.2)
	}
	if d.chance(0.4) {
		l.Backoff = topology.Backoff{First: value(time.Duration(1+d.IntN(4)) * 5 * ms), Multiplier: value(pick(d, 1.0, 2)),
			Max: value(pick(d, 0, 20*ms)), Jitter: value(pick(d, "none", "full", "equal", "±50%"))}
	}
	if d.chance(0.1) {
		l.Hedge = topology.Hedge{Copies: value(1 + d.IntN(2)), Delay: value(time.Microsecond)}
	}
	if d.chance(0.7) {
		l.Cancels = value(d.chance(0.6))
	}
	if d.chance(0.2) {
		l.Budget.Ratio = value(0.2)
	}
	for _, a := range []topology.Answer{{After: topology.Hang, Gives: topology.S504},
		{After: topology.Refused, Gives: topology.S503}, {After: topology.S503, Gives: topology.S502}} {
		if d.chance(0.4) {
			l.Answers = append(l.Answers, a)
		}
	}
	return l
}

// guard is a layer of Abate.
func (d drawing) guard() topology.Layer {
	l := topology.Layer{Product: "abate", Owner: value(pick(d, "nearest", "nearest", "nearest", "edge", "none")),
		Repeats: []topology.Repeat{{On: d.outcomes(), Tries: value(1 + d.IntN(4))}}, Cancels: value(true)}
	if d.chance(0.4) {
		l.PerTry = value(time.Duration(1+d.IntN(8)) * 10 * ms)
	}
	if d.chance(0.3) {
		l.Overall = value(max(l.PerTry.V, time.Duration(2+d.IntN(15))*10*ms))
	}
	if d.chance(0.3) {
		l.Backoff = topology.Backoff{First: value(5 * ms), Jitter: value(pick(d, "none", "full"))}
	}
	return l
}

func (d drawing) layers() (all []topology.Layer) {
	if d.ours && d.chance(0.8) {
		all = append(all, d.guard())
	} else if d.chance(0.5) {
		all = append(all, d.layer(topology.Client))
	}
	if d.chance(0.3) {
		all = append(all, d.layer(topology.SidecarOut))
	}
	if d.chance(0.1) {
		a, b := d.layer(topology.Gateway), d.layer(topology.Gateway)
		a.Match.Path, b.Match.Path = "/a", "/b"
		all = append(all, a, b)
	}
	return all
}

func (d drawing) form() topology.Form {
	var f topology.Form
	n := 2 + d.IntN(4)
	for i := range n {
		s := topology.Service{Name: string(rune('a' + i)), CallTree: value(d.chance(0.8))}
		if d.chance(0.8) {
			s.AnswersWith = value(pick(d, "same", "same", "500", "503", "UNAVAILABLE", "200"))
		}
		if d.chance(0.8) {
			s.Cancels = value(d.chance(0.7))
		}
		s.Proxy = d.chance(0.2)
		if d.chance(0.4) {
			s.Speaks = value(pick(d, topology.SpeaksHTTP, topology.SpeaksHTTP, topology.SpeaksGRPC, topology.SpeaksOther))
		}
		f.Services = append(f.Services, s)
	}
	for j := 1; j < n; j++ {
		for i := range j {
			if i == j-1 && d.chance(0.8) || d.chance(0.25) {
				c := topology.Call{From: f.Services[i].Name, To: f.Services[j].Name, Layers: d.layers()}
				if d.chance(0.2) {
					c.PerRequest = value(pick(d, 0.3, 2, 1.5))
				}
				if d.chance(0.6) {
					c.Order = value(d.IntN(3))
				}
				if d.chance(0.3) {
					c.Unsafe = value(d.chance(0.5))
				}
				f.Calls = append(f.Calls, c)
			}
		}
	}
	if d.chance(0.3) {
		f.Calls = append(f.Calls, topology.Call{To: "a", Layers: d.layers()})
	}
	if d.chance(0.03) {
		f.Calls = append(f.Calls, topology.Call{From: f.Services[n-1].Name, To: f.Services[d.IntN(n)].Name})
	}
	return f
}

// tally is what came of many graphs.
type tally struct {
	graphs, bounds, equal, cycles int
	exceeded                      int
	smallest                      string // of the forms that exceed their bound
	below                         map[string]int
}

// hold plays a form against each of its bounds.
func (d drawing) hold(t *testing.T, f topology.Form, sum *tally) {
	sum.graphs++
	bounds := lint.Amplification(f, lint.Options{}).Bounds
	d.Shuffle(len(bounds), func(i, j int) { bounds[i], bounds[j] = bounds[j], bounds[i] })
	left := 4
	for _, b := range bounds {
		if len(b.Cycle) > 0 {
			sum.cycles++
			continue
		}
		if b.Coarse {
			t.Fatal("a small form was bounded coarsely")
		}
		for _, r := range b.Roots {
			if left--; left >= 0 {
				d.play(t, f, b, r, sum)
			}
		}
	}
}

func (d drawing) play(t *testing.T, f topology.Form, b lint.Bound, r lint.RootBound, sum *tally) {
	how := b.Outcomes[d.IntN(len(b.Outcomes))]
	m := b.Methods
	if m == topology.AllMethods {
		m = topology.Safe
	}
	s, best := newSystem(f, b.Service, how, m), 0
	for i := range 48 {
		s.fortune = fortune{rnd: d.Rand, waits: i % 3, slow: i%2 == 1, wants: i%4 < 3, way: d.Uint64(), within: d.chance(0.5)}
		if d.ours && i >= 12 {
			s.lost = pick(d, 0, 0.5, 1)
		}
		s.count, s.capped = 0, false
		s.request(r.Root, r.Outside)
		if best = max(best, s.count); float64(s.count) > r.Worst {
			text := fmt.Sprintf("%s fails with %v: %d attempts for one %v request at %s (outside %v), the bound is %v "+
				"(proved %v)\n%+v\n%s",
				b.Service, how, s.count, b.Methods, r.Root, r.Outside, r.Worst, r.Proved, s.fortune, f.YAML())
			if sum.exceeded++; sum.smallest == "" || len(text) < len(sum.smallest) {
				sum.smallest = text
			}
			return
		}
		if float64(best) == r.Worst {
			break
		}
	}
	sum.bounds++
	switch {
	case float64(best) == r.Worst || math.IsInf(r.Worst, 1) && best >= most:
		sum.equal++
	default:
		sum.below[fmt.Sprintf("%d of %v", best, r.Worst)]++
	}
	if float64(best) < r.Proved {
		sum.below["proved"]++
	}
}

func TestNothingExceedsTheBound(t *testing.T) {
	for name, c := range map[string]struct {
		ours   bool
		graphs int
	}{"layers of any product": {false, 70_000}, "the guards themselves": {true, 30_000}} {
		t.Run(name, func(t *testing.T) {
			n := c.graphs
			if testing.Short() {
				n /= 200
			}
			sum := tally{below: map[string]int{}}
			for seed := range n {
				d := drawing{rand.New(rand.NewPCG(uint64(seed), 1)), c.ours}
				d.hold(t, d.form(), &sum)
			}
			t.Logf("%d graphs, %d bounds, %d of them attained (%.2f %%), %d in cycles, %d proved ones not attained",
				sum.graphs, sum.bounds,
				sum.equal, 100*float64(sum.equal)/float64(sum.bounds), sum.cycles, sum.below["proved"])
			if sum.equal*10 < sum.bounds*9 {
				t.Errorf("%d of %d bounds are attained, want 90 %%", sum.equal, sum.bounds)
			}
			if sum.exceeded > 0 {
				t.Errorf("%d bounds are exceeded, for example:\n%s", sum.exceeded, sum.smallest)
			}
		})
	}
}
