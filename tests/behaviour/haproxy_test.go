package behaviour_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/haproxy"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/tests/behaviour"
	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

// haproxyConfigurations are tried with every failure, by GET and by POST.
var haproxyConfigurations = []struct {
	name    string
	servers int
	lines   []string
}{
	{"default", 1, nil},
	{"default, three servers", 3, nil},
	{"elsewhere", 3, []string{"option redispatch"}},
	{"no retries", 1, []string{"retries 0", "retry-on all-retryable-errors"}},
	{"all", 1, []string{"retry-on all-retryable-errors"}},
	{"all, elsewhere", 3, []string{"retry-on all-retryable-errors", "option redispatch"}},
	{"all, elsewhere, five", 3, []string{"retries 5", "retry-on all-retryable-errors", "option redispatch"}},
	{"all, one retry", 2, []string{"retries 1", "retry-on all-retryable-errors"}},
	{"all, POST taken out", 1, []string{"retry-on all-retryable-errors", "http-request disable-l7-retry if METH_POST"}},
	{"all, all but GET taken out", 1, []string{"retry-on all-retryable-errors",
		"http-request disable-l7-retry unless METH_GET"}},
	{"all, an acl takes POST out", 1, []string{"retry-on all-retryable-errors", "acl writes method POST PUT",
		"http-request disable-l7-retry if writes"}},
	{"all taken out", 1, []string{"retry-on all-retryable-errors", "http-request disable-l7-retry"}},
	{"503 alone", 1, []string{"retry-on 503"}},
	{"connections and 503", 2, []string{"retry-on conn-failure 503", "retries 2"}},
	{"404 and 500", 1, []string{"retry-on 404 500"}},
	{"empty", 1, []string{"retry-on conn-failure empty-response"}},
	{"time-outs", 1, []string{"retry-on conn-failure response-timeout", "retries 2"}},
	{"none", 1, []string{"retry-on none"}},
	{"a second between two connections", 1, []string{"timeout connect 5s", "retries 2"}},
	{"by connections, elsewhere", 3, []string{"balance leastconn", "option redispatch"}},
	{"by a hash, elsewhere each time", 3, []string{"balance source", "option redispatch 1"}},
	{"by a hash", 3, []string{"balance uri", "retry-on all-retryable-errors"}},
	{"by connections", 3, []string{"balance leastconn", "retry-on all-retryable-errors"}},
}

