package abatehttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// The keys move to another store while a body comes. A copy of the request that comes after the move is done there.
func TestARequestWhoseBodyComesAcrossAMoveOfTheKeysIsDoneOnce(t *testing.T) {
	var runs atomic.Int64
	p := once()
	g, err := inbound.NewGate("shop", p)
	if err != nil {
		t.Fatal(err)
	}
	h := abatehttp.NewHandler(g, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusCreated)
	}))
	post := func(body io.Reader) int {
		r := httptest.NewRequest("POST", "/", body)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	body, client := io.Pipe()
	slow := make(chan int)
	go func() { slow <- post(body) }()
	if _, err := client.Write([]byte("bo")); err != nil { // it is being read
		t.Fatal(err)
	}
	p.Store = idempotency.NewMemory(1<<20, core.Now)
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	copied := post(strings.NewReader("body"))
	if _, err := client.Write([]byte("dy")); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if status := <-slow; status != http.StatusCreated || copied != http.StatusCreated || runs.Load() != 1 {
		t.Errorf("statuses %d and %d, done %d times", copied, status, runs.Load())
	}
}
