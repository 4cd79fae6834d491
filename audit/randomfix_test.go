//go:build !race

package audit_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer"
)

// random makes small trees of files: services in a row or a tangle, whose calls have layers in one or several formats.
type random struct {
	*rand.Rand
	calls strings.Builder
	files []importer.File
}

func (r *random) one(of ...string) string { return of[r.IntN(len(of))] }

func (r *random) add(name, text string) {
	if r.IntN(4) == 0 {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	r.files = append(r.files, importer.File{Name: name, Data: []byte(text)})
}

func (r *random) duration() string {
	return r.one("200ms", "1s", "1500ms", "1.5s", "2s", "5s", "10s", "30s", "1m30s", "1m", `"2s"`, "'3s'")
}

// written is a layer as a file of calls has it.
func (r *random) written() string {
	text := "{kind: " + r.one("client", "gateway", "sidecar-out") + ", product: x"
	for _, key := range []string{"perTry", "overall"} {
		if r.IntN(2) == 0 {
			text += ", " + key + ": " + r.duration()
		}
	}
	if r.IntN(2) == 0 {
		text += fmt.Sprintf(", repeats: [{on: [%s], tries: %d}]", r.one(`"503"`, "refused", `hang, "503"`, "any"),
			2+r.IntN(4))
	}
	return text + "}"
}

// tree is a form in its own format, and files of other formats beside it.
func (r *random) tree() []importer.File {
	services := 2 + r.IntN(4)
	r.calls.WriteString("services:\n")
	for i := range services {
		fmt.Fprintf(&r.calls, "- {name: s%d, aliases: [p.S%d]", i, i)
		if i == 0 || r.IntN(8) == 0 {
			r.calls.WriteString(", rate: 9")
		}
		if r.IntN(3) == 0 {
			r.calls.WriteString(", answersWith: same")
		}
		if r.IntN(3) == 0 {
			r.calls.WriteString(", cancels: " + r.one("true", "false"))
		}
		r.calls.WriteString("}\n")
	}
	r.calls.WriteString("calls:\n")
	anchor := ""
	for i := 1; i < services; i++ {
		for range 1 + r.IntN(2) {
			from, layers := r.IntN(i), ""
			if r.IntN(12) == 0 {
				from = i + r.IntN(services-i) // a cycle
			}
			switch r.IntN(5) {
			case 0:
			case 1:
				if anchor == "" {
					anchor = "*a"
					layers = "&a " + r.written()
				} else {
					layers = anchor
				}
			case 2:
				layers = r.written() + ", " + r.written()
			default:
				layers = r.written()
			}
			fmt.Fprintf(&r.calls, "- {from: s%d, to: s%d, layers: [%s]%s}\n", from, i, layers,
				r.one("", "", ", unsafe: true", ", unsafe: false", ", unsafe: true, keyed: true"))
		}
	}
	for i := range services {
		r.beside(i)
	}
	r.add("calls.yaml", r.calls.String())
	return r.files
}

// beside adds a file of another format about the calls of a service, by itself or by others.
func (r *random) beside(i int) {
	switch r.IntN(6) {
	case 0:
		r.add(fmt.Sprintf("s%d/service_config.json", i), r.serviceConfig())
	case 1:
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {app: s0}}\ndata:\n  grpc.json: |\n    " +
			strings.ReplaceAll(r.serviceConfig(), "\n", "\n    ") + "\n"
		if r.IntN(3) == 0 {
			quoted, _ := json.Marshal(r.serviceConfig())
			text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  grpc.json: " + string(quoted) + "\n"
		}
		r.add(fmt.Sprintf("s%d/map.yaml", i), text)
	case 2:
		text := fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: s%d}\nspec:\n"+
			"  hosts: [s%d]\n  http:\n  - route: [{destination: {host: s%d}}]\n", i, i, i)
		if r.IntN(2) == 0 {
			text += "    timeout: " + r.one("1s", "2500ms", "10s") + "\n"
		}
		text += r.one("", "    retries: {attempts: 0}\n", "    retries:\n      attempts: 3 # why\n      perTryTimeout: 4s\n",
			"    retries: {perTryTimeout: 3s, attempts: 2, retryOn: \"5xx,reset\"}\n")
		r.add(fmt.Sprintf("s%d.yaml", i), text)
	case 3:
		r.add(fmt.Sprintf("s%d/src/main/resources/application.yaml", i), fmt.Sprintf("resilience4j:\n  retry:\n"+
			"    instances:\n      s%d: {%s}\n  timelimiter:\n    instances:\n      s%d: {timeoutDuration: %s}\n", i,
			r.one("maxAttempts: 3", "waitDuration: 1s", "maxAttempts: 1"), i, r.one("PT2S", "2s", "5000", "5000ms", "1s")))
	}
}

// serviceConfig is a config of gRPC for one or two services, compact or over many lines.
func (r *random) serviceConfig() string {
	var methods []any
	for i := range 1 + r.IntN(3) {
		names := []any{map[string]any{"service": fmt.Sprintf("p.S%d", i)}}
		if r.IntN(3) == 0 {
			names = append(names, map[string]any{"service": fmt.Sprintf("p.S%d", i+3)})
		}
		m := map[string]any{r.one("name", "name"): names}
		if r.IntN(2) == 0 {
			m["timeout"] = r.one("1s", "2.5s", "10s") // behind the policy
		}
		if r.IntN(3) == 0 {
			m["waitForReady"] = true
		}
		if r.IntN(4) > 0 {
			m["retryPolicy"] = map[string]any{"maxAttempts": 2 + r.IntN(4), "initialBackoff": "0.1s", "maxBackoff": "1s",
				"backoffMultiplier": 2, "retryableStatusCodes": []string{"UNAVAILABLE", r.one("INTERNAL", "ABORTED")}}
		} else if r.IntN(2) == 0 {
			m["hedgingPolicy"] = map[string]any{"maxAttempts": 3, "hedgingDelay": "0.2s"}
		}
		methods = append(methods, m)
	}
	config := map[string]any{"methodConfig": methods}
	if r.IntN(2) == 0 {
		text, _ := json.Marshal(config)
		return string(text)
	}
	text, _ := json.MarshalIndent(config, "", r.one("  ", "\t", ""))
	return string(text)
}

// keeps checks the fix of a tree; see kept.
func keeps(t *testing.T, seed, stream uint64) {
	t.Helper()
	r := random{Rand: rand.New(rand.NewPCG(seed, stream))}
	files := r.tree()
	kept(t, fmt.Sprintf("tree %d of stream %d", seed, stream), files)
	if t.Failed() {
		for _, f := range files {
			t.Logf("%s:\n%s", f.Name, f.Data)
		}
		t.FailNow()
	}
}

// Whatever a tree says, its fix keeps what it promises.
func TestEveryFixKeepsItsPromises(t *testing.T) {
	trees := uint64(100)
	if testing.Short() {
		trees = 12
	}
	for seed := range trees {
		keeps(t, seed, 20)
	}
}
