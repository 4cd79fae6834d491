package launch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/cmd/internal/launch"
	"github.com/abate-go/abate/internal/needs"
)

// childWay is set in a process of this binary that a test has started as a program.
const childWay = "ABATE_TEST_RUN_CHILD"

// commandWay is set in a process of this binary that is to be the command itself.
const commandWay = "ABATE_TEST_RUN_COMMAND"

func TestMain(m *testing.M) {
	if addr, ok := strings.CutPrefix(os.Getenv(childWay), "briefly:"); ok {
		briefly(addr)
		return
	} else if strings.HasPrefix(addr, "http://") {
		_, err := http.Get(addr)
		if err != nil {
			os.Exit(3)
		}
		return
	} else if addr != "" {
		bypass(addr)
		return
	}
	if os.Getenv(commandWay) != "" {
		os.Unsetenv(commandWay)
		os.Exit(launch.Clients{}.RunCommand(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(clitest.Main(m))
}

// bypass is a program whose client looks at no proxy: it holds a connection until it is told to end.
func bypass(addr string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		os.Exit(3)
	}
	<-told
	c.Close()
	os.Exit(5)
}

// briefly is a program whose first call goes through the proxy, and whose second one past it, if there is an address
// for it, by a connection that is gone at once. Who closes it first, the path says.
func briefly(addr string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: strings.HasSuffix(addr, "/client")}}
	for _, url := range []string{os.Getenv("ABATE_URL_PAY"), addr} {
		if url == "" {
			continue
		}
		a, err := client.Get(url)
		if err != nil {
			os.Exit(3)
		}
		_, _ = io.Copy(io.Discard, a.Body) // the server may close it
		a.Body.Close()
	}
}

// run runs the command until its program ends, which it is told to once ready is true.
func run(t *testing.T, ready func(out, errs string) bool, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var o, e clitest.Buffer
	done := make(chan int, 1)
	go func() { done <- launch.Clients{}.RunCommand(ctx, args, &o, &e) }()
	if ready != nil {
		clitest.Eventually(t, "the program is ready; it said "+e.String(), func() bool {
			return ready(o.String(),
				e.String())
		})
		cancel()
	}
	code = <-done
	return code, o.String(), e.String()
}

func policyFor(t *testing.T, url string) string {
	t.Helper()
	return clitest.Put(t, "policy.yaml", "services:\n  pay: {upstreams: [\""+url+"\"]}\n"+
		"  other: {upstreams: [\"http://other.test\"]}\n")
}

func serving(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/server" {
			w.Header().Set("Connection", "close")
		}
		fmt.Fprintf(w, "%s via %v", r.URL.Path, r.Header["Via"] != nil)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestExitCodeIsTheProgramsOwn(t *testing.T) {
	policy := policyFor(t, "http://192.0.2.1") // nobody else on this machine calls there meanwhile
	for line, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137} {
		code, _, errs := run(t, nil, "-c", policy, "--", "sh", "-c", line)
		if code != want || !strings.Contains(errs, "no call went through the proxy") {
			t.Errorf("%s: code %d, want %d; it said %s", line, code, want, errs)
		}
	}
	if code, _, errs := run(t, nil, "-c", policy, "--", "/nothing/here"); code != 127 || !strings.Contains(errs,
		"/nothing/here") {
		t.Errorf("a program that is not there: %d %s", code, errs)
	}
}

func TestWhatIsWrongWithTheWordsIsSaidAtOnce(t *testing.T) {
	code, _, errs := run(t, nil, "--grace", "0s", "--strangers", "perhaps", "--env", "1A=x", "--env", "A=x", "--env",
		"A=y", "--admin", "nowhere", "node", "app.js")
	for _, want := range []string{"--grace", "--strangers", "NAME=SERVICE", "A is given twice", "--admin",
		"write -- before the program",
		"no policy file"} {
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("code %d without a word of %s: %s", code, want, errs)
		}
	}
	code, _, errs = run(t, nil, "-c", policyFor(t, "http://192.0.2.1"), "--env", "A=nobody", "--", "true")
	if code != 1 || !strings.Contains(errs, "nobody") || !strings.Contains(errs, "pay, other") {
		t.Errorf("a service that is not there: %d %s", code, errs)
	}
}

