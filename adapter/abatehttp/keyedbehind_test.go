package abatehttp_test

import (
	"net/http"
	"sync/atomic"
	"testing"
)

// What a gate behind this one says of a moment is no answer, also where those of 500 and above are kept.
func TestARefusalOfAGateBehindIsNotKept(t *testing.T) {
	for reason, kept := range map[string]bool{
		"overloaded": false, "refused": false, "idempotency-unavailable": false, "idempotency-unrecorded": false,
		"deadline": true, "": true,
	} {
		p := once()
		p.Idempotency.KeepServerErrors = true
		var runs atomic.Int64
		b, _, _ := protect(t, p, func(w http.ResponseWriter, _ *http.Request) {
			if runs.Add(1) > 1 {
				return
			}
			if reason != "" {
				w.Header().Set("Abate-Reason", reason)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		post(t, b.URL, "k", "")
		want := http.StatusOK
		if kept {
			want = http.StatusServiceUnavailable
		}
		if status := post(t, b.URL, "k", "").StatusCode; status != want {
			t.Errorf("after %q the repeat got %d, want %d", reason, status, want)
		}
	}
}
