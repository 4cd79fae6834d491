package kafkadrill

import (
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/figures"
)

// Progress is how it goes, once a second.
type Progress struct {
	Elapsed time.Duration // since the first message
	Acts    []ActProgress
}

// ActProgress is one act within the last second. Offered are the messages that were written, Answered those that were
// handled, and Extra the attempts beyond one for each that was written.
type ActProgress struct {
	Name string
	drill.Second
	Dead int // in the second
	Left int // written and not done
}

// progress is the second that is just over.
func (a *act) progress() ActProgress {
	b := a.recorder.lastSecond()
	p := ActProgress{Name: a.name, Dead: b.dead, Left: a.recorder.left(), Second: drill.Second{
		Offered: b.written, Answered: b.handled, Attempts: b.attempts, Extra: max(b.attempts-b.written, 0),
	}}
	if a.guard.Breaker() != nil {
		p.Circuits.All = 1
		p.Circuits.Add(a.guard.State().Breaker.State.String(), 1)
	}
	return p
}

// String is one line: of each act what share of the messages was handled, what more attempts than messages add to the
// load, how its circuit stands, and how many messages are given up and left.
func (p Progress) String() string {
	text := fmt.Sprintf("%4.0f s", p.Elapsed.Seconds())
	for _, a := range p.Acts {
		text += fmt.Sprintf("   %s %s %s %4d %5d", figures.PadLeft(a.Share(), 7), figures.PadLeft(a.ExtraLoad(), 7),
			figures.PadLeft(a.Circuits.String(), 9), a.Dead, a.Left)
	}
	return text
}

// Heading is what stands above the lines of progress.
func (p Progress) Heading() string {
	names, columns := strings.Repeat(" ", 6), strings.Repeat(" ", 6)
	for _, a := range p.Acts {
		names += fmt.Sprintf("   %-36s", a.Name+", in each second:")
		columns += fmt.Sprintf("   %7s %7s %9s %4s %5s", "handled", "extra", "circuit", "dead", "left")
	}
	return strings.TrimRight(names, " ") + "\n" + columns
}
