package basics

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
)

// runProbe runs "abate probe" and returns its exit code and what it wrote.
func runProbe(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = ProbeCommand(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestProbeTellsWhetherTheAnswerIs2xx(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if r.Method != "GET" || err != nil {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if status/100 == 3 {
			w.Header().Set("Location", "/200")
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	for _, c := range []struct {
		status string
		code   int
		says   string
	}{
		{"200", 0, ""}, {"204", 0, ""}, {"299", 0, ""},
		{"302", 1, "/302 answered 302 Found"}, // the one that it leads to was not asked for
		{"404", 1, "/404 answered 404 Not Found"}, {"500", 1, "/500 answered 500"},
		{"503", 1, "/503 answered 503 Service Unavailable"},
	} {
		code, stdout, stderr := runProbe(t.Context(), server.URL+"/"+c.status)
		want := ""
		if c.says != "" {
			want = "abate probe: " + server.URL + c.says
		}
		if code != c.code || stdout != "" || !strings.HasPrefix(stderr, want) || want == "" && stderr != "" {
			t.Errorf("%s: exit code %d, %q, %q", c.status, code, stdout, stderr)
		}
	}
}

func TestProbeWithoutAnAnswer(t *testing.T) {
	refusing := clitest.OnLoopback(t)
	refusing.Close()
	at := "http://" + refusing.Addr().String() + "/readyz"
	if code, _, stderr := runProbe(t.Context(), at); code != 1 || !strings.Contains(stderr, at) ||
		!strings.Contains(stderr, "connection refused") {
		t.Errorf("refused: exit code %d, %q", code, stderr)
	}
	silent := clitest.OnLoopback(t) // the kernel takes the connection, nobody answers
	at = "http://" + silent.Addr().String() + "/readyz"
	if code, _, stderr := runProbe(t.Context(), at, "--timeout", "30ms"); code != 1 ||
		stderr != "abate probe: "+at+" did not answer within 30ms\n" {
		t.Errorf("silent: exit code %d, %q", code, stderr)
	}
	if code, _, _ := runProbe(clitest.Ended(t), at); code != 1 {
		t.Errorf("interrupted: exit code %d", code)
	}
	closing := clitest.OnLoopback(t)
	go func() {
		if nc, err := closing.Accept(); err == nil {
			nc.Close()
		}
	}()
	if code, _, stderr := runProbe(t.Context(), "http://"+closing.Addr().String()); code != 1 ||
		!strings.Contains(stderr, closing.Addr().String()) {
		t.Errorf("closed without an answer: exit code %d, %q", code, stderr)
	}
}

func TestProbeUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"", []string{"0 URLs; write one, for example http://127.0.0.1:15000/readyz"}},
		{"http://a/ http://b/", []string{"2 URLs; write one"}},
		{"127.0.0.1:15000/readyz", []string{`"127.0.0.1:15000/readyz" is not a URL; write for example http://`}},
		{"/readyz --timeout -1s", []string{`"/readyz" is not a URL`, "--timeout -1s is out of range: write more than 0s"}},
		{"ftp://127.0.0.1/", []string{`"ftp://127.0.0.1/" is not a URL`}},
		{"http:///readyz", []string{`"http:///readyz" is not a URL`}},
		{"http://127.0.0.1:port/", []string{`"http://127.0.0.1:port/" is not a URL`}},
		{"--timeout 0 http://127.0.0.1/", []string{"--timeout 0s is out of range"}},
		{"--timeout soon http://127.0.0.1/", []string{`invalid value "soon" for flag -timeout`}},
		{"--colour http://127.0.0.1/", []string{"flag provided but not defined: -colour"}},
	} {
		code, stdout, stderr := runProbe(clitest.Ended(t), strings.Fields(c.args)...)
		mistakes, usage, found := strings.Cut(stderr, "\n\n")
		if code != 2 || stdout != "" || !found || usage != probeUsage || strings.Count(mistakes, "\n") != len(c.want)-1 {
			t.Errorf("%s: exit code %d, %q, %q", c.args, code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(mistakes, "abate probe: "+want) {
				t.Errorf("%s: lacks %q: %s", c.args, want, mistakes)
			}
		}
	}
	if code, stdout, stderr := runProbe(clitest.Ended(t), "http://127.0.0.1/", "-h"); code != 0 || stdout != probeUsage ||
		stderr != "" {
		t.Errorf("help: exit code %d, %q, %q", code, stdout, stderr)
	}
	if names := strings.Join(clitest.FlagsIn(probeUsage), " "); names != "h help timeout" {
		t.Errorf("the help names %s", names)
	}
	for line := range strings.Lines(probeUsage) {
		if len(line) > 101 { // with its end
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// A health check that goes through the proxy of the environment would ask somebody else. The address is one that Go
// sends through a proxy, which it does not with 127.0.0.1, and that leads back here all the same.
func TestProbeGoesThroughNoProxy(t *testing.T) {
	if testing.Short() {
		return
	}
	var asked, detours atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer target.Close()
	detour := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { detours.Add(1) }))
	defer detour.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(target.URL, "http://"), ":")
	cmd := exec.CommandContext(t.Context(), built(t), "probe", "http://0.0.0.0:"+port+"/")
	cmd.Env = append(os.Environ(), "http_proxy="+detour.URL, "HTTP_PROXY="+detour.URL, "all_proxy="+detour.URL,
		"no_proxy=", "NO_PROXY=")
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 || asked.Load() != 1 || detours.Load() != 0 {
		t.Errorf("%v, %q; asked %d times, through the proxy %d times", err, out, asked.Load(), detours.Load())
	}
}
