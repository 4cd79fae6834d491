package dlq

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// Group are dead letters with one error class and one normalised trace or message.
type Group struct {
	// ID is a short hash of class and pattern: the same on every machine and every day.
	ID    string `json:"id"`
	Class string `json:"class"`
	// Pattern is the top of the trace or, without one, the message, with numbers, ids and quoted text left out.
	Pattern string `json:"pattern"`
	// Traced reports that Pattern is of the trace.
	Traced bool `json:"traced,omitempty"`
	// Message is that of the newest letter, cut.
	Message string    `json:"message"`
	Count   int       `json:"count"`
	First   time.Time `json:"first"` // when the oldest and the newest were written
	Last    time.Time `json:"last"`
	// Topics counts by original topic, beyond a hundred as others; States by state.
	Topics map[string]int `json:"topics"`
	States map[State]int  `json:"states"`
	// Again counts those that had been replayed before and are dead letters again.
	Again int `json:"again"`
	// Arrivals counts by time, in equal slots from the first to the last letter of all groups listed, for a small picture.
	Arrivals []int `json:"arrivals"`
	// Note is the last note that somebody left.
	Note string `json:"note,omitempty"`

	times arrivals
}

const (
	// mostGroups bounds the memory of Groups, whatever stands in the messages; what comes after that many is counted
	// together.
	mostGroups = 10_000
	otherGroup = "others"
	longestOf  = 200 // bytes of a message that is shown
	mostTopics = 100 // of a group that are counted apart: whoever writes a letter may name any
)

// identify finds what a letter's group is known by.
func identify(l *letter.Letter) (id, text string) {
	if text = tracePattern(l.Trace); text == "" {
		text = pattern(l.Message)
	}
	if text == "" && l.Class == "" {
		text = "no error is recorded"
	}
	sum := sha256.Sum256([]byte(l.Class + "\n" + text))
	return hex.EncodeToString(sum[:5]), text
}

func groupID(l *letter.Letter) string {
	id, _ := identify(l)
	return id
}

// Groups lists the groups of what f chooses, the largest first. Beyond 10,000 groups the rest is one, called others.
func (d *Desk) Groups(ctx context.Context, f Filter) ([]Group, error) {
	found := map[string]*Group{}
	err := d.choose(ctx, f, func(e *Entry) bool {
		g := found[e.Group]
		if g == nil && len(found) >= mostGroups {
			g = found[otherGroup]
		}
		if g == nil {
			g = newGroup(e, len(found) >= mostGroups)
			found[g.ID] = g
		}
		g.add(e)
		return true
	})
	if err != nil {
		return nil, err
	}
	list := make([]Group, 0, len(found))
	for _, g := range found {
		g.Note = d.ledger.note(g.ID)
		list = append(list, *g)
	}
	draw(list)
	slices.SortFunc(list, func(a, b Group) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.ID, b.ID)) })
	return list, nil
}

func newGroup(e *Entry, other bool) *Group {
	g := &Group{Topics: map[string]int{}, States: map[State]int{}, First: e.Written}
	if other {
		g.ID, g.Pattern = otherGroup, "all groups beyond the first 10,000"
		return g
	}
	g.ID, g.Pattern = identify(&e.Letter)
	g.Class, g.Traced = letter.Cut(e.Letter.Class, letter.MaxClass), g.Pattern == tracePattern(e.Letter.Trace)
	return g
}

func (g *Group) add(e *Entry) {
	g.Count++
	topic := e.Letter.Original.Topic
	if _, there := g.Topics[topic]; !there && len(g.Topics) >= mostTopics {
		topic = otherGroup
	}
	g.Topics[topic]++
	g.States[e.State]++
	if e.Letter.Replays > 0 {
		g.Again++
	}
	if e.Written.Before(g.First) {
		g.First = e.Written
	}
	if !e.Written.Before(g.Last) {
		g.Last, g.Message = e.Written, cut(e.Letter.Message, longestOf)
	}
	g.times.add(e.Written)
}

// draw fills in the arrivals of all groups, in slots that they share.
func draw(list []Group) {
	if len(list) == 0 {
		return
	}
	first, last, coarsest := list[0].First, list[0].Last, uint(0)
	for i := range list {
		if list[i].First.Before(first) {
			first = list[i].First
		}
		if list[i].Last.After(last) {
			last = list[i].Last
		}
		coarsest = max(coarsest, list[i].times.shift)
	}
	begin, shift, slots := common(first, last, coarsest)
	for i := range list {
		list[i].Arrivals = list[i].times.between(begin, shift, slots)
	}
}
