package proxy_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/proxy"
)

// What the client of a call sends while the call waits for another attempt is read when there is one: it is not sent to
// the attempt that has failed, and does not make the call too long to be repeated.
func TestACallThatWaitsForItsNextAttemptCanBeRepeated(t *testing.T) {
	t.Parallel() // it waits
	var down atomic.Bool
	var calls atomic.Int32
	url := cramped(t, 1<<20, func(*frames, uint32, int) { calls.Add(1) }, func(f *frames, stream uint32, _ int) {
		if down.Load() {
			sayRPC(f, stream, "", "14")
			return
		}
		wait := time.NewTimer(150 * time.Millisecond) // a failure is quick beside that, also on a busy machine
		<-wait.C
		sayRPC(f, stream, "well", "0")
	})
	r := start(t, single([]string{url}, quickRetry, "maxRetries: 3", "timeout: 60s", "attemptTimeout: 20s",
		"retryMethods: [/a.B/*]", noEjection), func(c *proxy.Config) { c.MaxBufferedBody = 1000 })
	cc := dialGRPC(t, r.addr)
	for range 12 {
		if a := call(t, cc, "/a.B/One", "1"); a.code != codes.OK {
			t.Fatalf("%+v", a)
		}
	}
	down.Store(true)
	c := converse(t, cc, "/a.B/Chat").say("1")
	eventually(t, "the end of a third attempt", func() bool {
		return calls.Load() >= 15 && r.guard().Endpoints[0].Pending == 0
	})
	for range 5 {
		c.say(strings.Repeat("x", 1000))
	}
	down.Store(false)
	if a := call(t, cc, "/a.B/One", "1"); a.code != codes.OK { // a sign of life
		t.Fatalf("%+v", a)
	}
	c.hear("well").ends(codes.OK)
}
