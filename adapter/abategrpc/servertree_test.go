package abategrpc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/shed"
)

// tired is a guard whose calls fail, with so many retries.
func tired(t testing.TB, retries int) func(context.Context) error {
	g, err := abate.New("ledger", alone(abate.Policy{Retry: abate.Retry{MaxRetries: retries, Backoff: "none"}}))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		_, err := abate.Do(ctx, g, func(context.Context) (int, error) { return 0, errors.New("down") })
		return err
	}
}

func TestRetriesBehindAreReported(t *testing.T) {
	down := func(err error) error { return status.Error(codes.Unavailable, err.Error()) }
	for name, c := range map[string]struct {
		retries   int
		protect   func(inbound.Protection) inbound.Protection
		md        []string
		answer    func(error) error
		made      string
		pushback  string
		ratelimit string
	}{
		"nobody asked, and all was tried": {2, trusting, nil, down, "", "-1", ""},
		"asked, and all was tried": {
			2, trusting, []string{"abate-retry-allowance", "5"}, down, "2;final", "-1", "",
		},
		"the allowance was less": {2, trusting, []string{"abate-retry-allowance", "1"}, down, "1", "", ""},
		"nothing was left":       {2, trusting, []string{"abate-retry-allowance", "0"}, down, "0", "", ""},
		"the least of several": {
			2, trusting, []string{"abate-retry-allowance", "5", "abate-retry-allowance", "1"}, down, "1", "", "",
		},
		"a stranger is not limited": {
			2, untrusting, []string{"abate-retry-allowance", "0"}, down, "2;final", "-1", "",
		},
		"an allowance that is none": {
			2, trusting, []string{"abate-retry-allowance", "-1"}, down, "2;final", "-1", "",
		},
		"the service made the best of it": {2, trusting, []string{"abate-retry-allowance", "5"}, func(error) error {
			return nil
		}, "2", "", ""},
		"the caller's mistake": {2, trusting, []string{"abate-retry-allowance", "5"}, func(error) error {
			return status.Error(codes.InvalidArgument, "x")
		}, "2", "", ""},
		"Envoy is told in its own words": {
			2, trusting, []string{"x-envoy-attempt-count", "1"}, down, "", "-1", "true",
		},
		"a stranger who speaks like Envoy": {
			2, untrusting, []string{"x-envoy-attempt-count", "1"}, down, "", "-1", "",
		},
		"a layer that does not repeat says no more": {0, trusting, []string{"abate-retry-allowance", "5"}, down, "0", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			call := tired(t, c.retries)
			conn, _, _ := protect(t, c.protect(inbound.Protection{}), func(ctx context.Context, _ *text) (*text, error) {
				return new(text), c.answer(call(ctx))
			})
			a := charge(t.Context(), conn, "x", c.md...)
			made, pushback, limited := a.one(t, "abate-retries-made"), a.one(t, "grpc-retry-pushback-ms"),
				a.one(t, "x-envoy-ratelimited")
			if made != c.made || pushback != c.pushback || limited != c.ratelimit {
				t.Errorf("made %q, pushback %q, ratelimited %q; want %q, %q, %q", made, pushback, limited, c.made, c.pushback,
					c.ratelimit)
			}
		})
	}
}

func untrusting(p inbound.Protection) inbound.Protection { return p }

func TestAllowanceAndOwnerReachTheHandler(t *testing.T) {
	var got core.Allowance
	var limited bool
	conn, _, _ := protect(t, trusting(inbound.Protection{}), func(ctx context.Context, _ *text) (*text, error) {
		got, limited = core.CallTreeOf(ctx).Allowance()
		return new(text), nil
	})
	charge(t.Context(), conn, "x", "abate-retry-allowance", `2;owner="edge";call="abc"`)
	if !limited || got != (core.Allowance{Left: 2, Owner: "edge"}) {
		t.Errorf("%+v, %v", got, limited)
	}
	charge(t.Context(), conn, "x")
	if limited {
		t.Error("a call without an allowance is limited")
	}
}

func TestRetriesAreCountedAndTooManyAreToldToStop(t *testing.T) {
	p := trusting(inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 100, MaxRetryShare: 0.1}})
	conn, _, log := protect(t, p, func(_ context.Context, in *text) (*text, error) {
		if in.Value == "fail" {
			return nil, status.Error(codes.Unavailable, "x")
		}
		return new(text), nil
	})
	for i := range 200 {
		md := []string{"grpc-previous-rpc-attempts", "2"}
		if i%2 == 0 {
			md = []string{"x-envoy-attempt-count", "4"}
		}
		charge(t.Context(), conn, "x", md...)
	}
	attempts := log.all(inbound.RequestAdmitted)
	if len(attempts) != 200 || attempts[0].Attempt != 4 || attempts[1].Attempt != 3 {
		t.Errorf("attempts %d and %d of %d", attempts[0].Attempt, attempts[1].Attempt, len(attempts))
	}
	eventually(t, func() bool { // the counts are looked at twice a second
		a := charge(t.Context(), conn, "fail")
		if a.code() != codes.Unavailable {
			t.Fatal(a.err)
		}
		return a.one(t, "grpc-retry-pushback-ms") == "-1"
	})
	if a := charge(t.Context(), conn, "fine"); a.err != nil || a.one(t, "grpc-retry-pushback-ms") != "" {
		t.Errorf("%v, %v", a.err, a.trailer)
	}
}