func TestProgramIsToldToEndAndKilledIfItDoesNot(t *testing.T) {
	policy := policyFor(t, "http://192.0.2.1")
	ready := func(out, _ string) bool { return strings.Contains(out, "ready") }
	code, _, errs := run(t, ready, "-c", policy, "--", "sh", "-c",
		`trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done`)
	if code != 9 || strings.Contains(errs, "killed") {
		t.Errorf("one that obeys: %d %s", code, errs)
	}
	code, _, errs = run(t, ready, "-c", policy, "--grace", "100ms", "--", "sh", "-c",
		`trap "" TERM; echo ready; while :; do sleep 0.05; done`)
	if code != 137 || strings.Count(errs, "has not ended within 100ms of SIGTERM (--grace): killed") != 1 {
		t.Errorf("one that does not: %d %s", code, errs)
	}
}

func TestLivePageAtAUnixSocket(t *testing.T) {
	policy, path := policyFor(t, "http://192.0.2.1"), filepath.Join(t.TempDir(), "page.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close() // its file stays, as after a kill
	args := []string{"-c", policy, "--admin", "unix:" + path + "?mode=0600", "--", "sh", "-c"}
	page := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
	asked := 0
	code, _, errs := run(t, func(out, _ string) bool {
		if !strings.Contains(out, "ready") {
			return false
		}
		if a, err := page.Get("http://page/healthz"); err == nil {
			asked = a.StatusCode
			a.Body.Close()
		}
		code, _, errs := run(t, nil, append(args, "exit 0")...)
		if want := "another program listens at that socket already"; code != 1 || !strings.Contains(errs, want) {
			t.Errorf("a second one: code %d, %s", code, errs)
		}
		return true
	}, append(args, "echo ready; while :; do sleep 0.05; done")...)
	if asked != 200 || code != 143 || !strings.Contains(errs, "live page on unix:"+path) {
		t.Errorf("the page answered %d; code %d: %s", asked, code, errs)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	for _, bad := range []string{"unix:page.sock", "unix:/", "unix:80", "unix:/a?mode=9"} {
		code, _, errs := run(t, nil, "-c", policy, "--admin", bad, "--", "true")
		if code != 2 || !strings.Contains(errs, "is not the address of a Unix socket") {
			t.Errorf("%s: code %d, %s", bad, code, errs)
		}
	}
}

func TestSilenceAndBypassAreSaid(t *testing.T) {
	launch.SetPatience(t, time.Millisecond)
	url := serving(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childWay, strings.TrimPrefix(url, "http://"))
	want := []string{"no call has come through the proxy in 1ms", "pay: the program is connected to " +
		strings.TrimPrefix(url, "http://") +
		" by itself"}
	code, _, errs := run(t, func(_, errs string) bool {
		return strings.Contains(errs, want[0]) && strings.Contains(errs, want[1])
	}, "-c", policyFor(t, url), "--", self)
	if code != 5 || !strings.Contains(errs, "pay: none: the program did not use the proxy; it was connected to ") ||
		!strings.Contains(errs, "other: none: ") {
		t.Errorf("%d %s", code, errs)
	}
}

// A connection that was gone before anybody looked is reported, also where other calls went through the proxy. The
// proxy's own are not, and neither are those that it could not make.
func TestShortCallPastTheProxyIsNeverSilent(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nobody tells who is connected to what
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url := serving(t)
	for past, want := range map[string]string{
		url + "/client":  "without the proxy",
		url + "/server":  "without the proxy",
		url + "/program": "without the proxy", // with its end
		"":               "",
	} {
		t.Setenv(childWay, "briefly:"+past)
		code, _, errs := run(t, nil, "-c", policyFor(t, url), "--", self)
		said := strings.Contains(errs, want) || strings.Contains(errs, "by itself") // if somebody looked just then
		if past == "" {
			said = !strings.Contains(errs, "without the proxy") && !strings.Contains(errs, "by itself")
		}
		if code != 0 || !strings.Contains(errs, "pay: 1 call") || !said {
			t.Errorf("past %q: code %d, %s", past, code, errs)
		}
	}
	t.Setenv(childWay, "briefly:")
	_, _, errs := run(t, nil, "-c", policyFor(t, "http://"+nobodys(613)), "--", self)
	if !strings.Contains(errs, "pay: 1 call (1 failed") || strings.Contains(errs, "without the proxy") {
		t.Errorf("a service that refuses connections: %s", errs)
	}
}

// nobodys is an address where nobody listens, and which nobody else on this machine calls, another run of these tests
// included.
func nobodys(port int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 1+pid>>16&0x3f, pid>>8&0xff, pid&0xff, port)
}

// Whoever's connections ended before anybody looked is not known: that is said.
func TestConnectionsOfSomebodyElseAreNotCalledTheProgramsOwn(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nobody tells who is connected to what
	}
	at := nobodys(614)
	_, _, errs := run(t, func(_, errs string) bool {
		if strings.Contains(errs, "ABATE_URL_PAY") {
			if c, err := net.Dial("tcp", at); err == nil {
				c.Close()
			}
		}
		return strings.Contains(errs, "ABATE_URL_PAY")
	}, "-c", policyFor(t, "http://"+at), "--", "sleep", "60")
	if !strings.Contains(errs, "pay: none through the proxy; 1 connection to "+at+" without the proxy failed or "+
		"had no content, the program's unless another process calls there") {
		t.Error(errs)
	}
}

