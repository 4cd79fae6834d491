package audit_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
)

// fixed returns files with the proposed changes made.
func fixed(t *testing.T, files []importer.File) ([]importer.File, *audit.Result) {
	t.Helper()
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	changed, left := audit.Apply(files, r.Changes)
	if len(left) > 0 {
		t.Errorf("changes that find nothing to change: %v", left)
	}
	return changed, r
}

func TestTheFixLeavesNothingToComplainAboutInTheShop(t *testing.T) {
	files := tree(t, "shop")
	changed, _ := fixed(t, files)
	if again := audit.Run(changed, audit.Options{}); again.Fails(lint.Warning) {
		t.Errorf("the fixed tree has %q", rules(again, lint.Warning))
	}
	if _, again := fixed(t, changed); len(again.Changes) > 0 || again.Diff != "" {
		t.Errorf("the fixed tree is changed again: %v", again.Changes)
	}
	for i, f := range files { // what stays, stays where it was: comments and order too
		rest := strings.Split(string(f.Data), "\n")
		for line := range strings.SplitSeq(string(changed[i].Data), "\n") {
			if at := slices.Index(rest, line); at >= 0 {
				rest = rest[at+1:]
			} else if !strings.Contains(line, "attempts: 0") && !strings.Contains(line, "maxAttempts: 1") &&
				!strings.Contains(line, "imeout") {
				t.Errorf("%s: %q is new, or stands elsewhere", f.Name, line)
			}
		}
	}
}

// What a fix changes may make nothing worse: no file breaks, and no rule has more to complain about.
func TestAFixMakesNothingWorse(t *testing.T) {
	all := annotatedCases(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		changed, r := fixed(t, all[name])
		if len(r.Changes) == 0 {
			continue
		}
		again := audit.Run(changed, audit.Options{})
		if again.Count(lint.Error) > r.Count(lint.Error) || again.Unread() > r.Unread() ||
			again.Count(lint.Error)+again.Count(lint.Warning) > r.Count(lint.Error)+r.Count(lint.Warning) {
			t.Errorf("%s: %q becomes %q by\n%s", name, rules(r, lint.Warning), rules(again, lint.Warning), r.Diff)
		}
	}
}

const config = `{"methodConfig": [{%s}]}`

func TestAPolicyOfGRPCThatRepeatsWritesIsRemoved(t *testing.T) {
	const calls = "services: [{name: shop, rate: 9}, {name: orders, aliases: [o.Orders]}]\n" +
		"calls: [{from: shop, to: orders, unsafe: true}]\n"
	const name, policy = `"name": [{"service": "o.Orders"}]`, `{"maxAttempts": 3, "initialBackoff": "0.1s", ` +
		`"maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", "INTERNAL"]}`
	const note, why = ", // orders,\n\"retryPolicy\": " + policy, ", /* why */ \"retryPolicy\": " + policy
	for before, after := range map[string]string{
		name + `, "retryPolicy": ` + policy:                       name,
		`"retryPolicy": ` + policy + `, ` + name:                  ` ` + name,
		name + `, "retryPolicy" :` + policy + `, "timeout": "1s"`: name + `, "timeout": "1s"`,
		// A comma in a comment, or one before it, is not taken for the policy's: what is left would be no JSON.
		name + note: name + note,
		name + why:  name + why,
		name + ",\n \"retryPolicy\":\n " + policy + "\n,\"timeout\": \"1s\"\n": name + "\n\n,\"timeout\": \"1s\"\n",
	} {
		in := func(text string) string { return strings.Replace(config, "%s", text, 1) }
		files := []importer.File{{Name: "shop/calls.yaml", Data: []byte(calls)},
			{Name: "shop/service_config.json", Data: []byte(in(before))}}
		changed, r := fixed(t, files)
		if got := string(changed[1].Data); strings.ReplaceAll(got, "\n", "") != strings.ReplaceAll(in(after), "\n", "") {
			t.Errorf("of %s\nbecomes %s\nfindings %q", in(before), got, rules(r, lint.Error))
		}
		quoted := func(text string) string {
			json, _ := json.Marshal(in(text))
			return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  grpc.json: " + string(json) + " # c\n"
		}
		files[1] = importer.File{Name: "shop/map.yaml", Data: []byte(quoted(before))}
		changed, r = fixed(t, files)
		if got := string(changed[1].Data); strings.ReplaceAll(got, `\n`, "") != strings.ReplaceAll(quoted(after), `\n`, "") {
			t.Errorf("of %s\nbecomes %s\nfindings %q", quoted(before), got, rules(r, lint.Error))
		}
	}
}

// patient is a caller that waits a second for a service that waits ten for another.
const patient = `calls:
- {from: edge, to: shop, layers: [{kind: gateway, product: x, perTry: 1s}]}
- {from: shop, to: orders, layers: [{kind: client, product: x, overall: 10s}]} # long
`

// shared is patient with an anchor at the long limit's layer, and more calls.
func shared(calls ...string) string {
	return strings.Replace(patient, "[{kind: client", "[&l {kind: client", 1) + "- " + strings.Join(calls, "\n- ") + "\n"
}

