package abateadmin

import (
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/abate-go/abate/core"
)

// detail is GET /guard and GET /gate: all there is about one name.
type detail struct {
	At  int64 `json:"at"`
	Row Row   `json:"row"`
	// Series are the last five minutes, second by second, the oldest first.
	Series series `json:"series"`
	Strip  string `json:"strip"`
	// Attempts by how they ended, and Refusals by reason: those of the last minute and of the last five.
	Attempts []cause    `json:"attempts"`
	Refusals []cause    `json:"refusals"`
	Errors   []pastText `json:"errors"`
	Events   []pastText `json:"events"`
	Facts    []fact     `json:"facts"`
	Policy   string     `json:"policy,omitempty"`
}

type series struct {
	First   []int     `json:"first"`
	Extra   []int     `json:"extra"`
	Good    []int     `json:"good"`
	Bad     []int     `json:"bad"`
	Refused []int     `json:"refused"`
	Took    []float64 `json:"took"` // milliseconds that attempts took
}

type cause struct {
	Name   string `json:"name"`
	Minute int    `json:"minute"`
	Five   int    `json:"five"`
}

// pastText is an event or an error.
type pastText struct {
	At    int64  `json:"at"`
	Class string `json:"class,omitempty"`
	Text  string `json:"text"`
}

// fact is a line of the list of what is known now.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	About string `json:"about,omitempty"`
}

// shownEvents is how many events are shown.
const shownEvents = 40

func (p *Page) guard(w http.ResponseWriter, r *http.Request) error { return p.detail(w, r, false) }
func (p *Page) gate(w http.ResponseWriter, r *http.Request) error  { return p.detail(w, r, true) }

func (p *Page) detail(w http.ResponseWriter, r *http.Request, gate bool) error {
	name := r.URL.Query().Get("name")
	n, ok := p.find(name, gate)
	if !ok {
		what := "guard"
		if gate {
			what = "gate"
		}
		return refuse(http.StatusNotFound, "there is no %s %q: it may have gone with the last reload", what,
			cut(name, maxText))
	}
	now := core.Now()
	h := n.history()
	d := detail{
		At: p.wall(now), Row: p.row(&n, now), Series: h.series(now), Strip: h.notes.strip(now, span),
		Errors: []pastText{}, Events: []pastText{},
	}
	for _, f := range h.faults.all() {
		d.Errors = append(d.Errors, pastText{p.wall(f.At), f.Class, f.Text})
	}
	all := h.notes.list()
	for _, e := range slices.Backward(all[max(len(all)-shownEvents, 0):]) {
		d.Events = append(d.Events, pastText{At: p.wall(e.At), Text: e.Text})
	}
	if gate {
		d.Attempts, d.Refusals = h.counted(now, shedCauses, gateCauses, gateCause)
		d.Facts = gateFacts(n.gate, now)
	} else {
		d.Attempts, d.Refusals = h.counted(now, refusals, len(guardCauses), func(i int) string { return guardCauses[i] })
		g := n.guards[len(n.guards)-1]
		d.Facts = guardFacts(g, &n, now)
		if p.config.Format != nil {
			d.Policy = comments(learned(g.Describe(), g.StateAt(now))) + string(p.config.Format(name, g.Describe()))
		}
	}
	writeJSON(w, http.StatusOK, d)
	return nil
}

// find returns the subject of a name that is shown.
func (p *Page) find(name string, gate bool) (n named, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if gate {
		s := p.gates[name]
		if s == nil || s.gate == nil {
			return n, false
		}
		return named{name: name, gate: s.gate, gates: s.record}, true
	}
	s := p.guards[name]
	if s == nil || len(s.guards) == 0 {
		return n, false
	}
	return named{name: name, record: s.record, guards: slices.Clone(s.guards)}, true
}

func (h *history) series(now time.Duration) (s series) {
	for ago := span - 1; ago >= 0; ago-- {
		t := h.second(now, ago)
		s.First, s.Extra = append(s.First, t.First), append(s.Extra, t.Extra)
		s.Good, s.Bad, s.Refused = append(s.Good, t.Good), append(s.Bad, t.Bad), append(s.Refused, t.Refused)
		s.Took = append(s.Took, round(float64(t.Spent)/float64(max(t.Answers, 1))/1000, 1))
	}
	return s
}

// counted lists causes: ends before from, refusals from there to to.
func (h *history) counted(now time.Duration, from, to int, name func(int) string) (ends, refused []cause) {
	ends, refused = []cause{}, []cause{}
	for i := range to {
		// The step of now is not full yet: a minute is it and six before.
		c := cause{name(i), h.causes(now, i, 60/stepSize+1), h.causes(now, i, steps)}
		if i == 0 { // successes have no count of their own
			minute, five := h.window(now, 60), h.window(now, span-1)
			c.Minute, c.Five = minute.Answers-minute.Fail, five.Answers-five.Fail
		}
		switch {
		case i < from:
			ends = append(ends, c)
		case c.Five > 0:
			refused = append(refused, c)
		}
	}
	sort.SliceStable(refused, func(i, j int) bool { return refused[i].Five > refused[j].Five })
	return ends, refused
}
