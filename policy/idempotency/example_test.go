package idempotency_test

import (
	"context"
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

func Example() {
	now := func() time.Duration { return 0 } // core.Now, outside examples
	store := idempotency.NewMemory(64<<20, now)
	ctx := context.Background()

	order := func(header, body string) {
		key, err := idempotency.ParseKey(header)
		if err != nil {
			fmt.Println(400, err)
			return
		}
		key = idempotency.StoreKey("orders", "tenant-7", key)
		begun, err := store.Begin(ctx, key, idempotency.FingerprintOf("POST", "/orders", []byte(body)), 30*time.Second)
		switch {
		case err != nil:
			fmt.Println(503, err)
		case begun.State == idempotency.Run:
			answer := idempotency.Response{Status: 201, Body: []byte("order 1 for " + body)}
			if err := store.Complete(ctx, key, begun.Token, answer, 24*time.Hour); err != nil {
				fmt.Println(500, err)
				return
			}
			fmt.Printf("%d %s\n", answer.Status, answer.Body)
		case begun.State == idempotency.Replay:
			fmt.Printf("%d %s, again\n", begun.Response.Status, begun.Response.Body)
		case begun.State == idempotency.Mismatch:
			fmt.Println(422, "the key belongs to another request")
		case begun.State == idempotency.Running:
			fmt.Println(409, "in progress")
		}
	}
	order(`"8e03978e"`, "two chairs")
	order(`"8e03978e"`, "two chairs")
	order(`"8e03978e"`, "a table")
	order(`8e03978e, 7`, "a table")
	// Output:
	// 201 order 1 for two chairs
	// 201 order 1 for two chairs, again
	// 422 the key belongs to another request
	// 400 idempotency: bad key: byte 9 of it (0x2c) is a separator; send one key, in quotes if it has separators: "a,b"
}
