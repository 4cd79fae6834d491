package inbound

import (
	"context"

	"github.com/abate-go/abate/internal/cpu"
	"github.com/abate-go/abate/policy/ratelimit"
)

// AskFleet does what an Ask step is about: it asks the other instances, and blocks for that. Its answer is for Limited.
func (a *Arrival) AskFleet(ctx context.Context) ratelimit.Decision {
	return a.s.fleet.Take(ctx, a.request.Key, a.request.Cost)
}

// Asks returns the key and the cost that an Ask step is about, for drivers that ask by themselves.
func (a *Arrival) Asks() (key string, cost float64) { return a.request.Key, a.request.Cost }

// ReadCPU does what a Measure step is about: it reads the processor's load, of Protection.CPU or else of this process.
// Its answer is for Measured.
func (a *Arrival) ReadCPU() float64 {
	if read := a.s.protection.CPU; read != nil {
		return read()
	}
	return cpu.Share()
}