func TestPriorityAndAttemptCountOnlyFromTrustedPeers(t *testing.T) {
	md := []string{"abate-priority", "SHEDDABLE", "grpc-previous-rpc-attempts", "3"}
	for name, c := range map[string]struct {
		protection inbound.Protection
		md         []string
		priority   shed.Priority
		attempt    int
		says       bool
	}{
		"a trusted peer": {trusting(inbound.Protection{}), md, shed.Sheddable, 4, true},
		"a stranger":     {inbound.Protection{}, md, shed.Critical, 1, false},
		"nothing said":   {trusting(inbound.Protection{}), nil, shed.Critical, 1, false},
		"a default": {
			inbound.Protection{Priority: inbound.PriorityRule{Default: shed.SheddablePlus}}, md, shed.SheddablePlus, 1, true,
		},
		"a word unknown": {trusting(inbound.Protection{}), []string{"abate-priority", "MOST"}, shed.Critical, 1, true},
		"the nearest hop": {trusting(inbound.Protection{}), []string{
			"abate-priority", "CRITICAL_PLUS", "abate-priority", "SHEDDABLE",
		}, shed.Sheddable, 1, true},
		"malformed numbers": {trusting(inbound.Protection{}), []string{
			"grpc-previous-rpc-attempts", "-1", "grpc-previous-rpc-attempts", "99999999999",
		}, shed.Critical, 1, false},
		"several numbers": {trusting(inbound.Protection{}), []string{
			"grpc-previous-rpc-attempts", "1", "grpc-previous-rpc-attempts", "5",
		}, shed.Critical, 6, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got shed.Priority
			var says bool
			conn, _, log := protect(t, c.protection, func(ctx context.Context, _ *text) (*text, error) {
				got, says = core.PriorityOf(ctx)
				return new(text), nil
			})
			charge(t.Context(), conn, "x", c.md...)
			e := log.await(t, inbound.RequestAdmitted, 1)[0]
			if e.Priority != c.priority || e.Attempt != c.attempt || says != c.says || says && got != c.priority {
				t.Errorf("priority %v (%v, %v), attempt %d", e.Priority, got, says, e.Attempt)
			}
		})
	}
}

func TestHealthAndReflectionPass(t *testing.T) {
	for method, want := range map[string]bool{
		"/grpc.health.v1.Health/Check":                                   true,
		"/grpc.health.v1.Health/Watch":                                   true,
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      true,
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": true,
		"/grpc.health.v1.HealthX/Check":                                  false,
		"/grpc.channelz.v1.Channelz/GetServers":                          false,
		"/shop.Payment/Charge":                                           false,
		"/x/grpc.health.v1.Health/Check":                                 false,
		"":                                                               false,
	} {
		if got := abategrpc.PassesByDefault(method); got != want {
			t.Errorf("%s passes: %v", method, got)
		}
	}
}

func TestMethodsMayHaveGatesOfTheirOwn(t *testing.T) {
	closed := inbound.Protection{RateLimit: inbound.ArrivalLimit{Config: perMinute(1).Config}}
	closed.RateLimit.Limit.Tokens, closed.RateLimit.Burst = 0, 0
	none, open := newGate(t, closed), newGate(t, inbound.Protection{})
	for name, c := range map[string]struct {
		options []abategrpc.Gated
		main    *inbound.Gate
		want    codes.Code
	}{
		"the main gate": {nil, none, codes.ResourceExhausted},
		"a method's own": {
			[]abategrpc.Gated{{Methods: []string{"/shop.Payment/Charge"}, Gate: open}}, none, codes.OK,
		},
		"a service's own": {[]abategrpc.Gated{{Methods: []string{"/shop.Payment/*"}, Gate: open}}, none, codes.OK},
		"the method counts more": {
			[]abategrpc.Gated{{Methods: []string{"/shop.Payment/*"}, Gate: open},
				{Methods: []string{"/shop.Payment/Charge"}, Gate: none}}, open, codes.ResourceExhausted,
		},
		"no gate at all":             {[]abategrpc.Gated{{Methods: []string{"/shop.Payment/Charge"}}}, none, codes.OK},
		"another service's":          {[]abategrpc.Gated{{Methods: []string{"/shop.Pay/*"}, Gate: none}}, open, codes.OK},
		"no main gate, others' only": {[]abategrpc.Gated{{Methods: []string{"/shop.Pay/*"}, Gate: none}}, nil, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			conn := (&shop{charge: echo}).serve(t, abategrpc.ServerOptions(c.main, c.options...)...)
			if a := charge(t.Context(), conn, "x"); a.code() != c.want {
				t.Error(a.err)
			}
		})
	}
}