func TestALimitIsLoweredToWhatAllCallersWait(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one caller", patient, "overall: 900ms}]} # long"},
		{"a caller that waits as long", patient +
			"- {from: batch, to: shop, layers: [{kind: client, product: x, perTry: 1s}]}\n", "overall: 900ms"},
		{"a caller that waits longer", patient +
			"- {from: batch, to: shop, layers: [{kind: client, product: x, perTry: 20s}]}\n", "overall: 10s"},
		{"a caller without a limit", patient + "- {from: batch, to: shop}\n", "overall: 10s"},
		{"three in a row", patient + "- {from: orders, to: db, layers: [{kind: client, product: x, perTry: 5s}]}\n",
			"perTry: 810ms"},
		{"calls from outside beside those listed", "services: [{name: shop, rate: 5}]\n" + patient, "overall: 10s"},
		{"a limit that another shares, who is called by nobody listed", shared("{from: batch, to: orders, layers: [*l]}"),
			"overall: 10s"},
		{"a limit that another shares, who waits longer", shared("{from: batch, to: orders, layers: [*l]}",
			"{from: z, to: batch, layers: [{kind: client, product: x, perTry: 20s}]}"), "overall: 10s"},
		{"a limit that another shares, who waits no longer", shared("{from: batch, to: orders, layers: [*l]}",
			"{from: z, to: batch, layers: [{kind: client, product: x, perTry: 1s}]}"), "overall: 900ms"},
		{"a layer outside of one that others share, and one of them waits longer", "calls:\n" +
			"- {from: a, to: b, layers: [{kind: client, product: x, perTry: 1s}, &l {kind: gateway, product: y, " +
			"overall: 10s}]}\n- {from: c, to: b, layers: [{kind: client, product: x, perTry: 20s}, *l]}\n", "overall: 10s"},
		{"a service that is called by what it calls", patient + "- {from: orders, to: shop, layers: " +
			"[{kind: client, product: x, perTry: 1s}]}\n", "overall: 10s"},
		{"tries that are short enough and too many", strings.Replace(patient, "overall: 10s", "perTry: 5s, overall: 10s, "+
			"repeats: [{on: [\"503\", hang], tries: 3}]", 1), "perTry: 900ms, overall: 900ms"},
		{"one call after another, each shorter than its caller waits", "calls:\n" +
			"- {from: edge, to: shop, layers: [{kind: gateway, product: x, perTry: 2s}]}\n" +
			"- {from: shop, to: a, order: 1, layers: [{kind: client, product: x, overall: 1500ms}]}\n" +
			"- {from: shop, to: b, order: 2, layers: [{kind: client, product: x, overall: 1500ms}]}\n",
			"overall: 1500ms}]}\n- {from: shop, to: b, order: 2, layers: [{kind: client, product: x, overall: 1500ms"},
	} {
		changed, _ := fixed(t, file(c.text))
		if got := string(changed[0].Data); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, got)
		}
	}
}

func TestALimitIsWrittenAsItsFormatTakesIt(t *testing.T) {
	for _, c := range []struct{ service, file, text, want string }{
		{"api", "vs.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web}\n" +
			"spec:\n  hosts: [web]\n  http:\n  - route: [{destination: {host: web}}]\n    timeout: 10s\n" +
			"    retries: {attempts: 0}\n", "timeout: 1800ms"},
		{"api", "minutes.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web}\n" +
			"spec:\n  hosts: [web]\n  http:\n  - route: [{destination: {host: web}}]\n    timeout: 1m30s\n" +
			"    retries: {attempts: 0}\n", "timeout: 1800ms\n"},
		{"api", "api/src/main/resources/application.yaml", "resilience4j.timelimiter.instances.web.timeoutDuration: " +
			"PT1M5.5S # long\n", "timeoutDuration: PT1.8S # long\n"},
		{"api", "api/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  grpc.json: " +
			`"{\"methodConfig\": [{\"name\": [{\"service\": \"web\"}], \"timeout\": \"10s\"}]}"` + "\n",
			`\"timeout\": \"1.8s\"}`},
		{"kong", "kong.yml", "_format_version: \"3.0\"\nservices:\n- name: web\n  url: http://web:80\n  retries: 0\n" +
			"  read_timeout: 10000\n", "read_timeout: 1800\n"},
		{"ngx", "ngx/nginx.conf", "events {}\nhttp { server { listen 80; location / { proxy_pass http://web; " +
			"proxy_read_timeout 10s; proxy_next_upstream off; } } }\n", "proxy_read_timeout 1800ms;"},
		{"haproxy", "haproxy/haproxy.cfg", "defaults\n  mode http\n  timeout server 10000\n  timeout connect 1s\n" +
			"frontend f\n  bind :80\n  default_backend web\nbackend web\n  server a web:80\n", "timeout server 1800\n"},
	} {
		calls := "services: [{name: api}, {name: web}]\ncalls: [{from: api, to: web}, {from: edge, to: " + c.service +
			", layers: [{kind: gateway, product: x, perTry: 2s}]}]\n"
		changed, r := fixed(t, append(file(calls), importer.File{Name: c.file, Data: []byte(c.text)}))
		if got := string(changed[1].Data); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s\nfindings %q", c.file, c.want, got, rules(r, lint.Warning))
		}
	}
}
