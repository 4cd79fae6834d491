package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// Now is the time on the guards' clock: what Do and Run tell a Call, and what Guard.Update and Guard.State go by. A
// driver of Calls in production uses it, so that its guards can be updated and looked at. Its cost is one read of the
// monotonic clock.
func Now() time.Duration { return clock.Now() }
