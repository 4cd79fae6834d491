package drill // callers are private

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// ticking returns a clock that is half a second on whenever it is read.
func ticking() func() time.Duration {
	var reads atomic.Int64
	return func() time.Duration { return time.Duration(reads.Add(1)) * 500 * time.Millisecond }
}

// TestAnswersAreTimedByTheirOwnAttempt: neither the attempts before it nor the pauses between them make an answer late.
func TestAnswersAreTimedByTheirOwnAttempt(t *testing.T) {
	for _, act := range []string{Unguarded, Guarded} {
		t.Run(act, func(t *testing.T) {
			var served atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if served.Add(1) < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = io.WriteString(w, "ok")
			}))
			defer server.Close()
			c := Default()
			p, err := ParsePolicy("test", []byte("services: {payment-service: {maxRetries: 3, initialDelay: 1ms, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}"))
			if err != nil {
				t.Fatal(err)
			}
			c.Clients, c.RetryDelay, c.AttemptTimeout, c.Policy = 1, time.Millisecond, time.Minute, p
			record := NewRecorder(c.Length())
			callers, err := c.callers(act, server.URL, record, ticking())
			if err != nil {
				t.Fatal(err)
			}
			defer callers[0].close()
			took, err := callers[0].charge(t.Context(), "key")
			if err != nil || took != 500*time.Millisecond || record.attempts != 3 {
				t.Errorf("took %v, %v, with %d attempts; want 500ms for the third alone", took, err, record.attempts)
			}
		})
	}
}

// scripted is a caller whose every charge comes to the same.
type scripted struct {
	took time.Duration
	err  error
}

func (s scripted) charge(context.Context, string) (time.Duration, error) { return s.took, s.err }
func (scripted) close()                                                  {}

func TestAnswersInTimeAreThoseWithinTheAttemptTimeout(t *testing.T) {
	tests := []struct {
		name string
		by   scripted
		want Ending
	}{
		{"at once", scripted{took: time.Millisecond}, Answered},
		{"at the last moment", scripted{took: time.Second}, Answered},
		{"too late", scripted{took: time.Second + 1}, AnsweredLate},
		{"not at all", scripted{took: 2 * time.Second, err: context.DeadlineExceeded}, TimedOut},
		{"refused", scripted{err: errors.New("no route")}, NoConnection},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			record := NewRecorder(time.Minute)
			c := &crowd{record: record, since: ticking(), limit: time.Second} // which takes the call itself for half a second
			c.one(t.Context(), 0, "key", tt.by)
			if got := record.calls[0].ending; got != tt.want {
				t.Errorf("ended as %v, want %v", got, tt.want)
			}
		})
	}
}
