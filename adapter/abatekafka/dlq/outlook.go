package dlq

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// landed is where a letter was sent, and which consumer group reads it there: empty for any.
type landed struct {
	topic     string
	partition int32
	offset    int64
	group     string
	id        string // Kafka's ID of the topic; empty if nobody knows it
}

// lane is a partition as one group reads it.
type lane struct {
	group, topic string
	partition    int32
}

// outlook follows the letters that were sent until the group that reads them has committed an offset behind each. It
// only decides: it is given what is committed.
type outlook struct {
	open  map[spot]landed // sent, and not committed yet
	first map[lane]mile   // where the measurement of each began
	last  map[lane]int64
	moved time.Time     // when a commit moved
	gone  map[spot]bool // sent to a topic that was deleted before anybody had got to them
}

// mile is what was committed at a moment.
type mile struct {
	offset int64
	at     time.Time
}

func newOutlook() *outlook {
	return &outlook{open: map[spot]landed{}, first: map[lane]mile{}, last: map[lane]int64{}, gone: map[spot]bool{}}
}

func (o *outlook) sent(at spot, to landed) { o.open[at] = to }

func (o *outlook) begin(now time.Time) {
	clear(o.first)
	clear(o.last)
	o.moved = now
}

// lanes are those that are waited for, by group.
func (o *outlook) lanes() map[string][]lane {
	seen := map[lane]bool{}
	all := map[string][]lane{}
	for _, l := range o.open {
		if at := (lane{l.group, l.topic, l.partition}); !seen[at] {
			seen[at] = true
			all[l.group] = append(all[l.group], at)
		}
	}
	return all
}

// committed takes what a group has committed, -1 for nothing. Commits may go back: somebody has reset the group's
// offsets by hand. The way from there is as long as it is, and its pace is measured anew; so is that of a group that
// has just committed for the first time, which says nothing of how fast it reads.
func (o *outlook) committed(at lane, offset int64, now time.Time) {
	was, known := o.last[at]
	if known && offset != was {
		o.moved = now
	}
	if !known || was < 0 || offset < was {
		o.first[at] = mile{offset, now}
	}
	o.last[at] = offset
}

// vanish sets the letters apart whose topic is another one of its name now: its offsets begin with 0 again, so that no
// commit says what became of them. ids are those of the topics there are.
func (o *outlook) vanish(ids map[string]string) {
	for at, l := range o.open {
		if id := ids[l.topic]; id != "" && l.id != "" && id != l.id {
			delete(o.open, at)
			o.gone[at] = true
		}
	}
}

// topics are those that letters are waited for in.
func (o *outlook) topics() (list []string) {
	for _, l := range o.open {
		if !slices.Contains(list, l.topic) {
			list = append(list, l.topic)
		}
	}
	return list
}

// lost counts the letters that are gone with their topic, but for those that have failed again before that.
func (o *outlook) lost(again map[spot]bool) (n int) {
	for at := range o.gone {
		if !again[at] {
			n++
		}
	}
	return n
}

// settle forgets the letters that are behind their group's commits: handled, or forwarded, which the topics that are
// watched tell.
func (o *outlook) settle() {
	for at, l := range o.open {
		if o.last[lane{l.group, l.topic, l.partition}] > l.offset {
			delete(o.open, at)
		}
	}
}

// waiting counts the letters that nobody has got to, but for those that have failed again.
func (o *outlook) waiting(again map[spot]bool) (n int) {
	for at := range o.open {
		if !again[at] {
			n++
		}
	}
	return n
}

// unread names the topics of which the groups have committed nothing at all.
func (o *outlook) unread() (topics []string) {
	read, all := map[string]bool{}, map[string]bool{}
	for _, l := range o.open {
		all[l.topic] = true
		if offset, known := o.last[lane{l.group, l.topic, l.partition}]; known && offset >= 0 {
			read[l.topic] = true
		}
	}
	for topic := range all {
		if !read[topic] {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// eta is how long it will take until the last letter is behind the commits, at the pace since the measurement began; ok
// is false when nothing of a partition has moved, so that nobody knows.
func (o *outlook) eta(now time.Time) (left time.Duration, ok bool) {
	behind := map[lane]int64{}
	for _, l := range o.open {
		at := lane{l.group, l.topic, l.partition}
		behind[at] = max(behind[at], l.offset+1-max(o.last[at], 0))
	}
	for at, offsets := range behind {
		rate := float64(o.last[at]-o.first[at].offset) / now.Sub(o.first[at].at).Seconds()
		if !(rate > 0) || math.IsInf(rate, 0) {
			return 0, false
		}
		left = max(left, time.Duration(min(float64(offsets)/rate, 1e9)*float64(time.Second)))
	}
	return left, true
}

// groups names those that are waited for, for people.
func (o *outlook) groups() string {
	var names []string
	for _, l := range o.open {
		name := "any group that reads " + l.topic
		if l.group != "" {
			name = "group " + l.group
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// why says what is waited for.
func (o *outlook) why(waiting int, seen watched, now time.Time) string {
	text := fmt.Sprintf("%d still waiting for %s", waiting, o.groups())
	if topics := o.unread(); len(topics) > 0 {
		text += ", which has committed nothing of " + strings.Join(topics, ", ")
		if seen.absent {
			text += ": nobody reads it"
		}
		return text
	}
	if seen.members != "" {
		return text + ", " + seen.members
	}
	if eta, ok := o.eta(now); ok {
		return text + ", for about " + eta.Round(time.Second).String() + " more at its pace"
	}
	return text + ", whose commits do not move"
}
