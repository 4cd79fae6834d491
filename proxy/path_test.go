package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/proxy"
)

// Paths by which somebody has tried to get past a proxy.
var trickyPaths = []string{
	"/admin/../x", "/admin/%2e%2e/x", "/admin/%2E./x", "/x/../admin", "/x/%2e%2e/admin/", "/x/..%2fadmin", "/x/..%5cadmin",
	"/x/..\\admin", "/x\\..\\admin", "/%61dmin",
	"/x/..;/admin", "/admin;a=b/x", "/x/%252e%252e/admin", "/x/%2e%2e%2fadmin", "//admin", "/x//../admin", "/./admin",
	"/%2e/admin",
	"/%2fadmin", "/admin%2f..%2fx", "/ADMIN/x", "/Admin", "/admin%00", "/x/%c0%ae%c0%ae/admin", "/x/..%c0%afadmin",
	"/admin/..%00/x", "/admin/..", "/admin/.",
	"/.//admin", "/;/admin", "/x/..%252fadmin", "/admin%20/../x", "/%41DMIN", "/x/%2e%2e;/admin", "/admin/%5c../x",
	"/..//admin//",
}

// services that say whom they take a request for.
func eachPathService(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("Node like Express", func(t *testing.T) {
		test(t, "http://"+program(t, needs.Program(t, "node"), "testdata/clients/paths.js"))
	})
	t.Run("Python like a server of files", func(t *testing.T) {
		test(t, "http://"+program(t, needs.Python(t, "http"), "testdata/clients/paths.py"))
	})
}

// twoGates protects a service twice at one address: /admin is CRITICAL, and all else SHEDDABLE. more is keys of /admin.
func twoGates(url, more string) string {
	return fmt.Sprintf(`protect:
  public: {listen: "127.0.0.1:0", upstreams: [%[1]q], priority: {default: SHEDDABLE}}
  admin: {listen: "127.0.0.1:0", upstreams: [%[1]q], routes: [{path: /admin}]%[2]s}
`, url, more)
}

