package dlq

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// silence is how long a replay may say nothing before another may start.
const silence = time.Minute

// spot is a place in the dead-letter topic.
type spot struct {
	partition int32
	offset    int64
}

// mark is what the audit says of a letter. Names are kept once, in the ledger: there may be a million marks.
type mark struct {
	at      int64  // Unix time, ms
	seq     uint64 // which was later: clocks of brokers go back
	by, run uint32
	topic   uint32 // its ID; 0 if the audit does not say
	state   uint8  // index into States
	sent    bool   // it is replayed, or it was when it was deleted
}

// run is a replay, as the audit tells it.
type run struct {
	spec      *Spec
	progress  Progress
	session   string                     // the one that was granted last
	lastSign  time.Time                  // of that session
	cancelled string                     // who asked for its end
	watched   map[string]map[int32]int64 // where it began to look for failures; nil if it did not say
}

// ledger folds the audit: the state of every letter that is not waiting as it came, and who may replay. It only
// decides; the audit's order decides for everybody alike. It is safe for concurrent use.
type ledger struct {
	topic string // the dead-letter topic

	mu      sync.Mutex
	id      uint32 // of the dead-letter topic; 0 if it is not known
	folded  uint64
	marks   map[spot]mark
	twins   map[twin]mark // of those that say which letter it was: for all records of the letter
	names   []string
	numbers map[string]uint32
	notes   map[string]string
	runs    map[string]*run
	active  string // ID of the run that holds the topic
	imports map[string]time.Time
}

func newLedger(topic string) *ledger {
	return &ledger{topic: topic, marks: map[spot]mark{}, twins: map[twin]mark{}, names: []string{""},
		numbers: map[string]uint32{"": 0},
		notes:   map[string]string{}, runs: map[string]*run{}, imports: map[string]time.Time{}}
}

// fold takes the next record of the audit.
func (l *ledger) fold(a *Action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch a.Kind {
	case ReplayStart:
		l.start(a)
	case ReplayAlive, ReplayStop:
		l.sign(a)
	case CancelAsked:
		if r := l.runs[a.ID]; r != nil && !r.progress.Phase.Ended() {
			r.cancelled = a.By
		}
	case Sent, Edited:
		l.mark(a, Replayed)
	case Delete:
		l.mark(a, Deleted)
	case Restore:
		l.mark(a, Waiting)
	case Noted:
		l.notes[a.Group] = a.Text
	case Imported:
		l.imports[a.Hash] = a.Time
	}
}

// start grants a replay, unless another one holds the topic, has given a sign of life lately and is not to be taken
// over.
func (l *ledger) start(a *Action) {
	if a.ID == "" || a.Session == "" || a.Spec == nil {
		return
	}
	if holder := l.runs[l.active]; holder != nil && !a.TakeOver && a.Time.Sub(holder.lastSign) < silence {
		return
	}
	r := l.runs[a.ID]
	if r == nil {
		r = &run{spec: a.Spec, progress: Progress{ID: a.ID, Started: a.Time, By: a.By}}
		l.runs[a.ID] = r
	}
	r.session, r.lastSign, r.cancelled = a.Session, a.Time, ""
	r.progress.Phase, r.progress.Why, r.progress.Updated = Running, "", a.Time
	l.active = a.ID
}

// sign takes a sign of life or the end of the session that holds a replay; those of sessions that lost it count for
// nothing.
func (l *ledger) sign(a *Action) {
	r := l.runs[a.ID]
	if r == nil || r.session != a.Session {
		return
	}
	r.lastSign = a.Time
	if r.watched == nil {
		r.watched = a.Watched
	}
	if a.Progress != nil {
		started, by := r.progress.Started, r.progress.By
		r.progress = *a.Progress
		r.progress.ID, r.progress.Started, r.progress.By, r.progress.Updated = a.ID, started, by, a.Time
	}
	if a.Kind == ReplayStop {
		if !r.progress.Phase.Ended() {
			r.progress.Phase = Stopped
		}
		r.session = ""
		if l.active == a.ID {
			l.active = ""
		}
	}
}

func (l *ledger) mark(a *Action, s State) {
	place, err := letter.ParsePlace(a.Place)
	if err != nil || place.Topic != l.topic {
		return
	}
	at, same := spot{place.Partition, place.Offset}, parseTwin(a.Twin)
	was, _ := l.of(at, same)
	sent := s == Replayed || s == Deleted && was.sent
	if s == Waiting && was.sent && States[was.state] == Deleted {
		s, sent = Replayed, true // it comes back as what it was: a message that was sent must not wait to be sent again
	}
	l.folded++
	m := mark{at: a.Time.UnixMilli(), seq: l.folded, by: l.number(a.By), run: l.number(a.ID), topic: l.number(a.TopicID),
		state: uint8(slices.Index(States, s)), sent: sent}
	l.marks[at] = m
	if same != (twin{}) {
		l.twins[same] = m
	}
}

