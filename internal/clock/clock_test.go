package clock

import (
	"testing"
	"time"
	"unsafe"
)

// A deadline without a monotonic reading is as far away as the wall clock says now, also if that has been set back by
// an hour since the origin.
func TestADeadlineKeepsItsDistanceWhenTheWallClockIsSetBack(t *testing.T) {
	defer func(was time.Time) { origin = was }(origin)
	wall := (*uint64)(unsafe.Pointer(&origin)) // of time.Time: 1 bit, 33 bits of seconds, 30 of nanoseconds
	*wall += 3600 << 30
	if now := Now(); now < 0 || now > time.Hour/2 {
		t.Fatalf("the monotonic clock moved too: %v", now)
	}
	left := At(time.Now().Add(time.Hour).Round(0)) - Now()
	if left < time.Hour-time.Minute || left > time.Hour+time.Minute {
		t.Errorf("a deadline in an hour is %v away", left)
	}
}
