package traces

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// Read returns the services and calls that the spans of all documents show together.
func Read(docs []source.Document, _ source.Assume) topology.Form {
	r := &reading{byID: map[string]int{}, callees: map[edge]*seen{}, handled: map[string]int{},
		grpc: map[string]bool{},
		own:  map[string][]float64{}}
	for _, d := range docs {
		spans, err := decode(d.Data)
		if err != nil {
			r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: d.At(1, 0), Subject: "spans",
				Text: "the spans could not all be read: " + err.Error(), Fix: "export the file again; what was read was used"})
		}
		r.spans = append(r.spans, spans...)
		r.at = cmp.Or(r.at, d.At(1, 0))
	}
	r.index()
	r.count()
	r.write()
	return r.form
}

type edge struct{ from, to string }

// seen is what the spans show of one edge.
type seen struct {
	first    int // tries that are no repeats
	most     int // tries of one call
	repeats  int
	database bool
	starts   time.Duration  // of first tries, after their requests began, added up
	overlaps map[string]int // first tries that began while a call of another service ran, by that service
}

type reading struct {
	form     topology.Form
	spans    []span
	at       topology.Position
	byID     map[string]int
	children [][]int
	callees  map[edge]*seen
	edges    []edge
	handled  map[string]int // requests of a service
	grpc     map[string]bool
	own      map[string][]float64
	orphans  int
}

func (r *reading) index() {
	for i := range r.spans {
		r.byID[r.spans[i].trace+"/"+r.spans[i].id] = i
	}
	r.children = make([][]int, len(r.spans))
	for i := range r.spans {
		s := &r.spans[i]
		if s.parent == "" {
			continue
		}
		if p, ok := r.byID[s.trace+"/"+s.parent]; ok && p != i {
			r.children[p] = append(r.children[p], i)
		} else {
			r.orphans++
		}
	}
}

func (r *reading) count() {
	for i := range r.spans {
		s := &r.spans[i]
		if s.kind == server && s.service != "" {
			r.grpc[s.service] = r.grpc[s.service] || s.grpc
			r.handled[s.service]++
			r.own[s.service] = append(r.own[s.service], r.ownTime(i).Seconds())
			r.request(i)
		}
		if s.kind == client && s.parent == "" && s.service != "" { // a program that nobody calls
			if to := r.to(i); to != "" {
				r.handled[s.service]++
				r.edge(edge{s.service, to}).first++
			}
		}
	}
}

// try is one client span of a request, and the service it went to.
type try struct {
	span int
	to   string
}

// request notes the calls that one server span made.
func (r *reading) request(i int) {
	tries := r.tries(i, nil, 0)
	slices.SortStableFunc(tries, func(a, b try) int { return cmp.Compare(r.spans[a.span].start, r.spans[b.span].start) })
	type call struct{ to, name string }
	last := map[call]int{}                // the last try of a call: its span
	run := map[call]int{}                 // tries of the call that runs
	running := map[string]time.Duration{} // services, and when their calls end
	for _, t := range tries {
		s := &r.spans[t.span]
		e := r.edge(edge{r.spans[i].service, t.to})
		c := call{t.to, s.name}
		before, again := last[c]
		again = again && (s.resend > 0 || r.spans[before].failed && r.spans[before].end <= s.start)
		if run[c]++; !again {
			run[c] = 1
			e.first++
			e.starts += s.start - r.spans[i].start
			for other, until := range running {
				if other != t.to && until > s.start {
					e.overlaps[other]++
				}
			}
		} else {
			e.repeats++
		}
		if s.resend > 0 {
			run[c] = max(run[c], s.resend+1)
		}
		e.most = max(e.most, run[c])
		e.database = e.database || s.database
		r.grpc[t.to] = r.grpc[t.to] || s.grpc && !s.database
		last[c], running[t.to] = t.span, max(running[t.to], s.end)
	}
}

// tries returns the client spans below a server span, through spans inside the same process.
func (r *reading) tries(i int, out []try, depth int) []try {
	for _, c := range r.children[i] {
		s := &r.spans[c]
		switch {
		case s.kind == client:
			if to := r.to(c); to != "" {
				out = append(out, try{c, to})
			}
		case s.kind == server && s.service != r.spans[i].service: // its caller wrote no client span
			out = append(out, try{c, s.service})
		case s.kind != server && depth < 100:
			out = r.tries(c, out, depth+1)
		}
	}
	return out
}

