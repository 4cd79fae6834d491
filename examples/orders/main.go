// Command orders is a plain service that knows nothing of Abate, to try "abate proxy -c examples/ingress.yaml" with:
// ten workers that take 50 ms for each request, so 200 requests a second. A POST makes an order, and every POST another
// one.
package main

import (
	"fmt"
	"log"
	"net/http"
	"sync/atomic"
	"time"
)

func main() {
	var orders atomic.Int64
	workers := make(chan struct{}, 10)
	handler := func(w http.ResponseWriter, r *http.Request) {
		workers <- struct{}{}
		defer func() { <-workers }()
		time.Sleep(50 * time.Millisecond)
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, "order %d\n", orders.Add(1))
			return
		}
		fmt.Fprintf(w, "%d orders so far\n", orders.Load())
	}
	log.Print("orders: 10 workers, 200 requests a second, on http://127.0.0.1:9000")
	log.Fatal(http.ListenAndServe("127.0.0.1:9000", http.HandlerFunc(handler)))
}
