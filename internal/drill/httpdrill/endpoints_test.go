package httpdrill_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/policyfile"
)

// spread is four replicas of which the first refuses everything for a while.
const spread = `
name: spread
duration: 4500ms
warmUp: 200ms
clients: {shop: {rate: 60, arrivals: jittered, instances: 3, calls: [pay]}}
services: {pay: {replicas: 4, balancing: least-request, workers: 20, serviceTime: 5ms, queue: {limit: 150}}}
faults: [{at: 1s, for: 1500ms, outage: pay, mode: fail, share: 25%}]
model: {drain: 300ms}
variants:
  again:
    policy:
      defaults: {<<: &once {attemptTimeout: 4s, maxRetries: 0, retryBudget: &off {disabled: true},
                             circuitBreaker: *off},
                 maxRetries: 1, initialDelay: 10ms, outlierDetection: *off}
  ejection:
    policy:
      defaults:
        <<: *once
        outlierDetection: {consecutiveFailures: 1, baseEjectionTime: 1h, maxEjectionTime: 1h}
  random: {services: {pay: {balancing: random}}, policy: {defaults: *once}}
  in-turn: {services: {pay: {balancing: round-robin}}, policy: {defaults: *once}}
`

func TestSeveralReplicasAreBalancedAsInTheSimulation(t *testing.T) {
	if testing.Short() {
		return
	}
	result, err := httpdrill.Run(t.Context(), drillOf(t, read(t, spread)))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range result.Acts {
		refused := a.Service.Refused
		switch {
		case a.Setting.Replicas != 4 || a.Setting.Workers != 80:
			t.Errorf("%s: %d replicas, %d workers, want 4 and 80", a.Act, a.Setting.Replicas, a.Setting.Workers)
		case a.Act == "again" && (refused == 0 || a.Endings["queue-full"] > 0):
			t.Errorf("%s: %d attempts were refused, %d requests: the second attempt has not gone elsewhere", a.Act, refused,
				a.Endings["queue-full"])
		// Two attempts of one client may be on their way there at once.
		case a.Act == "ejection" && (refused == 0 || refused > 12):
			t.Errorf("%s: %d attempts were refused, want one of each of the 3 clients", a.Act, refused)
		case (a.Act == "random" || a.Act == "in-turn") && refused < 10:
			t.Errorf("%s: %d of about 90 attempts were refused, want a fourth", a.Act, refused)
		}
	}
}

func TestAProxyHasAllReplicas(t *testing.T) {
	told, enough := "", errors.New("enough")
	c := drillOf(t, read(t, spread), "ejection")
	c.Via = func(policy []byte, _ abate.Observer) (*url.URL, func(), error) {
		told = string(policy)
		return nil, nil, enough
	}
	if _, err := httpdrill.Run(t.Context(), c); !errors.Is(err, enough) {
		t.Fatal(err)
	}
	file, err := policyfile.Parse("told.yaml", []byte(told))
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := file.Policy("pay"); len(p.Upstreams) != 4 || p.OutlierDetection.ConsecutiveFailures != 1 {
		t.Errorf("the proxy's policy file is\n%s", told)
	}
	c.Acts = []string{"random"}
	if found := strings.Join(c.Problems(), "\n"); !strings.Contains(found,
		"services.pay.balancing: a proxy chooses the less busy of two by itself; write balancing: least-request") {
		t.Errorf("problems: %q", found)
	}
}
