package abatehttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
)

// GitHub says in X-RateLimit-Reset when the bucket is full, others in how many seconds. The other headers are the same
// in both.
func TestXRateLimitResetIsTheUnixTimeIfThePolicySaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: perMinute(2), Reset: "epoch"}}
		h := abatehttp.NewHandler(newGate(t, p), http.NotFoundHandler())
		for n, wait := range []int64{30, 60, 30} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			got := w.Header()
			if want := fmt.Sprint(time.Now().Unix() + wait); got.Get("X-RateLimit-Reset") != want ||
				!strings.HasSuffix(got.Get("RateLimit"), fmt.Sprint(";t=", wait)) {
				t.Errorf("request %d: %v, want a reset at %s", n+1, got, want)
			}
		}
	})
}

func TestAResetIsNeverTooEarlyAndAClosedLimitHasNone(t *testing.T) {
	epoch := inbound.ArrivalLimit{Reset: "epoch"}
	for _, tt := range []struct {
		limit inbound.ArrivalLimit
		wait  time.Duration
		now   time.Time
		want  int64
		ok    bool
	}{
		{epoch, 0, time.Unix(1_800_000_000, 0), 1_800_000_000, true},
		{epoch, 0, time.Unix(1_800_000_000, 1), 1_800_000_001, true},
		{epoch, 1500 * time.Millisecond, time.Unix(1_800_000_000, 500_000_000), 1_800_000_002, true},
		{epoch, 1500 * time.Millisecond, time.Unix(1_800_000_000, 600_000_000), 1_800_000_003, true},
		{inbound.ArrivalLimit{}, 1500 * time.Millisecond, time.Unix(1_800_000_000, 600_000_000), 2, true},
		{epoch, ratelimit.Never, time.Unix(1_800_000_000, 999_999_999), 0, false},
		{inbound.ArrivalLimit{}, ratelimit.Never, time.Unix(1_800_000_000, 0), 0, false},
	} {
		got, ok := abatehttp.XRateLimitReset(&tt.limit, ratelimit.Decision{Reset: tt.wait}, tt.now)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%+v: %d, %t", tt, got, ok)
		}
	}
}
