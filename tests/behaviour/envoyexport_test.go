//go:build envoy

package behaviour_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/tests/behaviour"
	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

func TestEnvoyTakesWhatIsExported(t *testing.T) {
	program := envoyProgram(t)
	folder := newProcess(t, "envoy")
	r := rand.New(rand.NewPCG(9, 10))
	for range 5 {
		policy, urls := randomPolicies(r, policyNames(10))
		text, _ := exported(t, "envoy", policy, urls)
		write(t, folder.File("envoy.yaml"), text)
		cmd := exec.Command(program, "--mode", "validate", "-c", folder.File("envoy.yaml"), "--log-level", "error")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\nof\n%s", err, said, text)
		}
	}
}

// Each service stands twice in the policy file: "live" answers and "dead" refuses connections. Envoy has to try as the
// policy's layer says wherever the loss report does not say that the number of tries changes, and there as the report
// says.
func TestEnvoyTriesWhatIsExportedAsThePolicySays(t *testing.T) {
	program := envoyProgram(t)
	b := backend.Start(t, 3)
	policy, urls := timedPolicies(rand.New(rand.NewPCG(11, 12)), b, 50)
	written, _ := exported(t, "envoy", policy, urls)
	_, losses := exported(t, "envoy", policy, nil) // services at one address cannot be told apart when it is read again
	address := freeAddress(t)
	text := strings.Replace(string(written), "{socket_address: {address: 127.0.0.1, port_value: 10000}}",
		socketAddress(address), 1)
	text = strings.ReplaceAll(text, "              domains:",
		"              include_attempt_count_in_response: true\n              domains:")
	after := readEnvoy(t, text)
	form, _ := importer.Read([]importer.File{{Name: "policy.yaml", Data: []byte(policy)}}, source.Assume{})
	startEnvoy(t, program, text, address)
	product := hosts(b, address)
	changed, all := 0, 0
	for _, f := range envoyFailures {
		for _, method := range []string{"GET", "POST"} {
			// One request to a cluster at a time: a budget is not what this is about.
			var cases []behaviour.Case
			for i := range form.Policies {
				p := &form.Policies[i]
				if strings.HasPrefix(p.Callees[0], "dead") != (f.outcome == topology.Refused) {
					continue
				}
				c := behaviour.Case{Name: p.Callees[0] + ", " + method + " " + f.command, Key: p.Callees[0] + "/" + method,
					Method: method, Command: f.command, Outcome: f.outcome, Layer: layerFor(t, after, p.Callees[0])}
				changed += differs(t, &c, &p.Layer, losses[i].Rows)
				cases = append(cases, c)
			}
			all += len(cases)
			behaviour.Run(t, product, cases)
		}
	}
	t.Logf("%d cases, of which the loss report names %d", all, changed)
}

// layerFor returns the layer of the virtual host that a service has.
func layerFor(t *testing.T, form topology.Form, service string) *topology.Layer {
	t.Helper()
	for i := range form.Calls {
		for j := range form.Calls[i].Layers {
			if l := &form.Calls[i].Layers[j]; strings.HasPrefix(l.Match.Host, service+",") {
				return l
			}
		}
	}
	t.Fatalf("the importer found no layer for %s", service)
	return nil
}

// differs reports whether what was written tries a case otherwise than the policy does, which the loss report has to
// say. Only failures of the connection may be different: Envoy has one word for several.
func differs(t *testing.T, c *behaviour.Case, policy *topology.Layer, rows []exporter.Row) int {
	t.Helper()
	m := topology.Safe
	if c.Method == http.MethodPost {
		m = topology.Unsafe
	}
	before, after := policy.Tries(c.Outcome, m).N, c.Layer.Tries(c.Outcome, m).N
	if before == after {
		return 0
	}
	one := c.Outcome == topology.Refused || c.Outcome == topology.ResetSent || c.Outcome == topology.Hang
	for _, row := range rows {
		_, about, _ := strings.Cut(row.Setting, "tries of ")
		outcomes, _, of := strings.Cut(about, " ("+m.String()+" methods)")
		if !of {
			outcomes, _, of = strings.Cut(about, " (all methods)")
		}
		others, but := strings.CutPrefix(outcomes, "every failure")
		named := slices.Contains(strings.Split(strings.TrimPrefix(others, " but "), ", "), c.Outcome.String())
		if one && of && row.Kind != exporter.Exact && named != but {
			return 1
		}
	}
	t.Errorf("%s: the policy tries %d times, what is written %d times, and that is no loss of the format, or the loss "+
		"report does not say it: %v", c.Name, before, after, rows)
	return 1
}

// timedPolicies draws n services, each twice, whose time limits let it be said for sure how many tries begin: see
// randomEnvoy.
func timedPolicies(r *rand.Rand, b *backend.Backend, n int) (policy string, urls map[string][]string) {
	const try = 500 // ms
	var text strings.Builder
	text.WriteString("services:\n")
	urls = map[string][]string{}
	for i := range n {
		settings := fmt.Sprintf("    attemptTimeout: %dms\n    timeout: %dms\n    initialDelay: 1ms\n    maxDelay: %dms\n%s",
			try, try*(2+r.IntN(5))-100, 1+r.IntN(5), randomService(r))
		servers := 1 + r.IntN(3)
		for kind, addresses := range map[string][]string{"live": b.Addresses[:servers], "dead": b.Dead[:servers]} {
			name := fmt.Sprintf("%s%d", kind, i)
			for _, a := range addresses {
				urls[name] = append(urls[name], "http://"+a)
			}
		}
		fmt.Fprintf(&text, "  live%d:\n%s  dead%d:\n%s", i, settings, i, settings)
	}
	return text.String(), urls
}

// hosts is a product that chooses by the host of a request, which is the first part of the path here.
func hosts(b *backend.Backend, address string) *behaviour.Product {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &behaviour.Product{Backend: b, Send: func(ctx context.Context, method, path string) (behaviour.Answer, error) {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, nil)
		if err != nil {
			return behaviour.Answer{}, err
		}
		req.Host, _, _ = strings.Cut(path[1:], "/")
		resp, err := client.Do(req)
		if err != nil {
			return behaviour.Answer{}, err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return behaviour.Answer{Tries: envoyTries(resp), Status: resp.StatusCode}, nil
	}}
}
