package abate_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
)

// few is places of which little is left, or not.
type few struct{ atomic.Bool }

func (f *few) Scarce() bool { return f.Load() }

// Who waits while there is enough of what he holds goes when there is not: others need it now.
func TestCallsThatWaitForTheirCircuitGoWhenTheirCallersPlacesBecomeScarce(t *testing.T) {
	for _, row := range []struct {
		name          string
		from, to      time.Duration // when little is left
		atLeast, upTo time.Duration
	}{
		{"never", time.Hour, time.Hour, time.Second, time.Second},
		{"from the beginning", 0, time.Hour, 10 * ms, 200 * ms}, // as long as it takes to find a false alarm out
		{"later", 500 * ms, time.Hour, 500 * ms, 700 * ms},
		{"for a moment that nobody noticed", 1 * ms, 2 * ms, time.Second, time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s sick
				var left few
				p := holding()
				p.Places = &left
				g := guard(t, p)
				opened(t, g, &s)
				left.Store(row.from == 0)
				began := time.Now()
				ends := hold(g, &s, 5)
				time.AfterFunc(row.from, func() { left.Store(true) })
				time.AfterFunc(row.to, func() { left.Store(false) })
				refused := 0
				for range 5 {
					err := <-ends
					if !errors.Is(err, abate.ErrCircuitOpen) { // a probe's own end
						continue
					}
					refused++
					if after := time.Since(began); after < row.atLeast || after > row.upTo {
						t.Errorf("refused after %v, want %v to %v", after, row.atLeast, row.upTo)
					}
				}
				if refused == 0 {
					t.Error("nobody was refused")
				}
				nothingLeft(t, g)
			})
		})
	}
}
