package abateprom_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// retryObserver is what an abategrpc.Client asks for.
type retryObserver interface {
	RetryAttempt(method, status string)
	BudgetExhausted(method string)
}

func TestRetriesOfGRPCAreCountedByMethod(t *testing.T) {
	m := metrics(t)
	var o retryObserver = m.GRPC()
	o.RetryAttempt("/shop.Payment/Get", "UNAVAILABLE")
	o.RetryAttempt("/shop.Payment/Get", "UNAVAILABLE")
	o.RetryAttempt("/shop.Payment/Get", "OK")
	o.RetryAttempt("/shop.Payment/Get", "CODE(99)")
	o.RetryAttempt("/shop.Payment/Get", "")
	o.RetryAttempt("/shop.Payment/\xff", "UNAUTHENTICATED")
	o.BudgetExhausted("/shop.Payment/Get")
	m.GRPC().BudgetExhausted("/shop.Payment/Get")
	m.scrape(t).want(t, map[string]float64{
		`grpc_client_retry_attempts_total{method="/shop.Payment/Get",status="UNAVAILABLE"}`:   2,
		`grpc_client_retry_attempts_total{method="/shop.Payment/Get",status="OK"}`:            1,
		`grpc_client_retry_attempts_total{method="/shop.Payment/Get",status="other"}`:         2,
		`grpc_client_retry_attempts_total{method="/shop.Payment/�",status="UNAUTHENTICATED"}`: 1,
		`grpc_client_retry_budget_exhausted_total{method="/shop.Payment/Get"}`:                2,
	})
}

func TestMethodsHaveABound(t *testing.T) {
	m := metrics(t)
	for i := range 5000 {
		m.GRPC().RetryAttempt(fmt.Sprint("/a.B/", i), "OK")
	}
	p := m.scrape(t)
	if n := len(p.of("grpc_client_retry_attempts_total")); n != 1001 {
		t.Errorf("%d series, want 1001", n)
	}
	p.want(t, map[string]float64{`grpc_client_retry_attempts_total{method="other",status="OK"}`: 4000})
}

func TestCountingRetriesAllocatesNothing(t *testing.T) {
	o := metrics(t).GRPC()
	if n := testing.AllocsPerRun(100, func() {
		o.RetryAttempt("/shop.Payment/Get", "UNAVAILABLE")
		o.BudgetExhausted("/shop.Payment/Get")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestManyClientsCountTogether(t *testing.T) {
	m := metrics(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 100 {
				m.GRPC().RetryAttempt(fmt.Sprint("/a.B/", i%7), core.GRPCCodes[i%3])
				m.GRPC().BudgetExhausted("/a.B/C")
			}
		})
	}
	m.scrape(t)
	all.Wait()
	p, sum := m.scrape(t), 0.0
	for _, v := range p.of("grpc_client_retry_attempts_total") {
		sum += v
	}
	if sum != 800 {
		t.Errorf("%v retries, want 800", sum)
	}
	p.want(t, map[string]float64{`grpc_client_retry_budget_exhausted_total{method="/a.B/C"}`: 800})
}

func TestAnExhaustedCallTreeHasAReasonOfItsOwn(t *testing.T) {
	m := metrics(t)
	o := m.observer("s")
	o.Observe(abate.Event{Kind: core.CallEnded, Attempt: 1, Class: abate.Failure, Reason: abate.ErrTreeExhausted})
	o.Observe(abate.Event{Kind: core.HedgeDenied, Reason: abate.ErrTreeExhausted})
	o.Observe(abate.Event{Kind: core.CallEnded, Attempt: 1, Class: abate.Failure, Reason: errors.New("unknown")})
	m.scrape(t).want(t, map[string]float64{
		`abate_call_refusals_total{reason="tree_exhausted",service="s"}`: 1,
		`abate_hedges_denied_total{reason="tree_exhausted",service="s"}`: 1,
		`abate_call_refusals_total{reason="other",service="s"}`:          1,
	})
}
