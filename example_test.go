package abate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// A call that fails twice and then works: the caller sees only the result.
func ExampleDo() {
	policy := abate.DefaultPolicy()
	policy.InitialDelay = 1e6 // 1 ms, so that the example is quick
	guard, err := abate.New("payment-service", policy)
	if err != nil {
		panic(err)
	}
	tries := 0
	charge, err := abate.Do(context.Background(), guard, func(context.Context) (string, error) {
		if tries++; tries < 3 {
			return "", errors.New("connection refused")
		}
		return "charged", nil
	})
	fmt.Println(charge, err, "after", tries, "tries")
	// Output: charged <nil> after 3 tries
}

// An answer that no repetition can change is not repeated, and is no mark against the dependency.
func ExampleIgnore() {
	guard, err := abate.New("payment-service", abate.DefaultPolicy())
	if err != nil {
		panic(err)
	}
	declined := errors.New("card declined")
	_, err = abate.Do(context.Background(), guard, func(context.Context) (string, error) {
		return "", abate.Ignore(declined)
	})
	fmt.Println(err == declined)
	// Output: true
}

// Both the reason and the cause are in the error.
func ExampleError() {
	guard, err := abate.New("payment-service", abate.Policy{Retry: abate.Retry{MaxRetries: 1, InitialDelay: 1e6}})
	if err != nil {
		panic(err)
	}
	refused := errors.New("connection refused")
	_, err = abate.Do(context.Background(), guard, func(context.Context) (int, error) { return 0, refused })
	fmt.Println(errors.Is(err, abate.ErrAttemptsExhausted), errors.Is(err, refused))
	// Output: true true
}

// An answer that is not there yet is asked for again, and is no mark against the service.
func ExampleRetryIf() {
	policy := abate.DefaultPolicy()
	policy.InitialDelay = 1e6
	guard, err := abate.New("jobs", policy)
	if err != nil {
		panic(err)
	}
	asked := 0
	state := func(context.Context) (string, error) {
		if asked++; asked < 3 {
			return "running", nil
		}
		return "done", nil
	}
	job, err := abate.Do(context.Background(), guard, abate.RetryIf(state, func(s string) bool { return s == "running" }))
	fmt.Println(job, err, guard.State().Breaker.State)
	// Output: done <nil> closed
}

// A function without a value, which knows the number of its attempt.
func ExampleDoErr() {
	guard, err := abate.New("mail", abate.Policy{Retry: abate.Retry{MaxRetries: 1, InitialDelay: 1e6}})
	if err != nil {
		panic(err)
	}
	err = abate.DoErr(core.WithAttemptInfo(context.Background()), guard, func(ctx context.Context) error {
		attempt, _ := core.AttemptOf(ctx)
		fmt.Println(attempt.Guard, attempt.Number)
		if attempt.Number == 1 {
			return errors.New("connection refused")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// mail 1
	// mail 2
	// <nil>
}

// One guard for each tenant, at most 1000 of them.
func ExampleGuards() {
	tenants, err := abate.NewGuards[string]("search", abate.DefaultPolicy(), 1000)
	if err != nil {
		panic(err)
	}
	fmt.Println(tenants.For("acme").Name())
	// Output: search/acme
}
