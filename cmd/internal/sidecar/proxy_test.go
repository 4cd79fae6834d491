package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/proxy"
)

// runProxy runs "abate proxy" and returns its exit code and what it wrote. Its log goes to standard error as in the
// command.
func runProxy(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	defer restoreLog()()
	var out, errs bytes.Buffer
	code = everything.ProxyCommand(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// restoreLog returns what sets the loggers of the process back to what they are now.
func restoreLog() func() {
	before, to, flags := slog.Default(), log.Writer(), log.Flags()
	return func() {
		slog.SetDefault(before)
		log.SetOutput(to)
		log.SetFlags(flags)
	}
}

func TestProxyTellsAllBadFlagsAtOnce(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"", []string{"no policy file: name one with -c, for example -c examples/policy.yaml"}},
		{"examples/policy.yaml --gateway", []string{
			`"examples/policy.yaml" is not a flag; the policy file goes after -c`, "no policy file: name one with -c",
		}},
		{"-c p.yaml --listen unix:@a --admin unix:/" + strings.Repeat("x", 103), []string{
			`--listen "unix:@a" is not the address of a Unix socket: write unix: and a path of at most 103 bytes`,
			`--admin "unix:/` + strings.Repeat("x", 103) + `" is not the address of a Unix socket: write unix: and a path of ` +
				"at most 103 bytes that begins with /, and perhaps ?mode=0660",
		}},
		{"-c p.yaml --listne :1 --colour red --admn=off -x --listen 15001",
			[]string{"--listne is not a flag; did you mean --listen?", "--colour is not a flag\n",
				"--admn is not a flag; did you mean --admin?", "-x is not a flag\n",
				`--listen "15001" is not an address: write host:port, for example 127.0.0.1:15001`}},
		{"-c p.yaml --drain-timeout soon --connect-timeout 5 --gateway=maybe --max-buffered-body 64k --stale-memory 1e9",
			[]string{
				`--drain-timeout "soon" is not a length of time: write for example 500ms or 5s`,
				`--connect-timeout "5" is not a length of time: write`,
				`--gateway "maybe" is not true or false`, `--max-buffered-body "64k" is not a whole number`,
				`--stale-memory "1e9" is not a whole number`}},
		{"-c p.yaml --drain-timeout 0s --connect-timeout -1s --header-timeout 25h --idle-timeout 0 --stall-timeout -1ns " +
			"--upstream-idle-timeout 8761h --upstream-max-age 0s", []string{
			"--drain-timeout 0s is out of range: write more than 0s and at most 24h", "--connect-timeout -1s is out",
			"--header-timeout 25h0m0s is out",
			"--idle-timeout 0s is out", "--stall-timeout -1ns is out", "--upstream-idle-timeout 8761h0m0s is out",
			"--upstream-max-age 0s is out"}},
		{"-c p.yaml --max-buffered-body 0 --stale-memory -5", []string{
			"--max-buffered-body 0 is out of range: write 1 to 67108864",
			"--stale-memory -5 is out of range: write 1 to 1099511627776",
		}},
		{"-c p.yaml --max-buffered-body 67108865 --stale-memory 1099511627777", []string{
			"--max-buffered-body 67108865 is out", "--stale-memory 1099511627777 is out",
		}},
		{"-c p.yaml --access-log some --log-format xml", []string{
			`--access-log "some" is not known: write errors, all or off`, `--log-format "xml" is not known: write text or json`,
		}},
		{"-c p.yaml --listen on --admin here", []string{
			`--listen "on" is not an address: write host:port, for example 127.0.0.1:15001, unix:/PATH, or off`,
			`--admin "here" is not an address: write host:port, for example 127.0.0.1:15000, unix:/PATH, or off`,
		}},
		{"-c p.yaml --listen= --admin 127.0.0.1:65536", []string{
			`--listen "" is not an address`, `--admin "127.0.0.1:65536" is not an address`,
		}},
		{"-c p.yaml --listen 127.0.0.1: --admin ::1:15000", []string{
			`--listen "127.0.0.1:" is not`, `--admin "::1:15000" is not`,
		}},
		{"-c p.yaml --listen :4000 --admin :4000", []string{
			"--listen and --admin are both :4000: write another port for one of them",
		}},
		{"-c p.yaml --listen 127.0.0.1:15000", []string{"--listen and --admin are both 127.0.0.1:15000: write another port"}},
		{"-c p.yaml --admin-tls-key k.pem", []string{
			"--admin-tls-cert is missing: --admin-tls-key and --admin-client-ca need it",
		}},
		{"-c p.yaml --admin-client-ca ca.pem", []string{"--admin-tls-cert is missing: "}},
		{"-c p.yaml --admin-tls-cert c.pem", []string{"--admin-tls-key is missing: --admin-tls-cert needs it"}},
		{"-c p.yaml --listen unix:run/s --listen-tls-key k.pem --tls-min-version 1.3", []string{
			`--listen "unix:run/s" is not the address of a Unix socket`,
			"--listen-tls-cert is missing: --listen-tls-key and --listen-client-ca need it",
			`--tls-min-version "1.3" is not known: write TLSv1.2 or TLSv1.3`,
		}},
		{"-c p.yaml --listen-tls-cert c.pem --proxy-protocol", []string{
			"--listen-tls-key is missing: --listen-tls-cert needs it",
			"--proxy-protocol needs --trusted-peers: write the addresses of those who send PROXY headers",
		}},
		{"-c p.yaml --tls-min-version TLSv1.3", []string{
			"--tls-min-version has no effect: it needs --listen-tls-cert or --admin-tls-cert"}},
		{"-c p.yaml --listen --gateway --admin", []string{"--listen needs a value", "--admin needs a value"}},
		{"-c --gateway --log-format yaml", []string{
			"-c needs a value", "no policy file: ", `--log-format "yaml" is not known`,
		}},
		{"-c p.yaml -- --gateway", []string{"-- is not a flag\n"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := runProxy(t, clitest.Ended(t), strings.Fields(c.args)...)
			if code != 2 || stdout != "" {
				t.Errorf("exit code %d, stdout %q; want 2 and nothing", code, stdout)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, "abate proxy: "+want) {
					t.Errorf("lacks %q:\n%s", want, stderr)
				}
			}
			if n := strings.Count(stderr, "\n"); n != len(c.want)+1 ||
				!strings.HasSuffix(stderr, "\"abate proxy --help\" explains the flags\n") {
				t.Errorf("%d lines, want one for each of %d mistakes and a last one:\n%s", n, len(c.want), stderr)
			}
		})
	}
}