func TestHAProxyTriesAsTheImporterSays(t *testing.T) {
	program := needs.Program(t, "haproxy")
	b := backend.Start(t, 3)
	var conf strings.Builder
	var cases []behaviour.Case
	for i, c := range haproxyConfigurations {
		for j, f := range failures {
			for k, method := range []string{"GET", "POST"} {
				key := fmt.Sprintf("h%d-%d-%d", i, j, k)
				server := "timeout server 30s"
				if f.outcome == topology.Hang {
					server = "timeout server 400ms"
				}
				pool(&conf, key, addresses(b, c.servers, f), append(c.lines, server)...)
				cases = append(cases, behaviour.Case{Name: c.name + ", " + method + " " + f.command, Key: key, Method: method,
					Command: f.command, Outcome: f.outcome})
			}
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 150 {
		lines, servers, f, method := randomHAProxy(random)
		key := fmt.Sprintf("r%d", i)
		pool(&conf, key, addresses(b, servers, f), lines...)
		cases = append(cases, behaviour.Case{Name: fmt.Sprintf("%s for %d servers, %s %s", strings.Join(lines, "; "), servers,
			method, f.command), Key: key, Method: method, Command: f.command, Outcome: f.outcome})
	}
	form, p := startHAProxy(t, program, b, "", conf.String())
	for i := range cases {
		cases[i].Layer = layerTo(t, form, cases[i].Key)
	}
	behaviour.Run(t, p, cases)
}

func TestHAProxyStopsWhenItsClientLeavesAsTheImporterSays(t *testing.T) {
	program := needs.Program(t, "haproxy")
	b := backend.Start(t, 1)
	for _, defaults := range []string{"", "option abortonclose"} {
		var conf strings.Builder
		lines := []string{"", "option abortonclose", "no option abortonclose"}
		for i, line := range lines {
			limit := "timeout server 600ms"
			if defaults != "" && !strings.HasPrefix(line, "no") {
				limit = "timeout server 20s" // here it stops
			}
			pool(&conf, fmt.Sprintf("left%d-%d", len(defaults), i), b.Addresses, limit, "retry-on all-retryable-errors", line)
		}
		form, p := startHAProxy(t, program, b, defaults, conf.String())
		for i, line := range lines {
			key := fmt.Sprintf("left%d-%d", len(defaults), i)
			left := behaviour.Case{Key: key, Method: "GET", Command: "hang", Outcome: topology.Hang, Layer: layerTo(t, form,
				key)}
			t.Run(fmt.Sprintf("defaults %q, backend %q", defaults, line), func(t *testing.T) {
				t.Parallel()
				behaviour.Leave(t, p, &left)
			})
		}
	}
}

// randomHAProxy draws a configuration, and a request that fails.
func randomHAProxy(r *rand.Rand) (lines []string, servers int, f failure, method string) {
	list := []string{"conn-failure", "empty-response", "junk-response", "response-timeout", "404", "500", "502", "503",
		"504"}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	words := strings.Join(list[:1+r.IntN(len(list))], " ")
	if r.IntN(4) == 0 {
		words = "all-retryable-errors"
	}
	lines = []string{fmt.Sprintf("retries %d", r.IntN(5)), "retry-on " + words}
	for _, l := range []string{"option redispatch", "balance leastconn", "http-request disable-l7-retry if METH_POST"} {
		if r.IntN(3) == 0 {
			lines = append(lines, l)
		}
	}
	f = failures[r.IntN(len(failures))]
	server := "timeout server 30s"
	if f.outcome == topology.Hang {
		server = "timeout server 400ms"
	}
	return append(lines, server), 1 + r.IntN(3), f, []string{"GET", "POST", "PUT", "DELETE"}[r.IntN(4)]
}

func pool(conf *strings.Builder, key string, servers []string, lines ...string) {
	fmt.Fprintf(conf, "backend %s\n", key)
	for _, l := range lines {
		fmt.Fprintf(conf, "  %s\n", l)
	}
	for i, s := range servers {
		fmt.Fprintf(conf, "  server s%d %s\n", i, s)
	}
}

var haproxyVersion = regexp.MustCompile(`version ([0-9.]+)`)

// startHAProxy starts HAProxy with backends, each chosen by the first part of a path, and returns what the importer
// says of its configuration. doors are further addresses at which it listens.
func startHAProxy(t *testing.T, program string, b *backend.Backend, defaults, backends string,
	doors ...string) (topology.Form, *behaviour.Product) {
	t.Helper()
	process := newProcess(t, "haproxy")
	address := freeAddress(t)
	conf := "global\n  maxconn 2000\ndefaults\n  mode http\n  timeout connect 500ms\n  timeout client 60s\n  " + defaults +
		"\nfrontend in\n  bind " + strings.Join(append(doors, address), ",") +
		"\n  http-after-response set-header X-Retries %rc\n"
	for line := range strings.Lines(backends) {
		if name, ok := strings.CutPrefix(line, "backend "); ok {
			name = strings.TrimSpace(name)
			conf += "  use_backend " + name + " if { path_beg /" + name + "/ }\n"
		}
	}
	conf += "  http-request return status 200 if { path / }\n" + backends
	file := process.File("haproxy.cfg")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	doc := source.Document{File: "edge/haproxy.cfg", Data: []byte(conf)}
	if !haproxy.Recognise(doc) {
		t.Fatal("the importer does not recognise the file")
	}
	said, _ := exec.Command(program, "-v").CombinedOutput()
	version := haproxyVersion.FindSubmatch(said)
	if version == nil {
		t.Fatalf("haproxy -v says %q", said)
	}
	form := haproxy.Read([]source.Document{doc}, source.Assume{Versions: map[string]string{"haproxy": string(version[1])}})
	start(t, process, exec.Command(program, "-db", "-f", file), address)
	return form, behaviour.Proxy(b, address, func(r *http.Response) int {
		retries, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get("X-Retries"), "+"))
		if err != nil {
			return 0
		}
		return retries + 1
	})
}

func layerTo(t *testing.T, form topology.Form, to string) *topology.Layer {
	t.Helper()
	for i := range form.Calls {
		if form.Calls[i].To == to && len(form.Calls[i].Layers) == 1 {
			return &form.Calls[i].Layers[0]
		}
	}
	t.Fatalf("the importer found no layer for %s", to)
	return nil
}
