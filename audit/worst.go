package audit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// Worst is the path on which one request becomes the most attempts.
type Worst struct {
	Service string // that fails
	Root    string // at which the request arrives
	Outcome topology.Outcome
	Outside bool // it is requests for Root that are repeated, before they are there
	Unsafe  bool // the number is that of requests that must not be carried out twice
	// Proved is what the files say can happen, and Most what cannot be exceeded whatever applications answer.
	Proved, Most float64
	Known        bool // no unknown value has part in Most
	Hops         []lint.Hop
	Cycle        []string
	// Unsaid is on what it depends how many attempts there are between Proved and Most, in words.
	Unsaid []string
	// Guessed reports that Most adds up calls of which only addresses in variables tell: one request need not make all.
	Guessed bool
}

// anyRepeats reports whether a layer of a form repeats calls, or may.
func anyRepeats(f *topology.Form) bool {
	found := false
	eachLayer(f, func(l *topology.Layer) {
		many := func(r topology.Repeat) bool { return r.Tries.IsUnknown() || r.Tries.Or(1) > 1 }
		found = found || !lint.Local(l) && (slices.ContainsFunc(l.Repeats, many) || !l.Hedge.Copies.IsZero())
	})
	return found
}

// unknownTries reports whether nobody knows of a layer of a form how often it tries.
func unknownTries(f *topology.Form) bool {
	found := false
	eachLayer(f, func(l *topology.Layer) {
		unknown := func(r topology.Repeat) bool { return r.Tries.IsUnknown() }
		found = found || !lint.Local(l) && (slices.ContainsFunc(l.Repeats, unknown) || l.Hedge.Copies.IsUnknown())
	})
	return found
}

// circle returns a way round that calls go, above some service.
func circle(a *lint.Amplified) []string {
	for _, b := range a.Bounds {
		if len(b.Cycle) > 0 {
			return b.Cycle
		}
	}
	return nil
}

// worst returns the worst path of all services, nil when nothing is repeated anywhere.
func worst(a *lint.Amplified) *Worst { return worstBut(a, nil) }

// way is from where to where requests go.
type way struct{ service, root string }

// worstBut returns the worst path but for those that were given up.
func worstBut(a *lint.Amplified, given map[way]bool) *Worst {
	var best *Worst
	var bound lint.Bound
	var root lint.RootBound
	for _, b := range a.Bounds {
		for _, r := range b.Roots {
			w := worstOf(b, r)
			if w == nil || given[way{w.Service, w.Root}] || best != nil && !w.worseThan(best) {
				continue
			}
			best, bound, root = w, b, r
		}
	}
	if best != nil {
		best.Hops = a.Path(bound, root, true)
		best.Unsaid = a.Unsaid(best.Hops)
		best.Guessed = a.Guessed(best.Hops, bound, root)
	}
	return best
}

// worstOf returns what a bound says of a root, without its path; nil if nothing is repeated on it.
func worstOf(b lint.Bound, r lint.RootBound) *Worst {
	w := &Worst{Service: b.Service, Root: r.Root, Outcome: b.Outcomes[0], Unsafe: b.Methods == topology.Unsafe,
		Outside: r.Outside,
		Proved:  r.Proved, Most: r.Worst, Known: r.Known, Cycle: b.Cycle}
	if !r.Repeated || w.Most <= 1 || !w.Known && w.Proved <= 1 {
		return nil
	}
	return w
}

// worseThan compares what is known: where a value could not be read, that is what is proved.
func (w *Worst) worseThan(other *Worst) bool {
	a, b := w.certain(), other.certain()
	return a > b || a == b && w.Proved > other.Proved
}

func (w *Worst) certain() float64 {
	if w.Known {
		return w.Most
	}
	return w.Proved
}

