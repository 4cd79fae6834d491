package registry

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/abate-go/abate/core"
)

// permits is how many permits a bulkhead has.
func permits(s *core.State) float64 {
	if s.Bulkhead.Limit == 0 {
		return math.Inf(1)
	}
	return float64(s.Bulkhead.Limit)
}

// sayBulkhead says how full a bulkhead is, and of a limit that is learned why it is in force.
func sayBulkhead(s *core.State, say Say) {
	b := &s.Bulkhead
	queued := strconv.Itoa(b.Queued) + " queued"
	if b.Away > 0 {
		queued += fmt.Sprintf(", %d in back-off", b.Away)
	}
	switch l := &b.Learned; {
	case b.Limit == 0:
		say("Bulkhead", "no limit: nothing asks for one", "%d", b.InFlight)
	case l.Bound && l.Late == 0:
		say("Bulkhead", queued+"; limit learned: answers come in time again, it grows", "%d of %d", b.InFlight, b.Limit)
	case l.Bound:
		say("Bulkhead", fmt.Sprintf("%s; limit learned: the last %d attempts took longer than half of %v", queued, l.Late,
			l.Target.Round(time.Millisecond)), "%d of %d", b.InFlight, b.Limit)
	default:
		say("Bulkhead", queued, "%d of %d", b.InFlight, b.Limit)
	}
}