// to returns the service that a client span called.
func (r *reading) to(i int) string {
	for _, c := range r.children[i] {
		if s := &r.spans[c]; s.service != "" && s.service != r.spans[i].service {
			return s.service
		}
	}
	return r.spans[i].peer
}

func (r *reading) edge(e edge) *seen {
	if r.callees[e] == nil {
		r.callees[e] = &seen{overlaps: map[string]int{}}
		r.edges = append(r.edges, e)
	}
	return r.callees[e]
}

// ownTime returns how long a server span ran without waiting for a call of its own.
func (r *reading) ownTime(i int) time.Duration {
	s := &r.spans[i]
	var waits [][2]time.Duration
	for _, t := range r.tries(i, nil, 0) {
		c := &r.spans[t.span]
		waits = append(waits, [2]time.Duration{max(c.start, s.start), min(c.end, s.end)})
	}
	slices.SortFunc(waits, func(a, b [2]time.Duration) int { return cmp.Compare(a[0], b[0]) })
	own, until := max(0, s.end-s.start), s.start
	for _, w := range waits {
		if from := max(w[0], until); w[1] > from {
			own -= w[1] - from
			until = w[1]
		}
	}
	return max(0, own)
}

func (r *reading) write() {
	if r.orphans > 0 {
		r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F702", At: r.at, Subject: "spans without parents",
			Text: fmt.Sprintf("%d of %d spans name a parent that the file does not have, so their calls are not seen",
				r.orphans, len(r.spans)), Fix: "export whole traces"})
	}
	names := make([]string, 0, len(r.handled))
	for name := range r.handled {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		own := r.own[name]
		slices.Sort(own)
		r.form.Services = append(r.form.Services, topology.Service{Name: name, At: r.at,
			Speaks:    r.spoken(name),
			OwnTime:   r.quantile(own, 50),
			OwnTime99: r.quantile(own, 99)})
	}
	slices.SortStableFunc(r.edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(r.begin(a), r.begin(b)))
	})
	order := 0
	for i, e := range r.edges {
		switch {
		case i == 0 || r.edges[i-1].from != e.from:
			order = 1
		case 2*r.callees[e].overlaps[r.edges[i-1].to] <= r.callees[e].first:
			order++
		}
		r.writeEdge(e, r.callees[e], order)
	}
}

// begin returns when calls of an edge begin, after their requests did, in the mean.
func (r *reading) begin(e edge) time.Duration {
	s := r.callees[e]
	return s.starts / time.Duration(max(1, s.first))
}

// spoken returns what the spans say that a service speaks.
func (r *reading) spoken(service string) (v topology.Value[string]) {
	if r.grpc[service] {
		v = topology.Write(topology.SpeaksGRPC, r.at)
	}
	return v
}

// quantile returns a percentile of sorted times, absent when there are none.
func (r *reading) quantile(sorted []float64, percent int) topology.Value[time.Duration] {
	if len(sorted) == 0 {
		return topology.Value[time.Duration]{}
	}
	return topology.Write(seconds(sorted[len(sorted)*percent/100]), r.at)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

func (r *reading) writeEdge(e edge, s *seen, order int) {
	if is := r.spoken(e.to); s.database || !is.IsZero() {
		r.form.Services = append(r.form.Services, topology.Service{Name: e.to, At: r.at, Database: s.database, Speaks: is})
	}
	r.form.Calls = append(r.form.Calls, topology.Call{From: e.from, To: e.to, At: r.at,
		PerRequest: topology.Write(float64(s.first)/float64(r.handled[e.from]), r.at),
		Order:      topology.Write(order, r.at)})
	if s.repeats > 0 {
		r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F701", At: r.at,
			Subject: "retries from " + e.from + " to " + e.to,
			Text: fmt.Sprintf("the traces show retries from %s to %s: %d for %d calls, at most %d tries of one call",
				e.from, e.to, s.repeats, s.first, s.most),
			Fix: "if no file below says who sends them, a library in " + e.from + " does; add it to a calls: file"})
	}
}
