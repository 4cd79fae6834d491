package proxy_test

import (
	"testing"
	"time"
)

// A client leaves, and the service works for longer than a lease. As nobody has crashed, no repeat runs beside it.
func TestARunWhoseClientLeftGoesOnForLongerThanItsLease(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	up, came, answer := holding(t)
	t.Cleanup(func() { close(answer) })
	r := protect(t, guardOf(up.url, "idempotency: {methods: [POST], lease: 500ms}"))
	first := r.dial()
	first.send(post("a", "one"))
	soon(t, "the service has it", came)
	first.Close()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 15 {
		<-tick.C
		refusedBy(t, r.dial().send(post("a", "one")).answer(), 409, "idempotency-running")
	}
	answer <- ok("done")
	if a := r.settled(post("a", "one")); a.content != "done" || len(up.seen()) != 1 {
		t.Errorf("%+v, done %d times", a, len(up.seen()))
	}
}
