package report

import (
	"strings"

	"github.com/abate-go/abate/sim"
)

// gates returns the strips of the gates in front of services: what they refused, and how much they let in at once.
func (v *view) gates() []*chart {
	var out []*chart
	for i := range v.run.Services {
		s := &v.run.Services[i]
		if refused := refusedAt(s); highest(refused) > 0 {
			c := v.strip(s.Name+": refused at the gate", v.run.BinSeconds, highest(refused), unitRate)
			c.area("open", v.run.BinSeconds, refused)
			c.add("refused", "open", unitRate, v.run.BinSeconds, refused, anything)
			out = append(out, c.done("Attempts per second that the gate of "+s.Name+" refused, over the run."))
		}
		if varies(s.Limit) {
			c := v.strip(s.Name+": concurrency limit", v.run.BinSeconds, highest(s.Limit), unitNone)
			c.area("bulkhead", v.run.BinSeconds, s.Limit)
			c.add("let in at once", "bulkhead", unitNone, v.run.BinSeconds, s.Limit, anything)
			out = append(
				out, c.done("Attempts that the gates of "+s.Name+" let in at once, all replicas together, over the run."))
		}
	}
	return out
}

// refusedAt is what the gates of a service refused, for whatever reason.
func refusedAt(s *sim.ServiceSeries) []float64 {
	out := make([]float64, len(s.Shed))
	for i := range out {
		out[i] = s.Shed[i] + at(s.RateLimited, i)
	}
	return out
}

// gateNotes says why gates refused attempts.
func (v *view) gateNotes() []string {
	var notes []string
	for i := range v.run.Services {
		s := &v.run.Services[i]
		var parts []string
		for _, r := range s.Refusals {
			parts = append(parts, r.Reason+" "+number(r.Count))
		}
		if len(parts) > 0 {
			notes = append(notes, "Refused at the gate of "+s.Name+": "+strings.Join(parts, ", ")+".")
		}
	}
	return notes
}