func TestOversizedMetadataIsRefusedByTheTransport(t *testing.T) {
	conn, _, log := protect(t, trusting(inbound.Protection{}), echo)
	// In many values: HPACK reads a long one again from its beginning with every frame, which took half a minute under
	// -race.
	a := charge(t.Context(), conn, "x",
		slices.Repeat([]string{"abate-retry-allowance", strings.Repeat("1", 16<<10)}, 17<<6)...)
	if a.err == nil || len(log.all(inbound.RequestAdmitted)) != 0 {
		t.Error(a.err)
	}
	if a = charge(t.Context(), conn, "x", "abate-retry-allowance", strings.Repeat("1", 1<<20)); a.err != nil ||
		a.one(t, "abate-retries-made") != "0" {
		t.Errorf("a long value that is within the transport's limits: %v, %v", a.err, a.trailer)
	}
}

func TestTheInterceptorWorksWithoutAServerAroundIt(t *testing.T) {
	intercept := abategrpc.UnaryServerInterceptor(newGate(t, trusting(inbound.DefaultProtection())))
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("abate-retry-allowance", "1"))
	resp, err := intercept(ctx, new(text), charging, func(context.Context, any) (any, error) { return "ok", nil })
	if resp != "ok" || err != nil {
		t.Error(resp, err)
	}
}

// Three services call each other, each of which may try three times, and the last is down: it sees three calls, and not
// 27.
func TestAChainOfServicesSharesOneAllowance(t *testing.T) {
	for owner, most := range map[core.RetryOwner]int32{core.OwnerNearest: 3, core.OwnerEdge: 3, core.OwnerNone: 27} {
		t.Run(string(owner), func(t *testing.T) {
			var calls atomic.Int32
			policy := abate.Policy{RetryOwner: owner, RetryOn: []string{"UNAVAILABLE"}, Retry: abate.Retry{
				MaxRetries: 2, InitialDelay: time.Millisecond,
			}}
			next, _, _ := protect(t, trusting(inbound.Protection{}), func(context.Context, *text) (*text, error) {
				calls.Add(1)
				return nil, status.Error(codes.Unavailable, "down")
			})
			for _, name := range []string{"ledger", "payments", "cart"} {
				g, err := abate.New(name, alone(policy))
				if err != nil {
					t.Fatal(err)
				}
				conn := dial(t, next.Target(), abategrpc.DialOptions(g)...)
				next, _, _ = protect(t, trusting(inbound.Protection{}), func(ctx context.Context, in *text) (*text, error) {
					out := new(text)
					return out, conn.Invoke(ctx, "/shop.Payment/Charge", in, out)
				})
			}
			for range 5 { // the first ones may find out only that the next service knows of allowances
				calls.Store(0)
				if a := charge(t.Context(), next, "x"); a.code() != codes.Unavailable {
					t.Error(a.err)
				}
				if n := calls.Load(); n > most || owner == core.OwnerNone && n != most {
					t.Errorf("%d calls, want %d at most", n, most)
				}
			}
		})
	}
}

func TestWhatCallsUnderWayWereGivenCountsAsMade(t *testing.T) {
	g, err := abate.New("ledger", alone(abate.Policy{Retry: abate.Retry{MaxRetries: 3}}))
	if err != nil {
		t.Fatal(err)
	}
	var before, underWay core.Call
	g.Begin(&before, core.Now(), core.NoDeadline)
	before.AttemptDone(core.Now(), 0, abate.Outcome{Below: core.Below{Said: true}}) // the ledger knows of allowances
	conn, _, _ := protect(t, trusting(inbound.Protection{}), func(ctx context.Context, _ *text) (*text, error) {
		underWay.Under(core.CallTreeOf(ctx))
		g.Begin(&underWay, core.Now(), core.NoDeadline)
		if a, _ := underWay.Delegate(0); a.Left != 2 {
			t.Errorf("the ledger may make %d retries, want 2", a.Left)
		}
		return new(text), nil // without waiting for it
	})
	if a := charge(t.Context(), conn, "x", "abate-retry-allowance", "3"); a.one(t, "abate-retries-made") != "2" {
		t.Error(a.err, a.trailer)
	}
}
