package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// sameDelays draws the same back-off in every run, so that the printed story can stand in the README.
var sameDelays = rand.New(rand.NewPCG(1, 2)).Uint64

// report prints what the guard does.
func report(e abate.Event) {
	switch e.Kind {
	case core.AttemptEnded:
		result := e.Class.String()
		if e.Err != nil {
			result = e.Err.Error()
		}
		fmt.Printf("attempt %d: %s\n", e.Attempt, result)
	case core.RetryScheduled:
		fmt.Printf("  again in %v\n", e.Delay.Round(time.Millisecond))
	}
}

// moodyServer starts a server on a free port that fails once, asks for patience once, and then works.
func moodyServer() (url string) {
	var requests atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			io.WriteString(w, "charged")
		}
	})).URL
}
