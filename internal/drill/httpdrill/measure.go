package httpdrill

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
)

// Numbers are what a run came to, of the drill or of the simulator, by the definitions of package engine. A share is
// NaN where there was nothing to share; a recovery that never came is +Inf.
type Numbers struct {
	Offered    float64    // requests
	Attempts   float64    // at the service that the clients call
	Refused    float64    // requests that a guard refused without an attempt
	TurnedAway float64    // attempts that the service refused
	PerOffered float64    // attempts per request
	PerSent    float64    // attempts per request of which there was one at all
	Goodput    [3]float64 // before, during and after the trouble: of the requests offered, how many were answered
	Recovery   float64    // seconds from the end of the trouble
	Queue      float64    // most requests that waited at once in the service
	Waste      float64    // of the time that its workers were held: for callers that had left
	Collapsed  bool
}

// NumbersOf reads a record; front is the number of the service that the clients call.
func NumbersOf(r *engine.Record, front int) Numbers {
	service := r.Services[front].Name
	value := func(measure, subject string, w expect.Window) float64 {
		return r.Value(&expect.Expectation{Measure: measure, Subject: subject, Window: w})
	}
	f := &r.Fleets[0]
	bins := len(f.Offered)
	n := Numbers{
		Offered:  float64(total(f.Offered, 0, bins)),
		Attempts: float64(total(r.Services[front].Arrived, 0, bins)),
		Refused:  float64(total(f.Refused, 0, bins)), TurnedAway: float64(total(r.Services[front].Rejected, 0, bins)),
		Recovery: value("recovery", "", expect.All), Queue: value("queue", service, expect.All),
		Waste: value("waste", service, expect.All), Collapsed: value("collapse", "", expect.All) > 0,
	}
	n.PerOffered, n.PerSent = n.Attempts/n.Offered, n.Attempts/(n.Offered-n.Refused)
	for i, w := range windows {
		n.Goodput[i] = value("goodput", "", w)
	}
	return n
}

var windows = [...]expect.Window{expect.Before, expect.During, expect.After}

// Recovered reports whether goodput came back.
func (n *Numbers) Recovered() bool { return !math.IsNaN(n.Recovery) && !math.IsInf(n.Recovery, 0) }

// finite returns v, or 0 where there is no such number.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// known returns v, or nil where there is no such number.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// plotWidth is how many columns of bins a plot has at most.
const plotWidth = 64

// columnWidth returns the width of a column that shows length in at most plotWidth of them: half a second, or a
// multiple of it.
func columnWidth(length time.Duration) time.Duration {
	const half = 500 * time.Millisecond
	return max(half, roundUp((length+plotWidth-1)/plotWidth, half))
}

func roundUp(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// ratio is a / b, and 0 where there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
