// A payment service fails, asks for patience and recovers. Its caller makes one plain request and notices nothing.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

func main() {
	policy := abate.DefaultPolicy() // 3 retries, full jitter, 10 % retry budget, circuit breaker
	policy.Observer = abate.ObserverFunc(report)
	policy.Rand = sameDelays // for this page; leave it out
	guard, err := abate.New("payment-service", policy)
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: abatehttp.NewTransport(nil, guard)}

	resp, err := client.Get(moodyServer() + "/charges/42")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("the caller sees: %s, %q, %v\n", resp.Status, body, err)
}