// TestWhatIsMatchedIsWhatIsForwarded: the service takes no request for /admin that another gate has let in, and gets
// the path that was matched.
func TestWhatIsMatchedIsWhatIsForwarded(t *testing.T) {
	eachPathService(t, func(t *testing.T, url string) {
		tokens := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(tokens, []byte("ops secret-of-the-operators\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		strict := protect(t, twoGates(url, ", authentication: {bearerTokens: "+tokens+"}"))
		open := protect(t, twoGates(url, ""))
		for _, path := range trickyPaths {
			for _, a := range []reply{strict.get(path), strict.getHTTP2(t, path)} {
				if strings.HasPrefix(a.content, "admin") || a.status == 200 && strings.ContainsAny(a.content, "%\\;") {
					t.Errorf("without a token %s got %d %s", path, a.status, a.content)
				}
				if a.status == 400 && a.header != nil {
					refusedBy400(t, a)
				}
			}
			for _, a := range []reply{open.get(path), open.getHTTP2(t, path)} {
				who, rest, _ := strings.Cut(a.content, " ")
				gate, sent, _ := strings.Cut(rest, " ")
				if want := map[string]string{"SHEDDABLE": "public", "CRITICAL": "admin"}[gate]; a.status == 200 && sent != "" &&
					strings.Contains(sent, "..") {
					t.Errorf("%s was sent as %s", path, sent)
				} else if a.status == 200 && who != want && strings.ToLower(sent) == sent && !strings.Contains(sent, ";") {
					t.Errorf("%s was matched as %s, and sent as %s, which is %s", path, want, sent, who)
				} else if a.status != 200 && a.status != 400 {
					t.Errorf("%s got %d", path, a.status)
				}
			}
		}
		for path, want := range map[string]string{
			"/admin/../x?a=/../b": "public SHEDDABLE /x?a=/../b", "/x/%2e%2e/%61dmin/": "admin CRITICAL /admin/",
			"//x//y": "public SHEDDABLE /x/y",
		} {
			if a := open.get(path); a.content != want {
				t.Errorf("%s: %q, want %q", path, a.content, want)
			}
		}
		if a := strict.get("/a%20b/%7Ec?d=/../%2f;"); a.content != "public SHEDDABLE /a%20b/~c?d=/../%2f;" {
			t.Errorf("a path in no doubt got %d %s", a.status, a.content)
		}
	})
}

// getHTTP2 is get over HTTP/2, with the path as it is.
func (r *running) getHTTP2(t *testing.T, path string) reply {
	t.Helper()
	req := newRequest(t, "GET", "http://"+r.addr+"/", nil)
	req.URL.Opaque = path
	if strings.HasPrefix(path, "//") {
		req.URL.Opaque, req.URL.Path = "", path // net/http would take it for a host
	}
	resp, err := h2c.client(t).Do(req)
	if err != nil {
		return reply{status: 400} // net/http does not write all of them
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{status: resp.StatusCode, header: resp.Header, content: string(body)}
}

func TestWhatIsDoneWithAmbiguousPathsIsASetting(t *testing.T) {
	s := upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok(line(req))) })
	for _, tt := range []struct{ rule, path, want string }{
		{"normalize", "/a/../b", "/b"}, {"", "/a/../b", "/b"}, {"keep", "/a/../b", "/a/../b"}, {"refuse", "/a/../b", ""},
		{"normalize", "/group%2fproject;v=1", "/group%2Fproject;v=1"}, {"keep", "/group%2fproject", "/group%2fproject"},
		{"refuse", "/group%2Fproject", ""},
		{"normalize", "/a/..%2fb", ""}, {"keep", "/a/..%2fb", "/a/..%2fb"}, {"refuse", "/b//c", ""}, {"refuse", "/a;b", ""},
		{"refuse", "/%41;", ""},
		{"refuse", "/plain/%C3%A9?x=..//;", "/plain/%C3%A9?x=..//;"}, {"refuse", "/PAY/x", ""},
		{"refuse", "/PAYMENTS", "/PAYMENTS"}, {"normalize", "/PAY/x", "/PAY/x"},
	} {
		key := ""
		if tt.rule != "" {
			key = "ambiguousPaths: " + tt.rule
		}
		routes := strings.Replace(single([]string{s.url}), "{path: /}", "{path: /}, {path: /pay}", 1)
		for name, r := range map[string]*running{
			"egress": start(t, routes+key+"\n"), "ingress": protect(t, guardOf(s.url, key, "routes: [{path: /}, {path: /pay}]")),
		} {
			a := r.get(tt.path)
			if tt.want == "" {
				refusedBy400(t, a)
			} else if want := "GET " + tt.want + " HTTP/1.1"; a.status != 200 || a.content != want {
				t.Errorf("%s, %s: %s got %d %q, want %q", name, tt.rule, tt.path, a.status, a.content, want)
			}
		}
	}
}

func refusedBy400(t *testing.T, a reply) {
	t.Helper()
	if a.status != 400 || a.header.Get("Abate-Reason") != "ambiguous-path" ||
		!strings.Contains(a.content, "ambiguousPaths") {
		t.Errorf("got %d %s, want a refusal", a.status, a.content)
	}
}

// TestARefusedPathIsRefusedInTheWordsOfItsProtocol: a client of gRPC gets a status of its own, and the connection
// stays.
func TestARefusedPathIsRefusedInTheWordsOfItsProtocol(t *testing.T) {
	s := h2c.serve(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("the service got %s", r.URL) })
	r := start(t, single([]string{s})+"ambiguousPaths: refuse\n")
	req := newRequest(t, "POST", "http://"+r.addr+"/shop.Payment/%2e%2e/Charge", strings.NewReader(""))
	req.Header.Set("Content-Type", "application/grpc")
	resp, err := h2c.client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Grpc-Status") != "3" ||
		resp.Header.Get("Abate-Reason") != "ambiguous-path" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
	c := r.dial()
	refusedBy400(t, c.get("/a/../b"))
	refusedBy400(t, c.get("/a//b"))
}

