package abate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

func TestNowIsTheClockOfGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Duration
		g := guard(t, abate.Policy{Timeout: time.Second, Observer: abate.ObserverFunc(func(e abate.Event) {
			if e.Kind == core.CallBegan {
				began = e.At
			}
		})})
		<-time.NewTimer(time.Second).C
		before := core.Now()
		_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, nil })
		if began != before {
			t.Errorf("a call made at %v is reported at %v", before, began)
		}
	})
}