func TestProxyHelpKnowsEveryFlagAndNoOther(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"-help"}, {"--help"}, {"--colour", "red", "-c", "p.yaml", "-h"}} {
		if code, stdout, stderr := runProxy(t, clitest.Ended(t), args...); code != 0 || stdout != proxyUsage || stderr != "" {
			t.Errorf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	names := []string{"h", "help"}
	new(proxyFlags).define().VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if slices.Sort(names); !slices.Equal(clitest.FlagsIn(proxyUsage), names) {
		t.Errorf("the help names %q, there are %q", clitest.FlagsIn(proxyUsage), names)
	}
	for line := range strings.Lines(proxyUsage) {
		if len(line) > 101 { // with its end
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestProxyHelpTellsTheDefaults(t *testing.T) {
	new(proxyFlags).define().VisitAll(func(f *flag.Flag) {
		if f.DefValue == "" || f.DefValue == "false" {
			return
		}
		_, about, _ := strings.Cut(proxyUsage, "\n  --"+f.Name+" ")
		about, _, _ = strings.Cut(about, "\n  -")
		about = strings.Join(strings.Fields(about), " ")
		said := f.DefValue
		if f.Name == "proxy-uid" {
			said = "this user" // whoever starts the proxy
		}
		if d, ok := f.Value.(flag.Getter).Get().(time.Duration); ok {
			said = regexp.MustCompile(`m0s$`).ReplaceAllString(d.String(), "m")
		}
		if !strings.Contains(about, "(default "+said) && !strings.Contains(about, said+" (default") {
			if f.Name != "access-log" || !strings.HasPrefix(about, "WHICH "+said+" (default:") {
				t.Errorf("--%s: the default is %s, the help says %q", f.Name, said, about)
			}
		}
	})
}

func TestProxyFlagsReachTheConfig(t *testing.T) {
	f, err := parseProxyFlags(
		strings.Fields("--config=p.yaml --listen [::1]:http --admin off -gateway --access-log all --log-format json " +
			"--drain-timeout 1s --connect-timeout 2s --header-timeout 3s --idle-timeout 4s --stall-timeout 5s " +
			"--upstream-idle-timeout=24h --upstream-max-age 7s --max-buffered-body 67108864 --stale-memory 1099511627776"))
	if err != nil {
		t.Fatal(err)
	}
	want := proxy.Config{
		Policy:              "p.yaml",
		Gateway:             true,
		ConnectTimeout:      2 * time.Second,
		HeaderTimeout:       3 * time.Second,
		IdleTimeout:         4 * time.Second,
		StallTimeout:        5 * time.Second,
		UpstreamIdleTimeout: 24 * time.Hour,
		UpstreamMaxAge:      7 * time.Second,
		MaxBufferedBody:     64 << 20,
		StaleMemory:         1 << 40,
	}
	if got := fmt.Sprintf("%+v", f.config); got != fmt.Sprintf("%+v", want) {
		t.Errorf("config %s\nwant   %+v", got, want)
	}
	if f.listen != "[::1]:http" || f.admin != "off" || f.accessLog != "all" || f.logFormat != "json" ||
		f.drain != time.Second {
		t.Errorf("flags %+v", f)
	}
	if f, err = parseProxyFlags([]string{"-c", "p.yaml", "-c", "q.yaml", "--gateway=false"}); err != nil ||
		f.config.Gateway || f.config.Policy != "q.yaml" {
		t.Errorf("%v, flags %+v", err, f)
	}
}

func FuzzProxyFlags(f *testing.F) {
	f.Add("-c p.yaml --listen :0 --drain-timeout 3s --gateway")
	f.Add("-= --listen --- -h --admin=off =x --stale-memory -1")
	f.Fuzz(func(t *testing.T, words string) {
		flags, err := parseProxyFlags(strings.Split(words, " "))
		switch {
		case err == nil && (flags.config.Policy == "" || flags.drain <= 0 || !cli.IsAddress(flags.listen)):
			t.Errorf("taken: %+v", flags)
		case err != nil && err.Error() == "":
			t.Error("an error that says nothing")
		}
	})
}

func TestProxyNamesEveryMistakeOfItsPolicyFile(t *testing.T) {
	bad := clitest.Put(t, "bad.yaml", "defaults: {maxRetrys: 1, timeout: -1s}\nservices:\n  pay: {upstreams: [nowhere]}\n")
	code, stdout, stderr := runProxy(t, clitest.Ended(t), "-c", bad, "--listen", "127.0.0.1:0", "--admin", "off")
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d, stdout %q; want 1 and nothing", code, stdout)
	}
	for _, want := range []string{bad + `:1:12: defaults: unknown key "maxRetrys"; did you mean maxRetries?`,
		bad + ":1:35: defaults.timeout: -1s is out of range", bad + `:3:21: service "pay"`} {
		if !strings.Contains("\n"+stderr, "\n"+want) {
			t.Errorf("lacks %q:\n%s", want, stderr)
		}
	}
	if n := strings.Count(stderr, "\n"); n != 3 {
		t.Errorf("%d lines for 3 mistakes:\n%s", n, stderr)
	}
	code, stdout, stderr = runProxy(t, clitest.Ended(t), "-c", filepath.Join(t.TempDir(), "missing.yaml"))
	if code != 1 || stdout != "" || !strings.Contains(stderr, "missing.yaml: no such file") {
		t.Errorf("a file that is missing: exit code %d, %q, %q", code, stdout, stderr)
	}
}

func TestProxyThatCannotListenSaysWhyAndLeavesNothingBehind(t *testing.T) {
	policy := clitest.Put(t, "policy.yaml", "services: {pay: {upstreams: [\"http://127.0.0.1:8081\"]}}\n")
	one, other := clitest.OnLoopback(t).Addr().String(), clitest.OnLoopback(t).Addr().String()
	const taken = ": another program listens there already (perhaps another abate proxy); choose another port or stop it"
	const foreign = "192.0.2.1:15001" // of no machine: RFC 5737
	for _, c := range []struct {
		name, listen, admin string
		want                []string
	}{
		{"both ports in use", one, other, []string{"--listen " + one + taken, "--admin " + other + taken}},
		{"the admin port in use", "free", one, []string{"--admin " + one + taken}},
		{"the port in use", one, "free", []string{"--listen " + one + taken}},
		{"the port in use, no admin", one, "off", []string{"--listen " + one + taken}},
		{"an address of another machine", foreign, "free", []string{
			"--listen " + foreign + ": this machine has no such address; 127.0.0.1 is for this machine only, 0.0.0.0 for all " +
				"its addresses",
		}},
		{"an admin address of another machine", "free", foreign, []string{
			"--admin " + foreign + ": this machine has no such address",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := clitest.OnLoopback(t)
			free := l.Addr().String()
			l.Close()
			before := clitest.Goroutines()
			named := strings.NewReplacer("free", free)
			code, stdout, stderr := runProxy(t, t.Context(), "-c", policy, "--listen", named.Replace(c.listen), "--admin",
				named.Replace(c.admin))
			if code != 1 || stdout != "" {
				t.Errorf("exit code %d, stdout %q; want 1 and nothing", code, stdout)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, "abate proxy: "+want) {
					t.Errorf("lacks %q:\n%s", want, stderr)
				}
			}
			if n := strings.Count(stderr, "\n"); n != len(c.want) {
				t.Errorf("%d lines, want %d:\n%s", n, len(c.want), stderr)
			}
			if nc, err := net.Dial("tcp", free); err == nil {
				nc.Close()
				t.Error("something listens on the port that was free")
			}
			clitest.Eventually(t, "all goroutines of the proxy are gone", func() bool {
				return runtime.NumGoroutine() <= before
			})
		})
	}
}

func TestProxyThatIsToldToEndAtOnceDrains(t *testing.T) {
	policy := clitest.Put(t, "policy.yaml", "services: {pay: {upstreams: [\"http://127.0.0.1:8081\"], routes: [{host: "+
		"a.example, path: /pay}]}, idle: }\n")
	before := clitest.Goroutines()
	code, stdout, stderr := runProxy(t, clitest.Ended(t), "-c", policy, "--listen", "127.0.0.1:0", "--admin",
		"127.0.0.1:0", "--log-format", "json")
	if code != 0 || !strings.Contains(stderr, `"msg":"drained"`) || strings.Contains(stderr, "admin page") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	greeting := regexp.MustCompile(`^abate proxy: 2 services from ` + regexp.QuoteMeta(policy) + `
  pay                    a\.example/pay, its own address -> http://127\.0\.0\.1:8081
  idle                   its own address -> \(no upstreams: every request to it gets a 502\)
listening on 127\.0\.0\.1:\d+, admin on http://127\.0\.0\.1:\d+
$`)
	if !greeting.MatchString(stdout) {
		t.Errorf("it said\n%s", stdout)
	}
	clitest.Eventually(t, "all goroutines of the proxy are gone", func() bool { return runtime.NumGoroutine() <= before })
	_, stdout, _ = runProxy(t, clitest.Ended(t), "-c", policy, "--listen", "127.0.0.1:0", "--admin", "off")
	if !regexp.MustCompile(`\nlistening on 127\.0\.0\.1:\d+\n$`).MatchString(stdout) {
		t.Errorf("without an admin page it said\n%s", stdout)
	}
}

// at is a listener that says it has another address.
type at struct{ addr string }

func (at) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (at) Close() error              { return nil }
func (a at) Addr() net.Addr          { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.addr)) }

