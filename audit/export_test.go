package audit

import (
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// Promised is the form as the changes are to make it.
func (r *Result) Promised() topology.Form { return r.fixed }

// What the costs of losses are measured with, for the sentences that say it.
const (
	CostOutage = costOutage
	CostAfter  = costAfter
	CostRuns   = costRuns
)

// ProposeWithin is Propose with as much effort as is given.
func (r *Result) ProposeWithin(files []importer.File, o lint.Options, effort int) {
	r.propose(files, o, effort)
}

// Long takes runs of more events for long ones.
func (o SimulateOptions) Long(events int64) SimulateOptions {
	o.many = events
	return o
}
