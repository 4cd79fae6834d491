package abatehttp_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/ratelimit"
)

// More hosts than guards, all of them down, again and again: no fresh budget for one that was forgotten.
func TestAHostThatIsForgottenGetsNoFreshBudget(t *testing.T) {
	for _, hosts := range []int{90, 110, 500} {
		const most, rounds = 100, 40
		d := new(down)
		choose, err := abatehttp.PerHost(unbroken(), most)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: &abatehttp.Transport{Base: d, Select: choose}}
		for range rounds {
			for i := range hosts {
				again(t, client, newRequest(t, "GET", fmt.Sprintf("http://h%d.test/", i), nil))
			}
		}
		first := float64(hosts * rounds)
		if extra := float64(d.sent.Load()) - first; extra > 0.1*first+10*(most+1) {
			t.Errorf("%d hosts: %.0f extra attempts for %.0f first ones", hosts, extra, first)
		}
	}
}

// A guard whose calls are under way, or whose rate limit is not full again, is not forgotten: another would let as many
// through again.
func TestAGuardThatIsInUseIsNotForgotten(t *testing.T) {
	for name, p := range map[string]abate.Policy{
		"rate limit": {RateLimit: abate.AttemptLimit{
			Config: ratelimit.Config{Limit: ratelimit.Rate{Tokens: 1, Per: 24 * time.Hour}, Burst: 3},
		}},
		"bulkhead": {Bulkhead: bulkhead.Config{MaxConcurrentCalls: 3, NoQueue: true}},
	} {
		t.Run(name, func(t *testing.T) {
			choose, err := abatehttp.PerHost(p, 2)
			if err != nil {
				t.Fatal(err)
			}
			sent := 0
			calls := make([]core.Call, 100)
			for i := range calls {
				g := choose(newRequest(t, "GET", fmt.Sprintf("http://h%d.test/", i%4), nil))
				if g.Begin(&calls[i], core.Now(), core.NoDeadline).Action == core.Attempt {
					sent++
				}
			}
			if sent != 3*3 {
				t.Errorf("%d attempts to four hosts, want three for each of two guards and the one that the others share", sent)
			}
		})
	}
}

// However a host is written, it has one guard, with one budget.
func TestAHostHasOneGuardHoweverItIsWritten(t *testing.T) {
	choose, err := abatehttp.PerHost(unbroken(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for first, others := range map[string][]string{
		"http://api.test/":       {"http://API.test/", "http://api.test./", "http://api.test:80/", "http://Api.Test.:80/"},
		"https://api.test:8443/": {"https://api.test.:8443/", "https://API.TEST:8443/x"},
		"http://[2001:db8::1]/":  {"http://[2001:DB8::1]:80/"},
	} {
		g := choose(newRequest(t, "GET", first, nil))
		for _, other := range others {
			if got := choose(newRequest(t, "GET", other, nil)); got != g {
				t.Errorf("%s has %q, %s has %q", first, g.Name(), other, got.Name())
			}
		}
	}
	if a, b := choose(newRequest(t, "GET", "https://api.test:80/", nil)),
		choose(newRequest(t, "GET", "http://api.test/", nil)); a == b {
		t.Error("another port has the same guard")
	}
}

// Guards and PerHost, which forget by other rules, hold the same bound.
func TestGuardsAndPerHostForgetNoDebt(t *testing.T) {
	const most, keys, rounds = 50, 150, 10
	p := unbroken()
	guards, err := abate.NewGuards[string]("host", p, most)
	if err != nil {
		t.Fatal(err)
	}
	perHost, err := abatehttp.PerHost(p, most)
	if err != nil {
		t.Fatal(err)
	}
	for name, choose := range map[string]func(*http.Request) *abate.Guard{
		"PerHost": perHost,
		"Guards":  func(r *http.Request) *abate.Guard { return guards.For(r.URL.Host) },
	} {
		d := new(down)
		client := &http.Client{Transport: &abatehttp.Transport{Base: d, Select: choose}}
		for range rounds {
			for i := range keys {
				again(t, client, newRequest(t, "GET", fmt.Sprintf("http://h%d.test/", i), nil))
			}
		}
		first := float64(keys * rounds)
		if extra := float64(d.sent.Load()) - first; extra > 0.1*first+10*(most+1) {
			t.Errorf("%s: %.0f extra attempts for %.0f first ones", name, extra, first)
		}
	}
}
