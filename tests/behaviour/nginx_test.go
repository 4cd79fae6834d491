package behaviour_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/nginx"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/tests/behaviour"
	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

// failure is one way to fail: what the backend is told, and what that is to a caller.
type failure struct {
	command string
	outcome topology.Outcome
}

var failures = []failure{{"500", topology.S500}, {"502", topology.S502}, {"503", topology.S503}, {"504", topology.S504},
	{"429", topology.S429}, {"404", topology.S4xx}, {"reset", topology.ResetSent}, {"close", topology.ResetSent},
	{"hang", topology.Hang}, {"refused", topology.Refused}}

// nginxConfigurations are tried with every failure, by GET and by POST.
var nginxConfigurations = []struct {
	name       string
	servers    int
	upstream   string
	directives string
}{
	{"default", 3, "", ""},
	{"default, one server", 1, "", ""},
	{"default, two servers", 2, "", ""},
	{"all words", 3, "", "proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 http_504 " +
		"http_403 http_404 http_429;"},
	{"all words, all methods", 3, "", "proxy_next_upstream error timeout invalid_header http_500 http_502 http_503 " +
		"http_504 http_404 " +
		"http_429 non_idempotent;"},
	{"all words, all methods, one server", 1, "", "proxy_next_upstream error timeout http_500 http_503 non_idempotent;"},
	{"all words, two tries", 3, "", "proxy_next_upstream error timeout http_500 http_502 http_503 http_504 http_429; " +
		"proxy_next_upstream_tries 2;"},
	{"one try", 3, "", "proxy_next_upstream error timeout http_503; proxy_next_upstream_tries 1;"},
	{"more tries than servers", 2, "", "proxy_next_upstream error timeout http_503; proxy_next_upstream_tries 9;"},
	{"a list has no defaults", 3, "", "proxy_next_upstream http_503;"},
	{"only error", 3, "", "proxy_next_upstream error;"},
	{"only time-out", 3, "", "proxy_next_upstream timeout;"},
	{"off", 3, "", "proxy_next_upstream off;"},
	{"a body without a buffer", 3, "", "proxy_request_buffering off; proxy_http_version 1.1; " +
		"proxy_next_upstream error timeout http_503 non_idempotent;"},
	{"never down", 3, " max_fails=0", ""},
}

