// A payment service fails, asks for patience and recovers. Its caller makes one plain request and notices nothing.
package main

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

func main() {
	payments := httptest.NewServer(moody())
	defer payments.Close()

	policy := abate.DefaultPolicy()
	policy.Observer = abate.ObserverFunc(tell)
	policy.Rand = rand.New(rand.NewPCG(1, 2)).Uint64 // the same delays in each run; leave this line out
	guard, err := abate.New("payment-service", policy)
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: abatehttp.NewTransport(nil, guard)}

	resp, err := client.Get(payments.URL + "/charges/42")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the caller sees: %s, %q\n", resp.Status, body)
}

// tell prints what the guard does.
func tell(e abate.Event) {
	switch e.Kind {
	case abate.AttemptEnded:
		result := e.Class.String()
		if e.Err != nil {
			result = e.Err.Error()
		}
		fmt.Printf("attempt %d: %s\n", e.Attempt, result)
	case abate.RetryScheduled:
		fmt.Printf("  again in %v\n", e.Delay.Round(time.Millisecond))
	}
}

// moody is a server that fails, asks for patience, and then works.
func moody() http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			io.WriteString(w, "charged")
		}
	})
}