func TestProxyWarnsOfAnAdminPageThatOthersReach(t *testing.T) {
	defer restoreLog()()
	policy := clitest.Put(t, "policy.yaml", "services: {}\n")
	p, err := proxy.New(proxy.Config{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Shutdown(t.Context()) }()
	for addr, warns := range map[string]bool{
		"127.0.0.1:15000": false, "127.1.2.3:15000": false, "[::1]:15000": false,
		"0.0.0.0:15000": true, "[::]:15000": true, "192.0.2.1:15000": true, "[fe80::1%eth0]:15000": true,
	} {
		var out, logged bytes.Buffer
		slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
		new(proxyFlags).greet(p, at{"127.0.0.1:15001"}, nil, at{addr}, &out)
		if warned := strings.Contains(logged.String(), "the admin page can be reached from other machines"); warned != warns {
			t.Errorf("admin on %s: it logged %q", addr, logged.String())
		}
		if !strings.HasSuffix(out.String(), "listening on 127.0.0.1:15001, admin on http://"+addr+"\n") {
			t.Errorf("admin on %s: it said %q", addr, out.String())
		}
	}
}

func TestProxySaysWhatKeepsItFromListening(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EADDRINUSE:    "another program listens there already",
		syscall.EACCES:        "not allowed: ports below 1024 need a privilege; choose a higher one",
		syscall.EADDRNOTAVAIL: "this machine has no such address",
		syscall.EMFILE:        "listen tcp 127.0.0.1:15001: bind: too many open files",
	} {
		of := &net.OpError{Op: "listen", Net: "tcp", Addr: at{"127.0.0.1:15001"}.Addr(), Err: os.NewSyscallError("bind", err)}
		if got := cli.ListenProblem(of); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// atRoot returns the section of docs/proxy.md that shows the proxy. The test goes on in the root of the repository,
// where its commands are run.
func atRoot(t *testing.T) (section string, blocks []string) {
	t.Helper()
	t.Chdir("../../..")
	text, err := os.ReadFile("docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Try it\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i, part := range strings.Split(section, "```") {
		if i%2 == 1 {
			blocks = append(blocks, strings.TrimPrefix(part, "\n"))
		}
	}
	if !found || len(blocks) != 2 {
		t.Fatalf("the page has no section with two blocks about the proxy: %d", len(blocks))
	}
	return section, blocks
}

// blockOfTheReadme returns the README's commands for the proxy.
func blockOfTheReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "\n**Any other language.**")
	_, block, open := strings.Cut(block, "```\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !open || !closed {
		t.Fatal("the README has no block about the proxy")
	}
	return block
}

// The commands of the README and of the page are taken word by word and looked up in what they talk about.
func TestCommandsOfTheReadmeAreTrue(t *testing.T) {
	section, blocks := atRoot(t)
	policy := "examples/policy.yaml"
	flags, err := parseProxyFlags([]string{"-c", policy})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Config{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Shutdown(t.Context()) }()
	admin := httptest.NewServer(p.Admin())
	defer admin.Close()
	served := func(page string) {
		if a := ask(t, http.DefaultClient, "GET", admin.URL+page, ""); a.status != http.StatusOK {
			t.Errorf("the admin page %s: %d", page, a.status)
		}
	}
	payments := func(what, host, path string) {
		if g, ok := p.Policies().Match(host, path); !ok || g.Name() != "payment-service" {
			t.Errorf("%s: %s%s does not lead to payment-service", what, host, path)
		}
	}
	kinds := map[string]int{}
	for line := range strings.Lines(blocks[0] + blockOfTheReadme(t)) {
		command, comment, _ := strings.Cut(strings.TrimSpace(line), " #")
		words := strings.Fields(command)
		switch {
		case strings.HasPrefix(command, "python3 -m http.server "):
			payments(command, "127.0.0.1:"+words[3], "/")
		case strings.HasPrefix(command, "go run ./cmd/abate proxy "):
			f, err := parseProxyFlags(words[4:])
			if err != nil || f.config.Policy != policy || !strings.Contains(comment, "listens on "+f.listen) {
				t.Errorf("%s: %v, %+v", command, err, f)
			}
		case strings.HasPrefix(command, "go run ./cmd/abate run "): // which launch's tests run
			file, program := words[5], words[len(words)-1]
			if _, err := os.Stat(program); err != nil || file != policy {
				t.Errorf("%s: %v", command, err)
			}
		case strings.HasPrefix(command, "curl -x http://"+flags.listen+" http://"):
			to, err := url.Parse(words[3])
			if err != nil || !strings.Contains(comment, "http_proxy=http://"+flags.listen) {
				t.Fatalf("%s: %v, %s", command, err, comment)
			}
			payments(command, to.Host, to.Path)
		case strings.HasPrefix(command, "curl http://"+flags.listen+"/"):
			payments(command, flags.listen, strings.TrimPrefix(words[1], "http://"+flags.listen))
		case strings.HasPrefix(command, "curl http://"+flags.admin+"/"):
			served(strings.TrimPrefix(words[1], "http://"+flags.admin))
			for _, page := range regexp.MustCompile(`/\w+`).FindAllString(comment, -1) {
				served(page)
			}
		default:
			t.Errorf("a command that this test does not know: %s", line)
		}
		kinds[words[0]]++
	}
	if kinds["python3"] != 2 || kinds["go"] != 3 || kinds["curl"] < 5 {
		t.Errorf("commands: %v", kinds)
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(section, -1) {
		if _, err := os.Stat("docs/" + m[1]); err != nil {
			t.Errorf("the link %s: %v", m[1], err)
		}
	}
	for _, m := range regexp.MustCompile("`(--[a-z-]+)[^`]*`").FindAllStringSubmatch(section, -1) {
		if !strings.Contains(proxyUsage, m[1]+" ") {
			t.Errorf("the flag %s is not in the help", m[1])
		}
	}
}

// readAnswer reads an answer as the page shows it, whose body may be broken into lines.
func readAnswer(t *testing.T, text string) answer {
	t.Helper()
	head, body, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	body = strings.ReplaceAll(body, "\n", "")
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(head+"\n\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return answer{resp.StatusCode, resp.Header, body}
}

// keysOf are the names of a JSON object of plain values, in their order, and the values.
func keysOf(t *testing.T, object string) (names []string, values map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	for i := 0; ; i++ {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%v: %s", err, object)
		}
		if token == json.Delim('}') {
			break
		}
		if i%2 == 1 {
			names = append(names, token.(string))
		}
	}
	if err := json.Unmarshal([]byte(object), &values); err != nil {
		t.Fatal(err)
	}
	return names, values
}

func TestAnswerOfThePageIsTheOneOfAnOpenCircuit(t *testing.T) {
	_, blocks := atRoot(t)
	dead := clitest.OnLoopback(t)
	dead.Close()
	text, err := os.ReadFile("examples/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Config{
		Policy: clitest.Put(t, "policy.yaml", edited(t, string(text), "127.0.0.1:8081", dead.Addr().String())),
	})
	if err != nil {
		t.Fatal(err)
	}
	l := clitest.OnLoopback(t)
	go func() { _ = p.Serve(l) }() // until Shutdown
	defer func() { _ = p.Shutdown(t.Context()) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var sent answer
	clitest.Eventually(t, "the circuit is open", func() bool {
		sent = ask(t, client, "GET", "http://"+l.Addr().String()+"/payments/", "")
		return sent.header.Get("Abate-Reason") == "circuit-open" && strings.Contains(sent.body, `"attempts":0`)
	})
	shown := readAnswer(t, blocks[1])
	if shown.status != sent.status {
		t.Errorf("status %d, the page shows %d", sent.status, shown.status)
	}
	for name, values := range shown.header {
		if want := sent.header[name]; name != "Retry-After" && !slices.Equal(values, want) ||
			name == "Retry-After" && len(want) != 1 {
			t.Errorf("%s: %q, the page shows %q", name, want, values)
		}
	}
	names, values := keysOf(t, shown.body)
	sentNames, sentValues := keysOf(t, edited(t, sent.body, dead.Addr().String(), "127.0.0.1:8081"))
	if !slices.Equal(names, sentNames) {
		t.Errorf("fields %q, the page shows %q", sentNames, names)
	}
	for _, name := range names {
		if name != "retryAfter" && values[name] != sentValues[name] {
			t.Errorf("%s: %v, the page shows %v", name, sentValues[name], values[name])
		}
	}
	if shown.header.Get("Retry-After") != fmt.Sprint(values["retryAfter"]) ||
		sent.header.Get("Retry-After") != fmt.Sprint(sentValues["retryAfter"]) {
		t.Errorf("Retry-After and retryAfter differ: %v %v, %v %v", shown.header, values, sent.header, sentValues)
	}
}

// load sends requests with each of some clients until stop is closed, and counts them. It returns what failed.
func load(clients []*http.Client, url string, stop chan struct{}, sent []atomic.Int64) (failed []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, client := range clients {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := try(client, "GET", url, "")
				if sent[i].Add(1); err != nil || a.status != 200 || a.body != "ok" {
					mu.Lock()
					failed = append(failed, fmt.Sprintf("client %d: %v, %d %v %q", i, err, a.status, a.header, a.body))
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return failed
}

// reloadUnderLoad has clients of several kinds send requests through a proxy while rewrite changes its policy by
// calling next, which puts the next of the policies in the place of the file, at least until loaded: until each client
// has sent some requests. Every request has to be answered by a service.
func reloadUnderLoad(t *testing.T, policies []string, rewrite func(p *proxy.Proxy, next func(), loaded func() bool)) {
	before := clitest.Goroutines()
	handle := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	one, two := httptest.NewServer(handle), httptest.NewServer(handle)
	upstreams := strings.NewReplacer("ONE", one.URL, "TWO", two.URL)
	file := clitest.Put(t, "policy.yaml", upstreams.Replace(policies[0]))
	p, err := proxy.New(proxy.Config{Policy: file})
	if err != nil {
		t.Fatal(err)
	}
	defer restoreLog()()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	p.Policies().Interval = 20 * time.Millisecond
	ctx, end := context.WithCancel(t.Context())
	l := clitest.OnLoopback(t)
	served, watched := make(chan error, 1), make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	go func() { watched <- p.Watch(ctx) }()

	clients := []*http.Client{
		{Transport: &http.Transport{DisableKeepAlives: true}}, {Transport: &http.Transport{Protocols: new(http.Protocols)}},
	}
	clients[1].Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	for range 4 {
		clients = append(clients, &http.Client{Transport: &http.Transport{}})
	}
	stop, sent := make(chan struct{}), make([]atomic.Int64, len(clients))
	var rewriting sync.WaitGroup
	rewriting.Go(func() {
		defer close(stop)
		now := 0
		rewrite(p, func() {
			now = (now + 1) % len(policies)
			rename(t, file, upstreams.Replace(policies[now]))
		}, func() bool {
			for i := range sent {
				if sent[i].Load() < 5 {
					return false
				}
			}
			return true
		})
	})
	failed := load(clients, "http://"+l.Addr().String()+"/x/y", stop, sent)
	rewriting.Wait()
	if len(failed) > 0 {
		t.Errorf("%d requests failed, the first ones:\n%s", len(failed), strings.Join(failed[:min(len(failed), 5)], "\n"))
	}
	end()
	for _, client := range clients {
		client.CloseIdleConnections()
	}
	if err := p.Shutdown(t.Context()); err != nil || <-served != nil || <-watched != context.Canceled {
		t.Errorf("it did not end well: %v", err)
	}
	one.Close()
	two.Close()
	clitest.Eventually(t, "all goroutines of the proxy are gone", func() bool { return runtime.NumGoroutine() <= before })
}

// Every reload changes something else: endpoints come and go, with the connections that are kept to them, the service
// has another name, limits appear, a file is wrong. No policy repeats anything, so that a request that a reload hurts
// fails.
func TestReloadEvery100msUnderLoadFailsNoRequest(t *testing.T) {
	if testing.Short() {
		return
	}
	reloads, want := 0, 0
	reloadUnderLoad(t, []string{
		"services: {s: {maxRetries: 0, upstreams: [ONE], routes: [{path: /}]}}\n",
		"services: {s: {maxRetries: 0, upstreams: [TWO, ONE], routes: [{path: /}, {path: /x}], bulkhead: " +
			"{maxConcurrentCalls: 50}, circuitBreaker: {failureThreshold: 9}}}\n",
		"services: {t: {maxRetries: 0, upstreams: [TWO], routes: [{path: /}], attemptTimeout: 20s}, s: }\n",
		"services: nonsense\n",
		"services: {s: {maxRetries: 0, upstreams: [TWO], routes: [{host: 127.0.0.1, path: /}], hedge: {delay: 10s}, " +
			"timeout: 25s}}\n",
	}, func(p *proxy.Proxy, next func(), loaded func() bool) {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		i := 0
		for ; i < 20 || i%5 > 0 || !loaded(); i++ {
			<-tick.C
			was := p.Policies().Status()
			next()
			if i%2 == 0 {
				_ = p.Reload() // as SIGHUP does; one of the files is wrong
			}
			clitest.Eventually(t, "Watch has seen the file", func() bool {
				now := p.Policies().Status()
				return now.Hash != was.Hash || (now.Err == nil) != (was.Err == nil)
			})
			if p.Policies().Status().Hash != was.Hash {
				reloads++
			}
		}
		want = i / 5 * 4 // of five policies one is a mistake
	})
	if reloads != want {
		t.Errorf("%d reloads, want %d", reloads, want)
	}
}

// A route that goes to another service with a reload is the hardest case: the file no longer lists the service that a
// request is on its way to, or did not a moment ago. The moment is short, so there are many reloads.
func TestARouteThatMovesToAnotherServiceLosesNoRequest(t *testing.T) {
	if testing.Short() {
		return
	}
	reloadUnderLoad(t, []string{
		"services: {s: {maxRetries: 0, upstreams: [ONE], routes: [{path: /}]}}\n",
		"services: {t: {maxRetries: 0, upstreams: [TWO], routes: [{path: /}]}}\n",
		"services: {u: {maxRetries: 0, upstreams: [ONE, TWO], routes: [{path: /}]}}\n",
	}, func(p *proxy.Proxy, next func(), loaded func() bool) {
		for i := 0; i < 300 || !loaded(); i++ {
			next()
			if err := p.Reload(); err != nil {
				t.Error(err)
			}
		}
	})
}
