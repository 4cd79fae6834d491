package abate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
)

type Job struct{ State string }

// The examples of docs/calls.md.
func ExampleDo_pending() {
	ctx := context.Background()
	guard, err := abate.New("jobs", abate.Policy{Retry: abate.Retry{MaxRetries: 1, InitialDelay: 1e6}})
	if err != nil {
		panic(err)
	}
	getJob := func(context.Context) (Job, error) { return Job{"running"}, nil }

	running := func(j Job) bool { return j.State == "running" }
	job, err := abate.Do(ctx, guard, abate.RetryIf(getJob, running))
	if errors.Is(err, abate.ErrPending) {
		fmt.Println("not done yet:", job.State) // the last answer comes beside the error
	}
	// Output: not done yet: running
}

func ExamplePolicy_delay() {
	errLocked := errors.New("locked")
	policy := abate.DefaultPolicy()

	policy.Delay = func(retry int, last abate.Outcome, rnd uint64) time.Duration {
		if errors.Is(last.Err, errLocked) {
			return 2*time.Second + time.Duration(rnd%uint64(time.Second)) // spread: others wait for the same lock
		}
		return time.Duration(retry) * 100 * time.Millisecond
	}
	fmt.Println(policy.Delay(2, abate.Outcome{}, 0), policy.Delay(1, abate.Outcome{Err: errLocked}, 5e8))
	// Output: 200ms 2.5s
}

func ExampleAttemptOf() {
	ctx := context.Background()
	guard, err := abate.New("replicas", abate.Policy{Retry: abate.Retry{MaxRetries: 1, InitialDelay: 1e6}})
	if err != nil {
		panic(err)
	}
	replicas := []string{"a", "b"}
	ask := func(replica string, hedge bool) error {
		fmt.Println(replica, hedge)
		if replica == "b" {
			return errors.New("connection refused")
		}
		return nil
	}

	err = func() error {
		err := abate.DoErr(core.WithAttemptInfo(ctx), guard, func(ctx context.Context) error {
			attempt, _ := core.AttemptOf(ctx)
			return ask(replicas[attempt.Number%len(replicas)], attempt.Hedge)
		})
		return err
	}()
	fmt.Println(err)
	// Output:
	// b false
	// a false
	// <nil>
}

func ExampleDoHedgedWithFallback() {
	ctx := context.Background()
	guard, err := abate.New("prices", abate.Policy{Hedge: hedge.Config{Delay: time.Minute}})
	if err != nil {
		panic(err)
	}
	lastKnown := 42
	askPrice := func(context.Context) (int, error) { return 0, errors.New("connection refused") }

	price, err := abate.DoHedgedWithFallback(ctx, guard, askPrice, func(context.Context, error) (int, error) {
		return lastKnown, nil
	})
	fmt.Println(price, err)
	// Output: 42 <nil>
}

func ExampleGuards_tenants() {
	ctx, tenant, policy := context.Background(), "acme", abate.DefaultPolicy()
	search := func(context.Context) (int, error) { return 7, nil }
	err := func() error {
		tenants, err := abate.NewGuards[string]("search", policy, 1000)
		if err != nil {
			return err
		}
		hits, err := abate.Do(ctx, tenants.For(tenant), search)
		fmt.Println(hits)
		return err
	}()
	fmt.Println(err)
	// Output:
	// 7
	// <nil>
}

func ExamplePolicy_sharedBudget() {
	everything := budget.New(budget.Config{Ratio: 0.1, Reserve: 20})
	reads, writes := abate.DefaultPolicy(), abate.DefaultPolicy()
	reads.SharedBudget, writes.SharedBudget = everything, everything
	fmt.Println(everything.Balance(0))
	// Output: 20
}

// The rows of a query are read after Do has returned, and attemptTimeout does not end them.
func ExampleDo_rows() {
	orders := func(ctx context.Context, db *sql.DB, guard *abate.Guard) error {
		rows, err := abate.Do(ctx, guard, func(ctx context.Context) (*sql.Rows, error) {
			return db.QueryContext(ctx, `SELECT id FROM orders`)
		})
		if err != nil {
			return err
		}
		defer rows.Close() // yours to close
		for rows.Next() {
			fmt.Println("an order")
		}
		return rows.Err()
	}
	_ = orders
}

func ExamplePolicy_literal() {
	bounded := abate.Policy{Retry: abate.Retry{MaxRetries: 3}} // the retry budget and circuit breaker of DefaultPolicy
	unbounded := bounded
	unbounded.RetryBudget.Disabled = true
	unbounded.CircuitBreaker.Disabled = true
	for _, policy := range []abate.Policy{bounded, unbounded} {
		guard, err := abate.New("search", policy)
		if err != nil {
			panic(err)
		}
		fmt.Println(guard.Budget() != nil, guard.Breaker() != nil)
	}
	// Output:
	// true true
	// false false
}
