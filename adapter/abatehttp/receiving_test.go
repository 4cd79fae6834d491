package abatehttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
)

// A client runs the time limit that it sends, and hears of the end first: it began to wait earlier. A service that is
// too slow for its callers has too much to do, whoever notices.
func TestAClientThatLeavesAtItsDeadlineWaitedTooLong(t *testing.T) {
	for leaves, want := range map[time.Duration]abate.Class{
		50 * time.Millisecond: abate.Ignored,
		99 * time.Millisecond: abate.Overload,
	} {
		synctest.Test(t, func(t *testing.T) {
			log := new(gateLog)
			p := inbound.Protection{Observer: log}
			h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
			}))
			ctx, leave := context.WithCancel(t.Context())
			defer time.AfterFunc(leaves, leave).Stop()
			r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
			r.Header.Set("X-Envoy-Expected-Rq-Timeout-Ms", "100")
			h.ServeHTTP(httptest.NewRecorder(), r)
			if got := log.classes(); len(got) != 1 || got[0] != want {
				t.Errorf("after %v the gate has learned %v, want %v", leaves, got, want)
			}
		})
	}
}

// A gate behind this one may say that another try is running. That is no answer to the request: as one it would be
// given out as long as the key lives, and its client would never learn what came of it.
func TestThatAnotherTryIsRunningIsNotKept(t *testing.T) {
	runs := 0
	h := abatehttp.NewHandler(newGate(t, once()), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if runs++; runs == 1 {
			w.Header().Set("Abate-Reason", abatehttp.KeyRunning.Code)
			w.WriteHeader(http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}))
	var got []int
	for range 3 {
		got = append(got, keyedTo(h, "/").Code)
	}
	if fmt.Sprint(got, runs) != "[409 201 201] 2" {
		t.Errorf("%v in %d runs", got, runs)
	}
}

// That a handler said nothing until its deadline is an answer like others. If it is kept, it goes out once it is
// recorded, for which there is no time left.
func TestTheAnswerForASilentHandlerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := once()
		p.Timeout, p.Idempotency.KeepServerErrors = time.Second, true
		h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}))
		first := keyedTo(h, "/")
		if n := strings.Count(first.Body.String(), `"code":`); first.Code != http.StatusServiceUnavailable || n != 1 {
			t.Errorf("status %d, %d problems: %s", first.Code, n, first.Body)
		}
		again := keyedTo(h, "/")
		if again.Code != http.StatusGatewayTimeout || again.Header().Get("Abate-Reason") != "deadline" ||
			again.Body.Len() == 0 {
			t.Errorf("the repeat got %d %v %q", again.Code, again.Header(), again.Body)
		}
	})
}