func TestNginxTriesAsTheImporterSays(t *testing.T) {
	program := needs.Program(t, "nginx")
	b := backend.Start(t, 3)
	var http strings.Builder
	var cases []behaviour.Case
	for i, conf := range nginxConfigurations {
		for j, f := range failures {
			for k, method := range []string{"GET", "POST"} {
				key := fmt.Sprintf("n%d-%d-%d", i, j, k)
				location(&http, key, addresses(b, conf.servers, f), conf.upstream, conf.directives+limit(f))
				cases = append(cases, behaviour.Case{Name: conf.name + ", " + method + " " + f.command, Key: key, Method: method,
					Command: f.command, Outcome: f.outcome})
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 150 {
		words, servers, f, method := randomNginx(random)
		key := fmt.Sprintf("r%d", i)
		location(&http, key, addresses(b, servers, f), "", words+limit(f))
		cases = append(cases, behaviour.Case{Name: fmt.Sprintf("%s for %d servers, %s %s", words, servers, method, f.command),
			Key: key, Method: method, Command: f.command, Outcome: f.outcome})
	}
	for i, words := range []string{"", "grpc_next_upstream error timeout http_503;",
		"grpc_next_upstream error timeout http_500 http_503 non_idempotent;"} {
		for j, f := range failures[6:] { // answers of gRPC are no statuses
			key := fmt.Sprintf("g%d-%d", i, j)
			location(&http, key, addresses(b, 3, f), "", words+strings.ReplaceAll(limit(f), "proxy_", "grpc_"))
			cases = append(cases, behaviour.Case{Name: "gRPC, " + words + " " + f.command, Key: key, Method: "POST",
				Command: f.command, Outcome: f.outcome})
		}
	}
	// A limit of time forbids a further try, and ends none: the third would begin after 1.6 s.
	location(&http, "late", b.Addresses, "", "proxy_read_timeout 800ms; proxy_next_upstream_timeout 1200ms;")
	cases = append(cases, behaviour.Case{Name: "a limit of all tries", Key: "late", Method: "GET", Command: "hang",
		Outcome: topology.Hang})
	for k, method := range []string{"GET", "POST"} {
		key := fmt.Sprintf("kept-%d", k)
		location(&http, key, b.Addresses[:1], "keep", `proxy_http_version 1.1; proxy_set_header Connection "";`)
		cases = append(cases, behaviour.Case{Name: "a kept connection, " + method, Key: key, Method: method, Command: "reset",
			Outcome: topology.ResetSent, Warm: true})
	}
	location(&http, "left", b.Addresses, "", "proxy_read_timeout 20s;")
	left := behaviour.Case{Key: "left", Method: "GET", Command: "hang", Outcome: topology.Hang}
	form, p := startNginx(t, program, b, http.String())
	for i := range cases {
		cases[i].Layer = layerAt(t, form, "/"+cases[i].Key+"/*")
	}
	behaviour.Run(t, p, cases)
	left.Layer = layerAt(t, form, "/left/*")
	behaviour.Leave(t, p, &left)
}

// addresses returns what a case's servers listen at; nobody listens where connections shall be refused.
func addresses(b *backend.Backend, n int, f failure) []string {
	if f.outcome == topology.Refused {
		return b.Dead[:n]
	}
	return b.Addresses[:n]
}

// randomNginx draws a configuration, and a request that fails.
func randomNginx(r *rand.Rand) (words string, servers int, f failure, method string) {
	list := []string{"error", "timeout", "invalid_header", "http_500", "http_502", "http_503", "http_504", "http_403",
		"http_404", "http_429", "non_idempotent"}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	words = "proxy_next_upstream " + strings.Join(list[:1+r.IntN(len(list))], " ") + ";"
	if n := r.IntN(5); n > 0 {
		words += fmt.Sprintf(" proxy_next_upstream_tries %d;", n)
	}
	return words, 1 + r.IntN(3), failures[r.IntN(len(failures))], []string{"GET", "POST", "PUT", "DELETE",
		"PATCH"}[r.IntN(5)]
}

// limit is the time that a try may take: short only where it is about that.
func limit(f failure) string {
	if f.outcome == topology.Hang {
		return " proxy_read_timeout 400ms;"
	}
	return " proxy_read_timeout 30s;"
}

func location(conf *strings.Builder, key string, servers []string, parameters, directives string) {
	pass := "proxy_pass http"
	if strings.Contains(directives, "grpc_") {
		pass = "grpc_pass grpc"
	}
	fmt.Fprintf(conf, "upstream %s {\n", key)
	if parameters == "keep" {
		conf.WriteString("  keepalive 4;\n")
		parameters = ""
	}
	for _, s := range servers {
		fmt.Fprintf(conf, "  server %s%s;\n", s, parameters)
	}
	fmt.Fprintf(conf, "}\nLOCATION location /%s/ { %s %s://%s; }\n", key, directives, pass, key)
}

var nginxVersion = regexp.MustCompile(`nginx/([0-9.]+)`)

// startNginx starts nginx with upstreams and locations, and returns what the importer says of its configuration.
func startNginx(t *testing.T, program string, b *backend.Backend, parts string) (topology.Form, *behaviour.Product) {
	t.Helper()
	process := newProcess(t, "nginx")
	address := freeAddress(t)
	var groups, locations []string
	for line := range strings.Lines(parts) {
		if l, ok := strings.CutPrefix(line, "LOCATION "); ok {
			locations = append(locations, l)
		} else {
			groups = append(groups, line)
		}
	}
	conf := "daemon off;\nmaster_process off;\npid " + process.File("pid") +
		";\nevents { worker_connections 4096; }\nhttp {\n" +
		"access_log off;\nadd_header X-Tried $upstream_addr always;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		conf += kind + "_temp_path " + process.File(kind) + ";\n"
	}
	conf += strings.Join(groups, "") + "server {\nlisten " + address + ";\n" + strings.Join(locations, "") + "}\n}\n"
	file := process.File("nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	doc := source.Document{File: "edge/nginx.conf", Data: []byte(conf)}
	if !nginx.Recognise(doc) {
		t.Fatal("the importer does not recognise the file")
	}
	said, _ := exec.Command(program, "-v").CombinedOutput()
	version := nginxVersion.FindSubmatch(said)
	if version == nil {
		t.Fatalf("nginx -v says %q", said)
	}
	form := nginx.Read([]source.Document{doc}, source.Assume{Versions: map[string]string{"nginx": string(version[1])}})
	start(t, process, exec.Command(program, "-e", process.File("error.log"), "-c", file, "-p", process.Folder), address)
	return form, behaviour.Proxy(b, address, func(r *http.Response) int {
		if tried := r.Header.Get("X-Tried"); tried != "" {
			return strings.Count(tried, ",") + 1
		}
		return 0
	})
}

func layerAt(t *testing.T, form topology.Form, path string) *topology.Layer {
	t.Helper()
	for i := range form.Calls {
		for j := range form.Calls[i].Layers {
			if l := &form.Calls[i].Layers[j]; l.Match.Path == path {
				return l
			}
		}
	}
	t.Fatalf("the importer found no layer for %s", path)
	return nil
}

func newProcess(t *testing.T, name string) *needs.Process {
	t.Helper()
	process, err := needs.NewProcess(name, "KILL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Release)
	return process
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// start starts a program and waits until it answers.
func start(t *testing.T, process *needs.Process, cmd *exec.Cmd, address string) {
	t.Helper()
	if err := process.Start(cmd); err != nil {
		t.Fatal(err)
	}
	answers := func() bool {
		resp, err := http.Get("http://" + address + "/")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	}
	if err := process.Await(answers, 30*time.Second); err != nil {
		t.Fatalf("%v: %s", err, process.Log())
	}
}
