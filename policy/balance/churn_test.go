//go:build !race

package balance_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

// churn is a service whose endpoints are replaced all the while, as a driver knows it.
type churn struct {
	b    *balance.Balancer
	ids  []int // of endpoints, by their number
	next int
	rnd  *rand.Rand
}

// replace has so many endpoints replaced, in one change of the list.
func (c *churn) replace(n int) {
	index := make([]int, len(c.ids))
	for i, k := range c.rnd.Perm(len(c.ids)) { // the list may come in any order
		index[i] = k
	}
	ids := make([]int, len(c.ids))
	zones := make([]string, len(c.ids))
	for i, k := range index {
		ids[i] = c.ids[k]
		if i < n {
			index[i], ids[i] = -1, c.next
			c.next++
		}
		zones[i] = thirds[ids[i]%3]
	}
	b := balance.New(three, len(ids))
	b.Locate("a", zones)
	b.Carry(c.b, index)
	c.b, c.ids = b, ids
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// 1,000 endpoints, of which 100 are replaced each second. Some attempts last to the end.
func TestEndpointsThatComeAndGoLeaveNothingBehind(t *testing.T) {
	seconds := 3600
	if testing.Short() {
		seconds = 600 // a growth of one object for each endpoint that goes would show
	}
	c := &churn{rnd: rand.New(rand.NewPCG(5, 5)), ids: make([]int, 1000), b: balance.New(three, 1000)}
	type attempt struct {
		balance.Attempt
		id int
	}
	var open, held []attempt
	answered, failed, begun := 0, 0, uint64(0)
	for at := range seconds {
		now := time.Duration(at) * s
		c.replace(100)
		for range 200 {
			i, a := c.b.Begin(now, c.rnd.Uint64(), -1)
			open = append(open, attempt{a, c.ids[i]})
		}
		if at%60 == 0 {
			i, a := c.b.Begin(now, c.rnd.Uint64(), -1)
			held = append(held, attempt{a, c.ids[i]})
		}
		for range 200 { // in any order, some of them changes later
			k := c.rnd.IntN(len(open))
			a := open[k]
			open[k] = open[len(open)-1]
			open = open[:len(open)-1]
			r := balance.Success
			if a.id%10 == 0 {
				failed++
				r = balance.Failure
			} else {
				answered++
			}
			a.Done(now, r)
		}
		if at == seconds/4 {
			begun = heap()
		}
	}
	if grown := int64(heap()) - int64(begun); grown > 1<<20 {
		t.Errorf("the heap has grown by %d KiB", grown>>10)
	}
	for _, a := range held {
		a.Done(0, balance.Neutral)
	}
	pending := 0
	for i := range c.ids {
		pending += c.b.Endpoint(i, 0).Pending
	}
	if pending > len(open) {
		t.Errorf("%d attempts pending, %d at most are", pending, len(open))
	}
	if answered == 0 || failed == 0 {
		t.Errorf("%d answered, %d failed", answered, failed)
	}
}
