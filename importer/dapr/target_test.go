package dapr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/topology"
)

func TestWhatATargetSaysInTheWrongPlaceIsRemarked(t *testing.T) {
	f := read(t, `apiVersion: dapr.io/v1alpha1
kind: Resiliency
spec:
  policies:
    retries: {some: {maxRetries: 1}}
    circuitBreakers:
      a: {trip: concurrency > 10}
      b: {trip: "consecutiveFailures >= 5 || concurrency > 9"}
      c: {trip: "totalFailures > int(3) && requests > 7"}
      d: {trip: "{{ .Values.trip }}"}
  targets:
    apps: {orders: {retry: some, timeouts: 3s}}
    components:
      state: {retry: some}
      bus: {inbound: {retry: some}, outbound: {retries: some}}
`)
	var got string
	for _, r := range f.Remarks {
		got += fmt.Sprintf("%s %s: %s\n", r.Rule, r.At, r.Fix)
	}
	const want = "F501 r.yaml:7:17: it knows: requests, totalSuccesses, totalFailures, consecutiveSuccesses, " +
		"consecutiveFailures\n" + `F601 r.yaml:12:34: did you mean timeout?
F601 r.yaml:14:15: write it below outbound: (or inbound:, for what the component delivers)
F601 r.yaml:15:48: it knows: timeout, retry, circuitBreaker
`
	if got != want {
		t.Errorf("remarks\n%swant\n%s", got, want)
	}
}

func TestAConfigurationIsNoResiliency(t *testing.T) {
	f := read(t, "apiVersion: dapr.io/v1alpha1\nkind: Configuration\nmetadata: {name: c}\n"+
		"spec: {policies: {retries: {r: {}}}, targets: {apps: {a: {retry: r}}}}\n")
	if len(f.Policies) != 0 || len(f.Remarks) != 1 || f.Remarks[0].Rule != "F602" || f.Remarks[0].At.Line != 2 {
		t.Errorf("%s", f.YAML())
	}
}

func TestAComponentIsNoServiceOfHTTP(t *testing.T) {
	f := read(t, "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nmetadata: {name: r}\nspec:\n"+
		"  policies: {retries: {r: {maxRetries: 3}}}\n"+
		"  targets: {apps: {a: {retry: r}}, components: {store: {outbound: {retry: r}}}}\n")
	joined, _ := f.Join()
	for _, s := range joined.Services {
		if component := s.Name == "store"; component != (s.Speaks.V == topology.SpeaksOther) {
			t.Errorf("%s speaks %s", s.Name, s.Speaks)
		}
	}
}

func TestAWaitOfTheOtherKindOfPolicyDoesNothing(t *testing.T) {
	for policy, want := range map[string]string{
		"{policy: constant, maxInterval: 5s}":                    "F602 r.yaml:3:64 which is 5s here, so maxInterval",
		"{policy: constant, duration: 2s, maxInterval: 9s}":      "F602 r.yaml:3:78 which is 2s, so maxInterval",
		"{maxInterval: 5s}":                                      "F602 r.yaml:3:46 so maxInterval",
		"{policy: constant, duration: 2s}":                       "",
		"{policy: exponential, maxInterval: 5s}":                 "",
		"{policy: exponential, duration: 1s, maxInterval: 5s}":   "F602 r.yaml:3:64 so duration does nothing",
		"{policy: '{{ .Values.kind }}', maxInterval: 5s}":        "",
		"{policy: constant, duration: 2s, maxRetries: 3}":        "",
		"{policy: exponential, maxInterval: 15s, maxRetries: 3}": "",
	} {
		f := read(t, "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nspec: {policies: {retries: {p: "+policy+"}}}\n")
		got := ""
		for _, r := range f.Remarks {
			got += r.Rule + " " + r.At.String() + " " + r.Text
		}
		rule, rest, _ := strings.Cut(want, " ")
		at, words, _ := strings.Cut(rest, " ")
		if (want == "") != (got == "") || want != "" && !strings.HasPrefix(got, rule+" "+at+" ") ||
			!strings.Contains(got, words) {
			t.Errorf("%s: %q, want %q", policy, got, want)
		}
	}
}
