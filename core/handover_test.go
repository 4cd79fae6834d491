package core_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/core"
)

// Whose time it is while a body comes, at 100 s, of an attempt that began at 10 s in a call that ends at 200 s.
func TestWhoseTimeItIsWhileABodyComes(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		moved    time.Duration
		asks     bool
		patience time.Duration
		since    time.Duration
		until    time.Duration
	}{
		"nothing was handed over yet":            {0, false, 5 * s, 10 * s, 15 * s},
		"an earlier attempt had something":       {3 * s, false, 5 * s, 10 * s, 15 * s},
		"it was handed something":                {40 * s, false, 5 * s, 40 * s, 45 * s},
		"a moment later than the clock was read": {101 * s, false, 5 * s, 100 * s, 105 * s},
		"the sender is waited for":               {40 * s, true, 5 * s, 100 * s, 105 * s},
		"the call ends sooner":                   {40 * s, true, 150 * s, 100 * s, 200 * s},
		"any patience":                           {40 * s, false, 0, 40 * s, 200 * s},
		"patience without an end":                {40 * s, false, core.NoDeadline, 40 * s, 200 * s},
	} {
		h := core.Handover{Began: 10 * s, Moved: c.moved, Asks: c.asks}
		if since, until := h.Since(100*s), h.Until(100*s, c.patience, 200*s); since != c.since || until != c.until {
			t.Errorf("%s: since %v until %v, want %v and %v", name, since, until, c.since, c.until)
		}
	}
}

// The clock may have begun below zero.
func TestWhoseTimeItIsBeforeTimeZero(t *testing.T) {
	const s = time.Second
	h := core.Handover{Began: -10 * s}
	if since := h.Since(-5 * s); since != -10*s {
		t.Errorf("since %v", since)
	}
}
