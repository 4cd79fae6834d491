package inspect

import (
	"math"
	"time"

	"github.com/abate-go/abate/audit"
)

// checkNumbers refuses what would mean something else than it says: the packages take 0 for "as usual".
func (o *auditOptions) checkNumbers() {
	if !(o.max >= 1) { // NaN is no number either
		o.wrong("--max-amplification: %v is too few, for a request is one attempt at least; write a number from 1 on, or "+
			"leave the flag out for 10", o.max)
	}
	if !(o.rate > 0) || math.IsInf(o.rate, 1) {
		o.wrong("--rate: %v requests/s cannot be played; write a number above 0, or leave the flag out for %d", o.rate,
			audit.AssumedRate)
	}
	if o.outage < time.Second {
		o.wrong("--outage: %v is too short; write at least 1s, or leave the flag out for 30s", o.outage)
	}
}
