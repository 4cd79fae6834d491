package abateadmin

import (
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
)

// Snapshot is what GET /state answers, and an event of GET /events.
type Snapshot struct {
	// At is the moment that it shows, in milliseconds since 1970, on the clock of all times in it.
	At int64 `json:"at"`
	// Full reports whether Rows has all rows. Otherwise it has those that have changed, and Gone names those that were
	// removed.
	Full bool   `json:"full"`
	Rows []Row  `json:"rows"`
	Gone []Name `json:"gone,omitempty"`
	// Title is the Config's, and what Begin said.
	Title string `json:"title"`
	run   int    // which run it is about
	// May reports whether whoever asks may change something, and How, if not, what to do about it.
	May bool   `json:"may"`
	How string `json:"how,omitempty"`
	// Asks reports whether the reader may do nothing yet, but could with a token.
	Asks bool `json:"asks"`
	// Reloads reports whether there is a policy file.
	Reloads bool `json:"reloads"`
	// Path, Loaded and Problem are about it: Problem is why the file as it is now is not in force.
	Path    string `json:"path,omitempty"`
	Loaded  int64  `json:"loaded,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Acts are what was done from the page, the newest last.
	Acts []Act `json:"acts"`
	// Sparks are the last minute of each row that had one, in the first event of a stream.
	Sparks []Spark `json:"sparks,omitempty"`
}

// Name names a row.
type Name struct {
	Name string `json:"name"`
	Gate bool   `json:"gate,omitempty"`
}

// Act is something that was done from the page.
type Act struct {
	At   int64  `json:"at"`
	Who  string `json:"who,omitempty"`
	Text string `json:"text"`
	// Problem is why it was not done.
	Problem string `json:"problem,omitempty"`
}

// Spark is the last minute of a row, second by second, the oldest first.
type Spark struct {
	Name
	Attempts []int `json:"attempts"`
	Good     []int `json:"good"`
	Bad      []int `json:"bad"` // failed or refused
	// Strip has a digit for each second: 0 all circuits closed, 1 some on their way back, 2 some open.
	Strip string `json:"strip"`
}

// sparkSeconds is how long the line of a row is.
const sparkSeconds = 60

// named is a subject with its name, cut loose from the page's lock.
type named struct {
	name   string
	record *record
	guards []*abate.Guard
	gate   *inbound.Gate
	gates  *gateRecord
}

// subjects are all that are shown, by name, guards before gates.
func (p *Page) subjects() []named {
	p.mu.Lock()
	all := make([]named, 0, len(p.guards)+len(p.gates))
	for name, s := range p.guards {
		if len(s.guards) > 0 {
			all = append(all, named{name: name, record: s.record, guards: slices.Clone(s.guards)})
		}
	}
	for name, s := range p.gates {
		if s.gate != nil {
			all = append(all, named{name: name, gate: s.gate, gates: s.record})
		}
	}
	p.mu.Unlock()
	sort.SliceStable(all, func(i, j int) bool {
		if a, b := all[i], all[j]; (a.gate == nil) == (b.gate == nil) {
			return a.name < b.name
		}
		return all[i].gate == nil
	})
	return all
}

func (n *named) history() *history {
	if n.gate != nil {
		return &n.gates.history
	}
	return &n.record.history
}

// row makes the row as it is now.
func (p *Page) row(n *named, now time.Duration) Row {
	if n.gate != nil {
		return gateRow(n.name, now, &n.gates.history, n.gate, int(n.gates.running.Load()))
	}
	f := facts{hand: n.record.hand(), running: int(n.record.calls.Load()), retrying: int(n.record.waiting.Load())}
	for _, g := range n.guards {
		s, policy := g.StateAt(now), g.Describe()
		f.states, f.policy = append(f.states, s), policy
		f.taken += s.Bulkhead.InFlight
		if !policy.CircuitBreaker.Enabled() {
			f.off++
		}
		if policy.RetryBudget.Enabled() || policy.Budget != nil {
			f.budgets++
		}
	}
	f.running = max(f.running, f.taken)
	return guardRow(n.name, now, &n.record.history, f, p.wall)
}

// rows makes all rows.
func (p *Page) rows(now time.Duration) (rows []Row, all []named) {
	all = p.subjects()
	rows = make([]Row, len(all))
	for i := range all {
		rows[i] = p.row(&all[i], now)
	}
	return rows, all
}

// head is a Snapshot without rows, for whoever asks.
func (p *Page) head(now time.Duration, r *http.Request) Snapshot {
	s := Snapshot{At: p.wall(now), May: p.config.Known != nil && p.config.Known(r), Reloads: p.config.Reload != nil,
		Rows: []Row{}}
	if s.Asks = p.config.Known != nil && !s.May; !s.May {
		s.How = p.config.How
	}
	if p.config.File != nil {
		f := p.config.File()
		s.Path, s.Loaded = f.Path, f.Loaded.UnixMilli()
		if f.Err != nil {
			s.Problem = f.Err.Error()
		}
	}
	p.mu.Lock()
	s.Acts = append([]Act{}, p.acts...)
	s.Title, s.run = p.title(), p.run
	p.mu.Unlock()
	return s
}

// sparks is the last minute of those rows in which something happened.
func sparks(all []named, now time.Duration) []Spark {
	sparks := []Spark{}
	for i := range all {
		h := all[i].history()
		s := Spark{Name: Name{all[i].name, all[i].gate != nil}}
		busy := false
		for ago := sparkSeconds - 1; ago >= 0; ago-- {
			t := h.second(now, ago)
			busy = busy || t != (tally{})
			s.Attempts, s.Good, s.Bad = append(s.Attempts, t.First+t.Extra), append(s.Good, t.Good),
				append(s.Bad, t.Bad+t.Refused)
		}
		s.Strip = h.notes.strip(now, sparkSeconds)
		for _, mark := range s.Strip {
			busy = busy || mark != stripClosed
		}
		if busy {
			sparks = append(sparks, s)
		}
	}
	return sparks
}

// changes are the rows that are not as they were, and the names that are no more. Both lists are sorted as subjects
// are.
func changes(before, now []Row) (changed []Row, gone []Name) {
	type key struct {
		name string
		gate bool
	}
	was := make(map[key]*Row, len(before))
	for i := range before {
		was[key{before[i].Name, before[i].Gate}] = &before[i]
	}
	for i := range now {
		k := key{now[i].Name, now[i].Gate}
		if old := was[k]; old == nil || *old != now[i] {
			changed = append(changed, now[i])
		}
		delete(was, k)
	}
	for i := range before {
		if k := (key{before[i].Name, before[i].Gate}); was[k] != nil {
			gone = append(gone, Name{k.name, k.gate})
		}
	}
	return changed, gone
}
