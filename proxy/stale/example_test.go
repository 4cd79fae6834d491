package stale_test

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

func Example() {
	store := stale.New(64 << 20)
	request := []h1.Field{{Name: []byte("Accept"), Value: []byte("*/*")}}
	key := stale.AppendKey(nil, "stock", []byte("stock.example"), []byte("/items/7"))

	// The service answers: the response goes to the client and is kept.
	if _, fill := stale.Asks([]byte("GET"), request); fill {
		response := []h1.Field{{Name: []byte("Content-Type"), Value: []byte("text/plain")}}
		r := store.Record(key, request, 200, response)
		r.Write([]byte("12 left"))
		r.Commit(10 * time.Minute)
	}

	// Three minutes later it does not.
	if answer, _ := stale.Asks([]byte("GET"), request); answer {
		if e, ok := store.Get(key, request, 13*time.Minute, time.Hour); ok {
			fmt.Printf("%d, Age: %d, %s\n", e.Status, e.Age/time.Second, e.Body)
		}
	}
	// Output: 200, Age: 180, 12 left
}
