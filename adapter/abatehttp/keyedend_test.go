package abatehttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// interrupted is a store that takes keys, and confirms nothing after that until it is back.
type interrupted struct {
	idempotency.Store
	back atomic.Bool
}

var errDiskFull = errors.New("disk full")

func (s *interrupted) Complete(
	ctx context.Context, key string, token uint64, r idempotency.Response, retention time.Duration,
) error {
	if !s.back.Load() {
		return errDiskFull
	}
	return s.Store.Complete(ctx, key, token, r, retention)
}

func (s *interrupted) Renew(ctx context.Context, key string, token uint64, lease time.Duration) error {
	if !s.back.Load() {
		return errDiskFull
	}
	return s.Store.Renew(ctx, key, token, lease)
}

// What a try has answered is not kept beside what its hold keeps for the store.
func TestAnswersThatWaitForTheStoreTakeNoMoreThanTheyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := once()
		p.Idempotency.MaxAnswer = 2 << 20
		p.Idempotency.Lease, p.Idempotency.MaxAnswer = 100*time.Millisecond, 64<<20
		store := &interrupted{Store: idempotency.NewMemory(1<<30, core.Now)}
		p.Store = store
		g, err := inbound.NewGate("shop", p)
		if err != nil {
			t.Fatal(err)
		}
		h := abatehttp.NewHandler(g, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Write(make([]byte, 1<<20))
		}))
		heapOf := func() uint64 {
			for range 3 {
				runtime.GC()
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heapOf()
		for i := range 192 {
			r := httptest.NewRequest("POST", "/", strings.NewReader(""))
			r.Header.Set("Idempotency-Key", "key"+string(rune('a'+i%26))+string(rune('a'+i/26)))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 503 {
				t.Fatal(w.Code)
			}
		}
		if kept := (heapOf() - before) >> 20; kept > 80 {
			t.Errorf("%d MiB are kept for answers that wait, at most 64 may", kept)
		}
		store.back.Store(true)
		if err := abatehttp.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAnswerThatBrokeOffIsNotReplayedAsAWholeOne(t *testing.T) {
	b, _, _ := protect(t, once(), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "20")
		w.WriteHeader(201)
		io.WriteString(w, `{"order":1`) // and then what it reads from breaks off
	})
	req := newRequest(t, "POST", b.URL, strings.NewReader(""))
	req.Header.Set("Idempotency-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		if _, err = io.ReadAll(resp.Body); err == nil {
			t.Error("the first caller cannot see that its answer is not whole")
		}
	}
	resp = post(t, b.URL, "k", "")
	all, err := io.ReadAll(resp.Body)
	if resp.StatusCode == 201 && err == nil {
		t.Errorf("the repeat got a part of the answer as the whole: %q", all)
	}
}

// What goes over a connection that was taken over cannot be recorded.
func TestUnderAKeyNoConnectionIsTakenOver(t *testing.T) {
	var n atomic.Int64
	b, _, _ := protect(t, once(), func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			io.WriteString(w, "ok")
			return
		}
		rw.WriteString("HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		rw.Flush()
		c.Close()
	})
	for range 2 {
		resp := post(t, b.URL, "k", "")
		if resp.StatusCode != 200 {
			t.Error(resp.StatusCode)
		}
	}
	if n.Load() != 1 {
		t.Errorf("acknowledged with 201 and done %d times", n.Load())
	}
}

// What passes as it comes takes no memory while the handler goes on.
func TestTheMemoryOfAnAnswerThatPassesIsGivenBackAtOnce(t *testing.T) {
	const free, all = 64 << 10, 64 << 20
	p := once()
	p.Idempotency.MaxAnswer = 1 << 20
	h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 2 {
			w.Write(make([]byte, 1<<20))
		}
		var rest serving.Hold
		if !rest.Grow(0, free+all) {
			t.Error("some is missing")
		}
		rest.Shrink()
	}))
	if w := posted(h, "192.0.2.1"); w.Body.Len() != 2<<20 {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

// A stream under a key may last for ever. When its client has left it has one lease for the rest, which a repeat might
// want; then it ends, and its repeats hear that it was done.
func TestAKeyedStreamEndsALeaseAfterItsClientHasLeft(t *testing.T) {
	ended, stop := make(chan error, 1), make(chan struct{})
	defer close(stop)
	p := once()
	p.Idempotency.Lease, p.Idempotency.MaxAnswer = 100*time.Millisecond, 64<<20
	b, _, _ := protect(t, p, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		beat := time.NewTicker(time.Millisecond)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
			case <-stop:
				return
			}
			_, err := io.WriteString(w, ":\n\n")
			if err == nil {
				err = http.NewResponseController(w).Flush()
			}
			if err == nil {
				err = r.Context().Err()
			}
			if err != nil {
				ended <- err
				return
			}
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	req := newRequest(t, "POST", b.URL, strings.NewReader("")).WithContext(ctx)
	req.Header.Set("Idempotency-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	leave()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	for reason := "idempotency-running"; ; { // until the try has ended
		resp := post(t, b.URL, "k", "")
		if got := resp.Header.Get("Abate-Reason"); got != reason {
			if resp.StatusCode != 409 || got != "idempotency-not-stored" {
				t.Errorf("a repeat got %d, %q", resp.StatusCode, got)
			}
			return
		}
	}
}