func TestCallsAreCountedAndStrangersToo(t *testing.T) {
	needs.Program(t, "curl")
	url, stranger := serving(t), serving(t)
	line := `curl -sS $MINE/a $ABATE_URL_PAY/b ` + url + `/c && curl -sS ` + stranger +
		`/d && curl -sS -x $http_proxy $MINE/e`
	code, out, errs := run(t, nil, "-c", policyFor(t, url), "--env", "MINE=pay", "--", "sh", "-c", line)
	if code != 0 || out != "/a via true/b via true/c via true/d via true/e via true" {
		t.Errorf("code %d: %s", code, out)
	}
	for _, want := range []string{"pay: 4 calls\n", "other: none: ",
		"not in the policy file, so not guarded: 1 call to " + stranger + " (1)"} {
		if !strings.Contains(errs, want) {
			t.Errorf("without %q: %s", want, errs)
		}
	}
	_, _, errs = run(t, nil, "-c", policyFor(t, url), "--", "curl", "-sS", stranger+"/d")
	if strings.Contains(errs, "no call went through the proxy") ||
		!strings.Contains(errs, "no call to a service of the policy file went through the proxy") {
		t.Errorf("a call to a stranger only: %s", errs)
	}
	code, out, errs = run(t, nil, "-c", policyFor(t, url), "--strangers", "refuse", "--", "sh", "-c",
		"curl -sS "+stranger+"/d")
	if code != 0 || !strings.Contains(out, "no-route") {
		t.Errorf("refused: %d %s %s", code, out, errs)
	}
}

// past runs a program that starts this binary in some way, which calls the service of the policy without the proxy,
// until that is said.
func past(t *testing.T, addr, policy, line string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childWay, addr)
	want := "pay: the program is connected to " + addr + " by itself"
	_, _, errs := run(t, func(_, errs string) bool { return strings.Contains(errs, want) }, "-c", policy, "--", "sh", "-c",
		line, self)
	if !strings.Contains(errs, "pay: none: the program did not use the proxy; it was connected to "+addr) {
		t.Errorf("%s: %s", line, errs)
	}
}

func TestDaemonThatGoesPastTheProxyIsSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nobody tells who is connected to what
	}
	url := serving(t)
	past(t, strings.TrimPrefix(url, "http://"), policyFor(t, url), `("$0" &); while :; do sleep 0.05; done`)
}

func TestEndpointThatWasDiscoveredIsWatchedToo(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nobody tells who is connected to what
	}
	addr := strings.TrimPrefix(serving(t), "http://")
	list := clitest.Put(t, "targets.json", `[{"targets": ["`+addr+`"]}]`)
	past(t, addr, clitest.Put(t, "policy.yaml", "services:\n  pay: {upstreams: [\"http://pay.test\"], discovery: "+
		"{type: file, path: \""+list+"\"}}\n"), `exec "$0"`)
}

