package abatehttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
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
