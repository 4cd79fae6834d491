package proxy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
)

// A copy that a library has sent because the first was slow is an extra attempt to the proxy between it and the
// service, too. It is not refused as long as there is budget, earns none, and says to the service what it is.
func TestAHedgeOfALibraryIsAnExtraAttemptToTheProxyToo(t *testing.T) {
	for name, retries := range map[string]int{"hedges only": 0, "hedges and retries": 2} {
		t.Run(name, func(t *testing.T) {
			const calls, slow = 50, 10
			s := serveGRPC(t, func(c *rpc) error {
				m, _ := c.receive()
				if c.first("x-slow") != "" && c.first("grpc-previous-rpc-attempts") == "" {
					<-c.Context().Done()
					return c.Context().Err()
				}
				return c.send(m)
			})
			r := start(t, single([]string{s.url}, "maxRetries: 2", "retryBudget: {ratio: 0.1, reserve: 100, window: 1h}",
				"retryMethods: [/shop.Payment/*]"))
			g, err := abate.New("payments", abate.Policy{
				Retry: abate.Retry{MaxRetries: retries}, RetryMethods: []string{"/shop.Payment/*"},
				Hedge: hedge.Config{Delay: time.Millisecond}, RetryBudget: budget.Config{
					Ratio: 0.1, Reserve: 20, Window: time.Hour,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			cc := dialLibrary(t, r.addr, g)
			for i := range calls {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if i < slow {
					ctx = metadata.AppendToOutgoingContext(ctx, "x-slow", "1")
				}
				out := new(wrapperspb.StringValue)
				if err := cc.Invoke(ctx, "/shop.Payment/Get", wrapperspb.String(fmt.Sprint(i)), out); err != nil ||
					out.Value != fmt.Sprint(i) {
					t.Errorf("call %d: %q, %v", i, out.Value, err)
				}
				cancel()
			}
			hedges := 0
			for _, c := range s.seen() {
				if c.first("grpc-previous-rpc-attempts") != "" {
					hedges++
				}
			}
			t.Logf("hedges %d of %d calls, balance %v", hedges, len(s.seen()), r.guard().Budget)
			// 100 at first, more than all copies take: one that finds none left passes, as the tree has paid for it. A tenth
			// for each first call, also one that was given up before the service saw it, 1 for each copy.
			if most := 100 + calls/10.0 - float64(hedges); hedges < slow || r.guard().Budget > most+0.01 {
				t.Errorf("%d hedges, %d attempts; the proxy's budget has %.2f left, at most %.2f", hedges, len(s.seen()),
					r.guard().Budget, most)
			}
		})
	}
}

// However attempts are stacked, all of them together stay within the bound.
func TestHedgesAndRetriesOfALibraryOverThoseOfTheProxyStayWithinTheBound(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	const calls = 100
	for name, fail := range map[string]func(c *rpc) error{
		"refused": func(*rpc) error { return grpcstatus.Error(codes.Unavailable, "down") },
		"slow": func(c *rpc) error {
			<-c.Context().Done()
			return grpcstatus.Error(codes.Unavailable, "down")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveGRPC(t, fail)
			const limits = "retryBudget: {ratio: 0.1, reserve: 5, window: 1h}"
			r := start(t, single([]string{s.url}, "maxRetries: 3", "initialDelay: 1ms", limits, "hedge: {delay: 1ms}",
				"circuitBreaker: {disabled: true}", "retryMethods: [/shop.Payment/*]"))
			p := abate.Policy{
				Retry: abate.Retry{MaxRetries: 3, InitialDelay: time.Millisecond}, RetryMethods: []string{"/shop.Payment/*"},
				Hedge: hedge.Config{Delay: time.Millisecond}, RetryBudget: budget.Config{Ratio: 0.1, Reserve: 5, Window: time.Hour},
			}
			p.CircuitBreaker.Disabled = true
			g, err := abate.New("payments", p)
			if err != nil {
				t.Fatal(err)
			}
			cc := dialLibrary(t, r.addr, g)
			for range calls {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_ = cc.Invoke(ctx, "/shop.Payment/Get", wrapperspb.String("x"), new(wrapperspb.StringValue))
				cancel()
			}
			t.Logf("%d attempts, balance %v", len(s.seen()), r.guard().Budget)
			if n, most := len(s.seen()), calls*12/10+10; n > most {
				t.Errorf("%d attempts of %d calls, at most %d", n, calls, most)
			}
		})
	}
}

func dialLibrary(t *testing.T, addr string, g *abate.Guard) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr,
		append(abategrpc.DialOptions(g), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDisableRetry())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}
