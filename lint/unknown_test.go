package lint_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// hide makes a value of the form unknown, as if a template stood there.
func hide[T topology.Scalar](d drawing, v *topology.Value[T]) {
	if d.chance(0.15) {
		*v = topology.NotKnown[T]("a template", topology.Position{})
	}
}

// hidden is a form of which some values are not known any more.
func (d drawing) hidden(f topology.Form) topology.Form {
	g, err := topology.Parse("t.yaml", f.YAML()) // a copy
	if err != nil {
		panic(err)
	}
	for i := range g.Services {
		s := &g.Services[i]
		hide(d, &s.AnswersWith)
		hide(d, &s.Cancels)
		hide(d, &s.CallTree)
	}
	for i := range g.Calls {
		hide(d, &g.Calls[i].PerRequest)
		for j := range g.Calls[i].Layers {
			l := &g.Calls[i].Layers[j]
			hide(d, &l.PerTry)
			hide(d, &l.Overall)
			hide(d, &l.Cancels)
			hide(d, &l.Backoff.First)
			hide[string](d, &l.Backoff.Jitter)
			hide(d, &l.Hedge.Copies)
			hide[time.Duration](d, &l.Hedge.Delay)
			for k := range l.Repeats {
				hide(d, &l.Repeats[k].Tries)
			}
		}
	}
	return g
}

func TestWhatIsProvedHoldsWhateverTheUnknownValuesAre(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 300 // seconds are enough to find a value that is taken the wrong way
	}
	wrong, smallest := 0, ""
	for seed := range n {
		d := drawing{rand.New(rand.NewPCG(uint64(seed), 3)), seed%3 == 0}
		known := d.form()
		f := d.hidden(known)
		numbers := map[string]lint.RootBound{}
		each := func(f topology.Form, do func(key string, r lint.RootBound)) {
			for _, b := range lint.Amplification(f, lint.Options{}).Bounds {
				for _, o := range b.Outcomes {
					for _, r := range b.Roots {
						do(b.Service+o.String()+b.Methods.String()+r.Root, r)
					}
				}
			}
		}
		each(known, func(key string, r lint.RootBound) { numbers[key] = r })
		each(f, func(key string, r lint.RootBound) {
			k := numbers[key]
			const tiny = 1e-9
			if r.Proved > k.Worst+tiny || r.Worst < k.Worst-tiny {
				text := fmt.Sprintf("%s: with unknown values %+v, with these known %+v\n%s\n%s", key, r, k, f.YAML(), known.YAML())
				if wrong++; smallest == "" || len(text) < len(smallest) {
					smallest = text
				}
			}
		})
	}
	if wrong > 0 {
		t.Errorf("%d bounds, for example %s", wrong, smallest)
	}
}
