package letter

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Read reads a record of a retry topic or a dead-letter topic. What cannot be read is left zero and told in problems;
// the record is a Letter all the same. Key, Value and, where nothing had to be left out, Headers are shared with r.
func Read(r *kgo.Record) (l Letter, problems []error) {
	rd := reader{rec: r, values: map[string][]byte{}}
	l = Letter{Original: nowhere, ReplayedFrom: Place{}, Delivery: 1, Key: r.Key, Value: r.Value}
	rd.sort()
	l.Headers = rd.originals
	switch {
	case rd.has[ours]:
		l.Dialect = Abate
		rd.spring(&l, prefixSpring)
		rd.own(&l)
	case rd.has[deadSpring]:
		l.Dialect = Spring
		rd.spring(&l, springDLT)
	case rd.has[retry]:
		l.Dialect = Spring
		rd.spring(&l, prefixSpring)
	case rd.has[elsewhere]:
		rd.elsewhere(&l)
	}
	if l.Dialect != Abate {
		rd.strays(l.Original.Topic)
	}
	l.Replays, _ = rd.number(headReplays)
	l.ReplayedFrom = rd.place(headReplayedFrom)
	l.Identity = rd.identity(&l)
	l.Imported = rd.text(headImported)
	return l, rd.problems
}

// ofReplay reports the headers that a replayed message has, wherever it fails next, and of those that say who the
// message is.
func ofReplay(name string) bool {
	return name == headReplays || name == headReplayedFrom || name == headReplayedTo || name == headIdentity ||
		name == headImported
}

// ReadMain reads a record of a topic that is no retry topic: only how often it was replayed, who it is then, and its
// own headers. Whatever else it says about failures was copied there by hand with a record, and is about another one:
// with Abate's headers it is left out, else nobody can tell whose it is, and it stays.
func ReadMain(r *kgo.Record) (l Letter, problems []error) {
	rd := reader{rec: r, values: map[string][]byte{}, main: true}
	rd.sort()
	l = Letter{Original: Place{r.Topic, r.Partition, r.Offset}, Delivery: 1, Key: r.Key, Value: r.Value,
		Headers: rd.originals}
	rd.strays(r.Topic)
	l.Replays, _ = rd.number(headReplays)
	l.ReplayedFrom = rd.place(headReplayedFrom)
	l.Identity = IdentityOf(r)
	if _, there := rd.values[headIdentity]; there {
		if id := rd.identity(&Letter{}); id.Known() {
			l.Identity = id
		}
	}
	return l, rd.problems
}

// reader sorts the headers of one record by whose they are.
type reader struct {
	rec       *kgo.Record
	originals []kgo.RecordHeader
	values    map[string][]byte
	has       [neverCopied + 1]bool
	main      bool // not of a retry topic
	problems  []error
}

// sort finds the original headers and the values of all others.
func (rd *reader) sort() {
	all := rd.rec.Headers
	n, found := rd.boundary()
	known := rd.families(all[n:], found)
	kept := all[:n:n]
	for _, h := range all[n:] {
		switch f := familyOf(h.Key); {
		case f != foreign && f <= known:
			rd.take(h, f)
		case f != neverCopied:
			kept = append(kept, h)
		}
	}
	for i, h := range kept {
		if familyOf(h.Key) == neverCopied {
			kept = without(kept[:i:i], kept[i:])
			break
		}
	}
	rd.originals = kept
}

// families says up to which family headers are about failures. A record of Spring's retry topics may well carry the
// kafka_dlt- headers of another chain as its own, but not the other way round; the same holds for all that is further
// down.
func (rd *reader) families(h []kgo.RecordHeader, boundary bool) (known family) {
	if rd.main && !boundary {
		return ours
	}
	known = elsewhere
	for i := range h {
		// the first is in both of Spring's, the others in messages of any chain
		if f := familyOf(h[i].Key); f != foreign && f < known && h[i].Key != springGroup && !ofReplay(h[i].Key) {
			known = f
		}
	}
	return max(known, retry) // Abate writes Spring's names, too
}

func (rd *reader) take(h kgo.RecordHeader, f family) {
	rd.has[f] = rd.has[f] || !ofReplay(h.Key)
	if _, there := rd.values[h.Key]; there && firstWins(h.Key) {
		return
	}
	rd.values[h.Key] = h.Value
}

// without drops the Java objects.
func without(kept, rest []kgo.RecordHeader) []kgo.RecordHeader {
	for _, h := range rest {
		if familyOf(h.Key) != neverCopied {
			kept = append(kept, h)
		}
	}
	return kept
}

// boundary is the number of headers that are the message's own beyond doubt: those before abate-letter, which says how
// many they are. The last that is right counts: one of the message's own may be right, too, by accident or when one of
// the Java objects before it was left out.
func (rd *reader) boundary() (at int, found bool) {
	last, count := -1, 0
	for i := len(rd.rec.Headers) - 1; i >= 0; i-- {
		h := &rd.rec.Headers[i]
		if h.Key != headLetter {
			continue
		}
		n, err := strconv.Atoi(string(h.Value))
		switch {
		case err != nil || n < 0:
			rd.problem(headLetter, "%s is not a number of headers; it is left out", quote(string(h.Value)))
		case n == i:
			return i, true
		case last < 0:
			last, count = i, n
		}
	}
	if last < 0 {
		return 0, false
	}
	rd.problem(headLetter, "%d headers stand before it, not %d: somebody has added or removed some of the message's own",
		last, count)
	return last, true
}

func (rd *reader) problem(header, format string, args ...any) {
	rd.problems = append(rd.problems, newProblem(rd.rec, header, format, args...))
}

func (rd *reader) text(name string) string { return string(validText(rd.values[name])) }

func (rd *reader) time(name string) time.Time {
	b, there := rd.values[name]
	t, ok := parseTime(string(b))
	if there && !ok {
		rd.problem(name, "%s is not a time like 2026-01-31T15:04:05.000Z; it is left out", quote(string(b)))
	}
	if !ok {
		return time.Time{}
	}
	return t
}

// number reads a decimal number from 0 up. ok is false if it is missing or wrong.
func (rd *reader) number(name string) (n int, ok bool) {
	b, there := rd.values[name]
	if !there {
		return 0, false
	}
	v, err := strconv.ParseInt(string(b), 10, 32)
	if err != nil || v < 0 {
		rd.problem(name, "%s is not a number from 0 to 2147483647; it is left out", quote(string(b)))
		return 0, false
	}
	return int(v), true
}

func (rd *reader) place(name string) Place {
	b, there := rd.values[name]
	if !there {
		return Place{}
	}
	p, err := ParsePlace(string(b))
	if err != nil {
		rd.problem(name, "%w; it is left out", err)
		return Place{}
	}
	return p
}

// Wait is how long from now until the letter is due in a retry topic with this delay: 0 if it is due, or says nothing
// of it, or says something that cannot be: more than 24 h and the delay ahead. (The clock that wrote it may be ahead of
// this one, but not by a day.)
func (l *Letter) Wait(now time.Time, delay time.Duration) time.Duration {
	wait := l.Due.Sub(now)
	if l.Due.IsZero() || wait < 0 || wait > 24*time.Hour+delay {
		return 0
	}
	return wait
}