// of is the newest mark of a letter, whichever of its records it was made at.
func (l *ledger) of(place spot, same twin) (m mark, marked bool) {
	m, marked = l.at(place)
	if t, ok := l.twins[same]; ok && same != (twin{}) && l.current(t) && (!marked || t.seq >= m.seq) {
		return t, true
	}
	return m, marked
}

// at is the mark of a letter, if there is one that is about this topic and not about one of that name before it.
func (l *ledger) at(place spot) (m mark, marked bool) {
	m, marked = l.marks[place]
	return m, marked && l.current(m)
}

// current reports whether a mark is about this topic, and not about one of its name before it.
func (l *ledger) current(m mark) bool { return m.topic == l.id || m.topic == 0 || l.id == 0 }

// called takes the ID of the dead-letter topic.
func (l *ledger) called(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id = l.number(id)
}

func (l *ledger) topicID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[l.id]
}

func (l *ledger) number(name string) uint32 {
	n, known := l.numbers[name]
	if !known {
		n = uint32(len(l.names))
		l.names, l.numbers[name] = append(l.names, name), n
	}
	return n
}

// tell fills in what the audit says of an entry.
func (l *ledger) tell(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.State = Waiting
	if m, marked := l.of(spot{e.At.Partition, e.At.Offset}, e.twin); marked {
		e.State, e.Changed = States[m.state], time.UnixMilli(m.at).UTC()
		e.By, e.Replay = l.names[m.by], l.names[m.run]
	}
}

// prune forgets letters that retention has taken. A second record of one may be younger than what was done to the
// first: it is remembered for twice the retention, or for ever if there is none.
func (l *ledger) prune(begin map[int32]span, now time.Time, retention time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if retention > 0 {
		maps.DeleteFunc(l.twins, func(_ twin, m mark) bool { return now.Sub(time.UnixMilli(m.at)) > 2*retention })
	}
	maps.DeleteFunc(l.marks, func(at spot, _ mark) bool { return at.offset < begin[at.partition].from })
}

// holds reports whether a session may go on: it was granted, no other took its place, and nobody asked for its end.
func (l *ledger) holds(id, session string) (granted bool, cancelledBy string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.runs[id]
	if r == nil || l.active != id || r.session != session {
		return false, ""
	}
	return true, r.cancelled
}

// sent reports whether a replay has sent a letter.
func (l *ledger) sent(id string, at spot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	number, known := l.numbers[id]
	m, marked := l.at(at)
	return known && marked && m.run == number && States[m.state] == Replayed
}

// sentBy counts the letters that a replay has sent and nobody has touched since.
func (l *ledger) sentBy(id string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	number, known := l.numbers[id]
	for place := range l.marks {
		if m, marked := l.at(place); marked && known && m.run == number && States[m.state] == Replayed {
			n++
		}
	}
	return n
}

// replay reads one, as it is at now: one that has been silent for too long has ended, whatever it says.
func (l *ledger) replay(id string, now time.Time) (p Progress, spec *Spec, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.runs[id]
	if r == nil {
		return p, nil, false
	}
	return r.at(now, l.active), r.spec, true
}

// watched is where a replay began to look for messages that fail again; nil if nobody knows.
func (l *ledger) watched(id string) map[string]map[int32]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.runs[id]; r != nil {
		return r.watched
	}
	return nil
}

// holder reads the replay that holds the topic at now.
func (l *ledger) holder(now time.Time) (p Progress, ok bool) {
	p, _, ok = l.replay(l.holding(), now)
	return p, ok && !p.Phase.Ended()
}

func (l *ledger) holding() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active
}

// replays lists all, the newest first.
func (l *ledger) replays(now time.Time) []Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Progress, 0, len(l.runs))
	for _, r := range l.runs {
		list = append(list, r.at(now, l.active))
	}
	slices.SortFunc(list, func(a, b Progress) int { return b.Started.Compare(a.Started) })
	return list
}

func (r *run) at(now time.Time, active string) Progress {
	p := r.progress
	p.Skips = maps.Clone(p.Skips)
	if !p.Phase.Ended() && (active != p.ID || now.Sub(r.lastSign) >= silence) {
		p.Phase, p.Why = Stopped, "it has given no sign of life since "+r.lastSign.UTC().Format(time.RFC3339)+": resume it"
	}
	return p
}

func (l *ledger) note(group string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notes[group]
}

func (l *ledger) imported(hash string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.imports[hash]
	return at, ok
}
