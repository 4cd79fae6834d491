package abategrpc_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
)

var charging = &grpc.UnaryServerInfo{FullMethod: "/shop.Payment/Charge"}

// costless is a transport stream that costs nothing.
type costless struct{}

func (costless) Method() string                  { return charging.FullMethod }
func (costless) SetHeader(metadata.MD) error     { return nil }
func (costless) SendHeader(metadata.MD) error    { return nil }
func (costless) SetTrailer(md metadata.MD) error { return nil }

// arriving is the context of a call as grpc-go makes it.
func arriving(md ...string) context.Context {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 1}})
	md = append(md, ":authority", "payments", "content-type", "application/grpc", "user-agent", "grpc-go/1.80.0")
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(md...))
	return grpc.NewContextWithServerTransportStream(ctx, costless{})
}

// prices are what a call costs on its way through a Server, in allocations.
func prices() map[string]struct {
	protection inbound.Protection
	md         []string
	most       float64
} {
	limit := inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1e9, Per: time.Second}}}
	byCaller := limit
	byCaller.Key = "caller"
	closed := inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Per: time.Second}}}
	slow := inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: time.Hour}, Burst: 1}}
	trusted := []string{"192.0.2.0/24"}
	return map[string]struct {
		protection inbound.Protection
		md         []string
		most       float64
	}{
		"pass-through":    {inbound.Protection{}, nil, 2},
		"shed":            {inbound.DefaultProtection(), nil, 2},
		"limit by caller": {inbound.Protection{RateLimit: byCaller}, nil, 3},
		"trusted peer": {
			inbound.Protection{TrustedPeers: trusted, Shed: inbound.DefaultProtection().Shed}, nil, 2,
		},
		"trusted peer's allowance": {
			inbound.Protection{TrustedPeers: trusted}, []string{"abate-retry-allowance", `2;owner="edge"`}, 4,
		},
		"time limit":          {inbound.Protection{Timeout: time.Second}, nil, 6},
		"refused":             {inbound.Protection{RateLimit: closed}, nil, 15},
		"refused for a while": {inbound.Protection{RateLimit: slow}, nil, 23},
	}
}

func fine(context.Context, any) (any, error) { return nil, nil }

func TestACallCostsFewAllocations(t *testing.T) {
	for name, c := range prices() {
		intercept := abategrpc.UnaryServerInterceptor(newGate(t, c.protection))
		ctx := arriving(c.md...)
		_, _ = intercept(ctx, nil, charging, fine)
		if got := testing.AllocsPerRun(1000, func() { _, _ = intercept(ctx, nil, charging, fine) }); got > c.most {
			t.Errorf("%s: %v allocations, want %v", name, got, c.most)
		}
	}
}

func BenchmarkServer(b *testing.B) {
	for name, c := range prices() {
		b.Run(name, func(b *testing.B) {
			intercept := abategrpc.UnaryServerInterceptor(newGate(b, c.protection))
			ctx := arriving(c.md...)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = intercept(ctx, nil, charging, fine)
			}
		})
	}
}

// BenchmarkRefusalOverLoopback is what a refused call costs client and server together, beside one that is handled.
func BenchmarkRefusalOverLoopback(b *testing.B) {
	for name, p := range prices() {
		want := codes.OK
		switch name {
		case "refused", "refused for a while":
			want = codes.ResourceExhausted
		case "pass-through":
		default:
			continue
		}
		b.Run(name, func(b *testing.B) {
			conn, _, _ := protect(b, p.protection, echo)
			charge(b.Context(), conn, "x")
			b.ReportAllocs()
			for b.Loop() {
				if a := charge(b.Context(), conn, "x"); status.Code(a.err) != want {
					b.Fatal(a.err)
				}
			}
		})
	}
}
