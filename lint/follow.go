package lint

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// group is the calls of a service that run at once.
type group struct {
	order int
	steps []step
	last  time.Duration // when all can have been tried
	vague bool          // nobody knows when
	most  time.Duration // until all have failed, or succeeded at last
}

func (g *group) add(s *state, n, mean float64) {
	g.last, g.vague = max(g.last, s.last()), g.vague || s.vague
	for _, st := range s.started() {
		g.steps = append(g.steps, step{st.at, product(st.n, n), product(st.mean, mean)})
	}
	g.most = max(g.most, times(n, s.longest))
}

// follow lets the groups of calls run one after the other: all but the last can succeed, at the last try.
func (e *evaluation) follow(out *state, groups map[int]*group, svc *topology.Service) {
	sorted := make([]*group, 0, len(groups))
	for _, g := range groups {
		sorted = append(sorted, g)
	}
	slices.SortFunc(sorted, func(a, b *group) int { return cmp.Compare(a.order, b.order) })
	at, most := time.Duration(0), max(svc.OwnTime.Or(0), svc.OwnTime99.Or(0))
	for _, g := range sorted {
		out.vague = out.vague || g.vague
		for _, s := range g.steps {
			out.steps = append(out.steps, step{later(at, s.at), s.n, s.mean})
		}
		most = later(most, g.most)
		if !e.a.worst { // else its calls may succeed at once, so that the next ones begin before all has been tried here
			if at = later(at, g.last); g.vague {
				at = never
			}
		}
	}
	out.steps = e.a.tidy(out.steps)
	out.longest = most
	for i := range out.fails { // the last of several can be the one that fails
		if f := &out.fails[i]; f.least != never {
			f.most = max(f.most, most)
		}
	}
}

// answer adds what a service's callers see when a call of its own fails with f.
func (e *evaluation) answer(out *state, f failure, svc *topology.Service) {
	if f.least == never { // the call does not end, so neither does the service
		out.fail(f)
		return
	}
	gives, known := answers(svc.AnswersWith)
	switch {
	case known && len(gives) == 0:
		out.fail(f) // the same
	case known:
		f.seen = gives[0]
		if f.seen != fine {
			out.fail(f)
		}
	case e.a.worst: // it may answer anything, or pass on what it saw
		out.fail(f)
		for _, o := range topology.AllOutcomes() {
			if o != topology.Refused && o != topology.ResetUnsent && (svc.Codes() || !o.GRPC()) {
				f.seen = o
				out.fail(f)
			}
		}
	} // else it is not even proved that it fails
}

// fine is the answer of a service that can do without what failed.
const fine = topology.Outcome(254)

// answers reads what a service answers when a call of its own has failed: an outcome, none for "the same", or fine when
// it answers well all the same. It is not known when nobody says, or says what is no answer.
func answers(v topology.Value[string]) (gives []topology.Outcome, known bool) {
	word, ok := v.Get()
	if !ok {
		return nil, false
	}
	if strings.EqualFold(word, "same") {
		return nil, true
	}
	var o topology.Outcome
	for _, spelling := range []string{word, strings.ToUpper(word), strings.ToLower(word)} {
		if o.UnmarshalText([]byte(spelling)) == nil {
			return []topology.Outcome{o}, true
		}
	}
	if len(word) == 3 {
		switch word[0] {
		case '2', '3':
			return []topology.Outcome{fine}, true
		case '4':
			return []topology.Outcome{topology.S4xx}, true
		case '5':
			return []topology.Outcome{topology.S500}, true
		}
	}
	return nil, false
}

// paid returns how many of a call's extra tries its budget pays for on average.
func (g *graph) paid(e *edge, l *topology.Layer) func(extra float64) float64 {
	most := math.Inf(1)
	b := &l.Budget
	switch ratio, known := b.Ratio.Get(); {
	case !b.Tokens.IsZero() && !b.Tokens.IsUnknown():
		most = 0 // while everything fails, a throttle lets no retry pass
	case known:
		most = ratio
		if floor := b.PerSecond.Or(0); floor > 0 || b.PerSecond.IsUnknown() {
			most += floor * g.instances(e) / g.rateOf(e)
			if b.PerSecond.IsUnknown() || math.IsNaN(most) {
				most = math.Inf(1)
			}
		}
	}
	return func(extra float64) float64 { return min(extra, most) }
}

// instances returns how many instances make a call; infinitely many when nobody says.
func (g *graph) instances(e *edge) float64 {
	if e.from >= 0 {
		if n, known := g.services[e.from].Replicas.Get(); known && n > 0 {
			return float64(n)
		}
	}
	return math.Inf(1)
}

// rateOf returns how many first tries of a call there are per second; 0 when nobody says.
func (g *graph) rateOf(e *edge) float64 {
	if e.from < 0 {
		return g.services[e.to].Rate.Or(0)
	}
	return g.rate[e.from] * e.call.PerRequest.Or(1)
}

// byCallee is services that wait for their turn: those that are called before those that call them.
type byCallee struct {
	g    *graph
	list []int
}

func (q *byCallee) Len() int           { return len(q.list) }
func (q *byCallee) Less(i, j int) bool { return q.g.order[q.list[i]] > q.g.order[q.list[j]] }
func (q *byCallee) Swap(i, j int)      { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *byCallee) Push(x any)         { q.list = append(q.list, x.(int)) }
func (q *byCallee) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}