// Headline is the worst path in one sentence.
func (w *Worst) Headline() string {
	from := "one request at " + w.Root
	if w.Root == "" {
		from = "one request"
	}
	to := w.Service
	if w.Outside {
		from = "one request for " + w.Root
	}
	if w.Outside && w.Root == w.Service {
		to = "it"
	}
	if len(w.Cycle) > 0 {
		return fmt.Sprintf("nothing bounds what %s becomes: its calls go in a circle, %s", from,
			strings.Join(w.Cycle, " → "))
	}
	if !w.Known && !math.IsInf(w.Proved, 1) {
		return fmt.Sprintf(
			"%s becomes at least %s attempts at %s when it %s; some values could not be read, so it may be more",
			from, times(w.Proved), to, Fails(w.Outcome))
	}
	s := fmt.Sprintf("%s can become %s attempts at %s when it %s", from, times(w.certain()), to, Fails(w.Outcome))
	if w.sooner() {
		s += ", unless a breaker on the way opens first"
	}
	if w.Guessed {
		s += ", if it makes every call whose address a variable holds"
	}
	if w.Known && w.Proved < w.Most {
		s += ". " + w.between()
	}
	return s
}

// sooner reports whether a breaker may end the tries of a layer of the path before all of them are made.
func (w *Worst) sooner() bool {
	return slices.ContainsFunc(w.Hops, func(h lint.Hop) bool {
		return slices.ContainsFunc(h.Factors, func(f lint.Factor) bool { return lint.Sooner(f) != "" })
	})
}

// between says what is proved, and what decides how much of the rest happens.
func (w *Worst) between() string {
	s := fmt.Sprintf("Proved: at least %s, at most %s", times(w.Proved), times(w.Most))
	if math.IsInf(w.Most, 1) {
		s = fmt.Sprintf("Proved: at least %s, and nothing bounds them", times(w.Proved))
	}
	const most = 2 // that are named
	switch n := len(w.Unsaid); {
	case n == 0:
		return s + "; how many it is depends on how long everything takes"
	case n <= most:
		return s + "; no file says " + strings.Join(w.Unsaid, ", nor ") + ", which decides"
	default:
		return fmt.Sprintf("%s; no file says %s, nor %s, which decide", s, w.Unsaid[0], count(n-1, "thing")+" like it")
	}
}

// share is how many of the attempts come along the path, 0 if all of them do or nobody knows. Other paths bring the
// rest.
func (w *Worst) share() float64 {
	n := 1.0
	for _, h := range w.Hops {
		n *= multiplied(h.Call, h)
	}
	if !w.Known || len(w.Hops) == 0 || math.IsInf(n, 1) || math.Round(n) >= math.Round(w.Most) {
		return 0
	}
	return n
}

// ways says that the path is one of several, when it is.
func (w *Worst) ways() string {
	n := w.share()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("the way that brings most, %s of the %s", times(n), times(w.Most))
}

// times writes a number of attempts.
func times(n float64) string {
	switch {
	case math.IsInf(n, 1) || n == topology.Unbounded:
		return "any number of"
	case n >= 1e6:
		return fmt.Sprintf("%.1e", n)
	case n >= 100 || n == math.Trunc(n):
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.1f", n)
}

// Fails says in words how a service fails: "hangs", "answers 503".
func Fails(o topology.Outcome) string {
	switch o {
	case topology.Refused:
		return "refuses connections"
	case topology.ResetUnsent:
		return "breaks connections before it has a request"
	case topology.ResetSent:
		return "breaks connections"
	case topology.Hang:
		return "hangs"
	}
	return "answers " + o.String()
}

// layerWords says what a layer does to a call: "client resilience4j: 3 tries (app.yml:7:22)".
func layerWords(f lint.Factor) string {
	l := f.Layer
	s := l.Kind.String()
	if l.Product != "" {
		s += " " + l.Product
	}
	switch {
	case math.IsNaN(f.Times):
		s += ": an unknown number of tries"
	case f.Times == 1:
		s += ": 1 try"
	default:
		s += ": " + times(f.Times) + " tries"
	}
	if source := triesSource(l); source != "" {
		s += " (" + source + ")"
	}
	if sooner := lint.Sooner(f); sooner != "" {
		s += "; " + sooner
	}
	if more := lint.Kept(l, f.Times); more != "" {
		s += "; " + more
	}
	return s
}

// triesSource says where the most tries of a layer come from.
func triesSource(l *topology.Layer) string {
	best, at := 1, l.At.String()
	for i := range l.Repeats {
		if n := l.Repeats[i].Tries.Or(1); n > best {
			best, at = n, l.Repeats[i].Tries.Source()
		}
	}
	return at
}
