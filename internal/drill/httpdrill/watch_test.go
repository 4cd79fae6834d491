package httpdrill_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/internal/needs"
)

// onlooker notes which act is on when guards come and go.
type onlooker struct {
	mu   sync.Mutex
	told []string
}

func (o *onlooker) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.told) - 1; last < 0 || o.told[last] != what {
		o.told = append(o.told, what)
	}
}

func (o *onlooker) Begin(act string)                             { o.note(act) }
func (o *onlooker) Adjust(string, *abate.Policy)                 {}
func (o *onlooker) Add(...*abate.Guard)                          { o.note("guards") }
func (o *onlooker) Remove(...*abate.Guard)                       { o.note("no guards") }
func (o *onlooker) AdjustProtection(string, *inbound.Protection) {}
func (o *onlooker) AddGate(...*inbound.Gate)                     {}

func TestWhoWatchesIsToldOfEveryActBeforeItsGuards(t *testing.T) {
	needs.Whole(t)
	var o onlooker
	c := drillOf(t, read(t, small), "storm", "guarded")
	c.Watch = httpdrill.Watchers{&o}
	wrong := make(chan string, 100)
	c.Progress = func(p httpdrill.Progress) {
		if p.Elapsed > 0 && p.Well() && p.Offered > 3 && p.Answered == 0 {
			wrong <- p.String()
		}
		if p.Elapsed == 2*time.Second && p.Fault == "" || p.Elapsed == 4*time.Second && p.Over != "outage" {
			wrong <- p.String()
		}
	}
	if _, err := httpdrill.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if want := []string{"storm", "guards", "no guards", "guarded", "guards", "no guards"}; !slices.Equal(o.told, want) {
		t.Errorf("it was told of %q, want %q", o.told, want)
	}
	close(wrong)
	for line := range wrong {
		t.Errorf("a line that is not so: %s", line)
	}
}
