package abatehttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
)

func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Envoy-Attempt-Count") == "1" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()

	guard, err := abate.New("payment-service", abate.DefaultPolicy())
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: abatehttp.NewTransport(nil, guard)}
	resp, err := client.Get(server.URL)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

func ExamplePerHost() {
	choose, err := abatehttp.PerHost(abate.DefaultPolicy(), 100)
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: &abatehttp.Transport{Select: choose}}
	_ = client // one breaker and one budget for each host that it talks to
}

func ExampleHandler() {
	protection := inbound.DefaultProtection()
	protection.RateLimit.Limit = ratelimit.Rate{Tokens: 1, Per: time.Minute}
	gate, err := inbound.NewGate("checkout", protection)
	if err != nil {
		panic(err)
	}
	checkout := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	server := httptest.NewServer(abatehttp.NewHandler(gate, checkout))
	defer server.Close()

	for range 2 {
		resp, err := http.Get(server.URL)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Printf("%s, %s left of %s\n", resp.Status, resp.Header.Get("X-RateLimit-Remaining"),
			resp.Header.Get("RateLimit-Policy"))
	}
	// Output:
	// 200 OK, 0 left of "default";q=1;w=60
	// 429 Too Many Requests, 0 left of "default";q=1;w=60
}
