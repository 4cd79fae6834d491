package abatehttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// costless is a ResponseWriter that costs nothing.
type costless struct{ header http.Header }

func (d *costless) Header() http.Header         { return d.header }
func (d *costless) Write(p []byte) (int, error) { return len(p), nil }
func (d *costless) WriteHeader(int)             {}
func (d *costless) Flush()                      {}

var plain = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })

// prices are what a request costs on its way through a Handler, in allocations.
func prices() map[string]struct {
	protection inbound.Protection
	headers    []string
	most       float64
} {
	limit := inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1e9, Per: time.Second}}}
	byCaller := limit
	byCaller.Key = "caller"
	crowded := shed.Config{Concurrency: shed.Gradient, MaxCallerShare: 0.5}
	return map[string]struct {
		protection inbound.Protection
		headers    []string
		most       float64
	}{
		"pass-through":    {inbound.Protection{}, nil, 1},
		"shed":            {inbound.DefaultProtection(), nil, 1},
		"shed fairly":     {inbound.Protection{Shed: crowded}, nil, 1},
		"limit":           {inbound.Protection{RateLimit: limit}, nil, 2},
		"limit by caller": {inbound.Protection{RateLimit: byCaller}, nil, 2},
		"priority": {
			inbound.Protection{TrustedPeers: []string{"192.0.2.0/24"}}, []string{"Abate-Priority", "CRITICAL"}, 3,
		},
		"deadline": {inbound.Protection{Timeout: time.Second}, nil, 6},
		"allowance": {inbound.Protection{TrustedPeers: []string{"192.0.2.0/24"}}, []string{
			"Abate-Retry-Allowance", `2;owner="shop"`,
		}, 4},
		"attempt": {inbound.Protection{TrustedPeers: []string{"192.0.2.0/24"}}, []string{"X-Envoy-Attempt-Count", "1"}, 4},
		"refused": {
			inbound.Protection{
				RateLimit: inbound.ArrivalLimit{Config: ratelimit.Config{Limit: ratelimit.Rate{Per: time.Second}}},
			}, nil, 6,
		},
	}
}

func TestARequestCostsFewAllocations(t *testing.T) {
	for name, c := range prices() {
		h := abatehttp.NewHandler(newGate(t, c.protection), plain)
		w, r := &costless{http.Header{}}, from("192.0.2.1:1", c.headers...)
		h.ServeHTTP(w, r)
		if got := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); got > c.most {
			t.Errorf("%s: %v allocations, want %v", name, got, c.most)
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	for name, c := range prices() {
		b.Run(name, func(b *testing.B) {
			h := abatehttp.NewHandler(newGate(b, c.protection), plain)
			w, r := &costless{http.Header{}}, from("192.0.2.1:1", c.headers...)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
	b.Run("next alone", func(b *testing.B) {
		w, r := &costless{http.Header{}}, from("192.0.2.1:1")
		for b.Loop() {
			plain.ServeHTTP(w, r)
		}
	})
}
