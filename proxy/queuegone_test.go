package proxy_test

import "testing"

// A client that leaves while it waits for the bulkhead is not worked for, as in Do, in Run and at a gate.
func TestTheQueueOfABulkheadDoesNotServeClientsThatHaveLeft(t *testing.T) {
	r, clients, inside, open := queued(t, 2)
	clients[1].SetLinger(0)
	clients[1].Close()
	close(open)
	if a := clients[0].answer(); a.content != "good" {
		t.Errorf("got %+v", a)
	}
	eventually(t, "empty", func() bool { return r.guard().Bulkhead.Running == 0 && r.guard().Bulkhead.Queued == 0 })
	if n := inside.Load(); n != 1 {
		t.Errorf("%d requests reached the service, one of them for a client that had left before it was sent", n)
	}
}
