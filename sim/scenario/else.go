package scenario

import (
	"slices"

	"github.com/abate-go/abate/sim/distribution"
)

// Else is a service that is called instead of one that failed. A plain name means the defaults.
type Else struct {
	// To is the service called.
	To string `yaml:"to" short:"true" example:"payment-db"`
	// On are the failures of the call before it that lead here: "miss" (the cache has not got it), "timeout" (no answer in
	// time), "connection" (refused or broken), "overload" (503, 429 or 504), "error" (500, 502 or 409), "guard" (the
	// caller's own policy refused to send it). Default: all of them.
	On []string `yaml:"on" enum:"miss|timeout|connection|overload|error|guard" example:"[miss, timeout]"`
	// Latency of the network, one way. Default: none.
	Latency distribution.Distribution `yaml:"latency" example:"40ms"`
	// Pool is how many connections each caller's instance holds at most. Default: no limit, and connecting costs nothing.
	Pool int `yaml:"pool" range:"1..1000000" example:"20"`
}

// The failures that lead to another service.
const (
	OnMiss       = "miss"
	OnTimeout    = "timeout"
	OnConnection = "connection"
	OnOverload   = "overload"
	OnError      = "error"
	OnGuard      = "guard"
)

// Takes reports whether a failure of the call before leads here.
func (e *Else) Takes(failure string) bool { return len(e.On) == 0 || slices.Contains(e.On, failure) }

// Instead is the i-th of the calls that are made when c fails. It is made at most as often as c.
func (c *Call) Instead(i int) Call {
	e := &c.Else[i]
	return Call{To: e.To, Times: c.Times, Share: c.Share, Optional: c.Optional, Latency: e.Latency, Pool: e.Pool,
		Priority: c.Priority, Naive: c.Naive}
}

// Edges are all calls that may be made: each of calls, and behind it those that are made when it fails.
func Edges(calls []Call) []Call {
	if !slices.ContainsFunc(calls, func(c Call) bool { return len(c.Else) > 0 }) {
		return calls
	}
	var all []Call
	for i := range calls {
		all = append(all, calls[i])
		for k := range calls[i].Else {
			all = append(all, calls[i].Instead(k))
		}
	}
	return all
}