// TestInForwardProxyModeTheAuthorityDecides: a token for one host does not go to the service whose route names none.
func TestInForwardProxyModeTheAuthorityDecides(t *testing.T) {
	serve := func(name string) *server {
		return upstream(t, func(c net.Conn, req string) { io.WriteString(c, ok(name+" "+line(req))) })
	}
	payment, api, stock := serve("payment"), serve("api"), serve("stock")
	stockHost := strings.TrimPrefix(stock.url, "http://")
	_, stockPort, _ := net.SplitHostPort(stockHost)
	r := start(t, fmt.Sprintf(`services:
  payment-service: {upstreams: [%q], routes: [{path: /}, {path: /v1}]}
  api: {upstreams: [%q], routes: [{host: api.example.net}]}
  stock: {upstreams: [%q]}
`, payment.url, api.url, stock.url))
	const secret = "Authorization: Bearer for-api.example.org\r\n"
	for _, tt := range []struct{ target, host, want string }{
		{"http://api.example.org/v1/x", "api.example.org", ""},
		{"http://api.example.org/v1/x", r.addr, ""}, // Host says otherwise
		{"https://api.example.org/v1/x", "api.example.org", ""},
		{"http://api.example.net/v1/x", "api.example.org", "api GET /v1/x HTTP/1.1"},
		{"HTTP://API.Example.Net.:8443/v1/x", "api.example.net", "api GET /v1/x HTTP/1.1"},
		{"http://" + stockHost + "/v1/x", "api.example.net", "stock GET /v1/x HTTP/1.1"},
		{"http://127.0.0.1:1/v1/x", stockHost, ""}, // another port is another server
		{"http://127.0.0.1/v1/x", stockHost, ""},
		{"http://localhost:" + stockPort + "/v1/x", stockHost, ""},
		{"http://" + r.addr + "/v1/x", "elsewhere", "payment GET /v1/x HTTP/1.1"}, // the proxy itself
		{"http://" + strings.Replace(r.addr, "127.0.0.1", "localhost", 1) + "/v1/x", "elsewhere",
			"payment GET /v1/x HTTP/1.1"},
		{"/v1/x", "api.example.org", "payment GET /v1/x HTTP/1.1"},
		{"/v1/x", "api.example.net", "payment GET /v1/x HTTP/1.1"}, // of two routes the longer path
	} {
		a := r.dial().send("GET " + tt.target + " HTTP/1.1\r\nHost: " + tt.host + "\r\n" + secret + "\r\n").answer()
		if tt.want == "" && a.status != 404 || tt.want != "" && (a.status != 200 || a.content != tt.want) {
			t.Errorf("%s, Host: %s: got %d %q, want %q", tt.target, tt.host, a.status, a.content, tt.want)
		}
	}
}

// FuzzThePathThatIsSentIsCanonical: what the service gets, sent again, arrives as it is, and at the same service.
func FuzzThePathThatIsSentIsCanonical(f *testing.F) {
	for _, p := range trickyPaths {
		f.Add(p)
	}
	s := upstream(f, func(c net.Conn, req string) { io.WriteString(c, ok(strings.Fields(line(req))[1])) })
	r := start(f, strings.Replace(guardOf(s.url, "routes: [{path: /x}, {path: /admin}]", noShed), "protect:",
		"protect:\n  rest: {listen: \"127.0.0.1:0\", upstreams: ["+s.url+"], shed: {disabled: true}}", 1),
		func(c *proxy.Config) { c.LogAll = false })
	if err := r.proxy.Open(); err != nil {
		f.Fatal(err)
	}
	r.addr = r.proxy.Entrances()[0].Addr.String()
	f.Fuzz(func(t *testing.T, path string) {
		if strings.ContainsAny(path, " \r\n\x00") || !strings.HasPrefix(path, "/") || len(path) > 4000 {
			return
		}
		r.t = t
		first := r.get(path)
		if first.status != 200 {
			return
		}
		second := r.get(first.content)
		if second.status != 200 || second.content != first.content {
			t.Fatalf("%q was sent as %q, and that as %d %q", path, first.content, second.status, second.content)
		}
		if bare, _, _ := strings.Cut(first.content, "?"); strings.Contains(bare, "/../") || strings.Contains(bare, "//") ||
			strings.HasSuffix(bare, "/..") {
			t.Fatalf("%q was sent as %q", path, first.content)
		}
	})
}
