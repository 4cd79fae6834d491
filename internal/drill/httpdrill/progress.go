package httpdrill

import (
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/figures"
)

// Progress is the last second of an act.
type Progress struct {
	Act     string
	Elapsed time.Duration // since the end of the warm-up; 0 and less within it
	Trouble bool          // something is wrong
	Fault   string        // what is, in words
	Over    string        // once it no longer is: what the trouble is called, "outage"
	Waiting int           // in the service's queue now
	drill.Second
}

// progress is what happened in the second before a time.
func (a *act) progress(at time.Duration) Progress {
	p := Progress{
		Act: a.variant.Name, Elapsed: at, Trouble: a.config.trouble(at - 1),
		Second: a.record.Between(a.front, at-time.Second, at),
	}
	for _, s := range a.servers[a.front] {
		p.Waiting += s.Waiting()
	}
	if a.breaks() {
		p.Circuits.All = len(a.clients)
	}
	var now []string
	for i := range a.config.Scenario.Faults {
		if f := &a.config.Scenario.Faults[i]; at > f.At && at <= f.At+f.For {
			now = append(now, faultText(f))
		}
	}
	p.Fault = strings.Join(now, ", ")
	if _, end := a.config.Scenario.Trouble(); at > end {
		p.Over = a.config.troubleWord()
	}
	return p
}

// String is one line of live progress: what share of the requests was answered in that second, what extra attempts
// added to the load, how the circuits stand, and what that means.
func (p Progress) String() string {
	head := fmt.Sprintf("%-9s %3.0f s", p.Act, p.Elapsed.Seconds())
	if p.Elapsed <= 0 {
		return head + "  warming up"
	}
	return fmt.Sprintf("%s  answered %s  extra load %s  circuits %s  %s", head, figures.PadLeft(p.Share(), 5),
		figures.PadLeft(p.ExtraLoad(), 6), figures.Pad(p.Circuits.String(), 20), p.words())
}

// words says how things stand, and why.
func (p *Progress) words() string {
	if p.Well() {
		return "all is well"
	}
	if p.Answering() {
		return "requests are answered" + joined(", and ", p.nearly())
	}
	text := "not all is answered"
	if p.Answered == 0 {
		text = "nothing is answered"
	}
	switch {
	case p.Fault != "":
		text += ": " + p.Fault
	case p.Over != "":
		text += ", though the " + p.Over + " is over"
	}
	return text + joined("; ", p.because())
}

// nearly says what is not well though requests are answered.
func (p *Progress) nearly() (all []string) {
	if p.Circuits.Away() > 0 {
		all = append(all, "not every circuit is closed")
	}
	if p.TooMany() {
		all = append(all, "many attempts are extra ones")
	}
	return all
}

// because says where requests are that are not answered.
func (p *Progress) because() (all []string) {
	if p.Refused > 0 {
		all = append(all, figures.Thousands(float64(p.Refused))+" refused by the guard")
	}
	if p.Waiting > 0 {
		all = append(all, figures.Thousands(float64(p.Waiting))+" wait in the service's queue")
	}
	return all
}

// joined is the parts behind an opening, nothing if there are none.
func joined(opening string, parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return opening + strings.Join(parts, ", ")
}
