package abateadmin

import (
	"io"
	"net/http"
	"time"

	"github.com/abate-go/abate"
)

// Page parts that tests ask at times of their own.
var (
	Redact = redact
	Script = script
	Style  = style
	HTML   = html
)

// MaxReaders is how many may look at once.
const MaxReaders = maxReaders

// RowAt is the row of a guard at a time.
func (p *Page) RowAt(name string, gate bool, now time.Duration) Row {
	n, _ := p.find(name, gate)
	return p.row(&n, now)
}

// StripAt is what the circuits of a guard did in the last n seconds.
func (p *Page) StripAt(name string, now time.Duration, n int) string {
	return p.guards[name].record.notes.strip(now, n)
}

// FirstAt and ExtraAt are the attempts of the second that began ago seconds before that of now, and of n seconds.
func (p *Page) SentAt(name string, now time.Duration, ago int) (firsts, extra int) {
	t := p.guards[name].record.second(now, ago)
	return t.First, t.Extra
}

// CausesAt counts one cause by its name over n steps of ten seconds.
func (p *Page) CausesAt(name, cause string, now time.Duration, n int) int {
	for i := range guardCauses {
		if guardCauses[i] == cause {
			return p.guards[name].record.causes(now, i, n)
		}
	}
	return -1
}

// SetTick is how often a stream tells what is new.
func (p *Page) SetTick(d time.Duration) { p.tick = d }

// Hosts reports whether a page on loopback answers to a name.
func (p *Page) Hosts(host string) bool { return p.hosts(host) }

// ParseOrder reads the body of POST /override.
func ParseOrder(body io.Reader) (guard string, override abate.Override, err error) {
	o, err := parseOrder(body)
	if err != nil {
		return "", "", err
	}
	return o.Guard, *o.Override, nil
}

// Word is one place of a ring.
type Word struct{ w word }

// Add counts in a lap; Counts reads.
func (w *Word) Add(lap uint64, one bool) {
	n := uint64(second)
	if one {
		n = first
	}
	w.w.add(lap, n)
}

// Fill sets both counts.
func (w *Word) Fill(lap, a, b uint64) { w.w.v.Store(lap<<sumBits | a<<countBits | b) }

// Sum adds to one large number, and Total reads it.
func (w *Word) Sum(lap, n uint64) { w.w.sum(lap, n) }

// Total reads the number.
func (w *Word) Total(lap uint64) int { return w.w.total(lap) }

// Counts reads both counts.
func (w *Word) Counts(lap uint64) (a, b int) { return w.w.counts(lap) }

// Place and Begin are where a time belongs.
func Place(at time.Duration) (lap uint64, index int) { return place(at) }

// Begin is when the second of a time began.
func Begin(at time.Duration) time.Duration { return begin(at) }

// SetSees has the page show data to those with a token, until it is taken away.
func (p *Page) SetSees(authorization string, away interface{ Load() bool }) {
	p.config.Sees = func(r *http.Request) bool { return r.Header.Get("Authorization") == authorization && !away.Load() }
}

// CircuitNext and CircuitCause are what is said of circuits.
var CircuitNext = circuitNext

// CircuitCause is why a circuit opened, in words.
func (r *Row) CircuitCause(why string) string { return r.circuitCause(why) }

// Ahead is what a closed circuit would open for.
var Ahead = ahead