// And what it takes away was called all the same.
func TestServiceThatAReloadBringsIsCounted(t *testing.T) {
	needs.Program(t, "curl")
	url := serving(t)
	policy, other := policyFor(t, url), strings.Replace(url, "127.0.0.1", "localhost", 1)
	loaded := false
	_, _, errs := run(t, func(out, _ string) bool {
		if !loaded && strings.Contains(out, "begun") {
			loaded = true
			text := "services:\n  late: {upstreams: [\"" + other + "\"]}\n"
			if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Contains(out, "done")
	}, "-c", policy, "--strangers", "refuse", "--", "sh", "-c", "curl -sfo /dev/null "+url+
		"; echo begun; until curl -sfo /dev/null "+other+"; do sleep 0.05; done; echo done; while :; do sleep 0.05; done")
	if !strings.Contains(errs, "late: 1 call\n") || !strings.Contains(errs, "pay: 1 call\n") ||
		strings.Contains(errs, "no call went") {
		t.Errorf("it said %s", errs)
	}
}

// A program keeps the base URL that it was given. Calls to it after the service has gone reach nobody.
func TestCallsToAServiceThatAReloadTookAwayAreSaid(t *testing.T) {
	needs.Program(t, "curl")
	policy, loaded := policyFor(t, serving(t)), false
	_, _, errs := run(t, func(out, _ string) bool {
		if !loaded && strings.Contains(out, "begun") {
			loaded = true
			text := "services:\n  late: {upstreams: [\"http://192.0.2.1\"]}\n"
			if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Contains(out, "done")
	}, "-c", policy, "--", "sh", "-c", "echo begun; while curl -sfo /dev/null $ABATE_URL_PAY; do sleep 0.05; done; "+
		"echo done; while :; do sleep 0.05; done")
	if !strings.Contains(errs, "pay: 1 call to its base URL got a 404: the policy file did not have the service any") {
		t.Errorf("it said %s", errs)
	}
}

// Go's client uses no proxy for 127.0.0.1, but for 0.0.0.0, which leads there too.
func TestGoProgramCallsThroughTheProxy(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(serving(t), "127.0.0.1", "0.0.0.0", 1)
	t.Setenv(childWay, url)
	code, _, errs := run(t, nil, "-c", policyFor(t, url), "--", self)
	if code != 0 || !strings.Contains(errs, "pay: 1 call\n") {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestWhatOutlivesTheProgramIsSaid(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // nobody tells who started what
	}
	code, _, errs := run(t, nil, "-c", policyFor(t, "http://192.0.2.1"), "--", "sh", "-c",
		"sleep 3 >/dev/null 2>&1 & exit 4")
	if code != 4 || !strings.Contains(errs, "what the program has started goes on (processes: 1)") {
		t.Errorf("%d %s", code, errs)
	}
}

// The programs of the examples know nothing of Abate, and each of their calls comes through.
func TestProgramsOfTheExamplesCallThroughTheProxy(t *testing.T) {
	if testing.Short() {
		return // Java takes seconds to start
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		program, file string
		calls         int
	}{{"node", "app.js", 12}, {"python3", "app.py", 8}, {"java", "App.java", 12}} {
		t.Run(p.program, func(t *testing.T) {
			needs.Program(t, p.program)
			code, out, errs := run(t, nil, "-c", filepath.Join(root, "examples/policy.yaml"), "--", p.program,
				filepath.Join(root, "examples/run", p.file))
			if code != 0 || !strings.Contains(errs, fmt.Sprintf("payment-service: %d calls", p.calls)) ||
				strings.Contains(errs, "by itself") {
				t.Errorf("code %d\n%s\n%s", code, out, errs)
			}
		})
	}
}

// In a network namespace of its own the program has connections of which nobody here is told, and that is said.
func TestProgramInAnotherNetworkIsNotSaidToHaveBeenSeen(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // it has no namespaces
	}
	needs.Program(t, "unshare")
	noticed := func(_, errs string) bool {
		return strings.Contains(errs, "the program is in a network namespace of its own")
	}
	_, _, errs := run(t, noticed, "-c", policyFor(t, "http://192.0.2.1"), "--", "unshare", "--map-root-user", "--net",
		"sh", "-c", "while :; do sleep 0.05; done")
	if !strings.Contains(errs, "this system did not tell of every connection") {
		t.Errorf("%s", errs)
	}
}
