package basics

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/embedded"
	"github.com/abate-go/abate/cmd/internal/address"
	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/startup"
)

// waitOutput is standard error. It calls once, when a target has failed for the first time.
type waitOutput struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	once func()
}

func (o *waitOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.buf.Write(p)
	call := o.once
	if bytes.Contains(p, []byte(" is not there, attempt 1, ")) {
		o.once = nil
	} else {
		call = nil
	}
	o.mu.Unlock()
	if call != nil {
		call()
	}
	return len(p), nil
}

// runWait runs "abate wait" without a program. meanwhile, unless nil, is called when the first attempt has failed.
func runWait(ctx context.Context, meanwhile func(), args ...string) (code int, stderr string) {
	out := &waitOutput{once: meanwhile}
	code = everything.WaitCommand(ctx, args, new(bytes.Buffer), out)
	return code, out.buf.String()
}

// runWaitInABubble is runWait in virtual time: however busy the machine is, no time passes while a target is asked, and
// none is spent waiting.
func runWaitInABubble(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { code, stderr = runWait(t.Context(), nil, args...) })
	return code, stderr
}

func TestWaitTellsEverythingThatIsWrongAtOnce(t *testing.T) {
	policy := clitest.Put(t, "policy.yaml", "services: {postgres: {maxDelay: 1s}}\n")
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"", 2, []string{"no target: write at least one"}},
		{"-- true", 2, []string{"no target"}},
		{"tcp://a:1 --", 2, []string{"no program after --: write one, or leave -- away to only wait"}},
		{"tcp://a:1 ./server --port 80", 2, []string{
			`"./server" is not a target; if it is the program, write -- before it: abate wait TARGET... -- ./server`,
		}},
		{"a:5432 -- true", 2, []string{
			`"a:5432" has no scheme: write tcp://a:5432, or the scheme of what is there: postgres, redis,`,
		}},
		{"server -- true", 2, []string{
			`"server" is not a target: write for example tcp://127.0.0.1:5432; a program goes after --`,
		}},
		{"gopher://a:1 tcp://a tcp://:1 tcp://a:port tcp://a:70000 tcp://a:1/path tcp://::1 kafka://a/topic kafka://u@a " +
			"unix:// unix://run/x -- true", 2, []string{
			`gopher://a:1: the scheme "gopher" is not known: there are postgres, redis, rediss,`,
			"tcp://a: the port is missing: write tcp://a:PORT", "tcp://:1: the host is missing",
			`tcp://a:port: "port" is not a port: write 1 to 65535`,
			`tcp://a:70000: "70000" is not a port`, "tcp://a:1/path: tcp:// is a host and a port and nothing else",
			`tcp://::1: `,
			"kafka://a/topic: kafka:// is a list of HOST:PORT",
			"kafka://u@a: a login needs a password: write kafka://USER:PASSWORD@HOST:PORT",
			"unix://: write the path of the socket with three slashes", "unix://run/x: write the path",
		}},
		{"redis://a/x http://[::1 postgres://a:1:2/ postgres://a/x?sslmode=sometimes", 2, []string{
			"redis://a/x: ", "http://[::1: ", "postgres://a:1:2/: ", "postgres://a/x: ",
		}},
		{"tcp://a:1 --timout 3s --timeout soon --service x", 2,
			[]string{"--timout is not a flag; did you mean --timeout; flags of the program go after --",
				`--timeout "soon" is not a length of time: write for example 500ms or 5s`, "--service x needs --policy"}},
		{"tcp://a:1 --timeout 0 --quiet=7", 2, []string{
			"--timeout 0s is out of range: write more than 0s and at most 24h", `--quiet "7" is not true or false`,
		}},
		{"tcp://a:1 --policy", 2, []string{"--policy needs a value"}},
		{"tcp://a:1 --policy nowhere.yaml", 2, []string{"--policy: open nowhere.yaml: no such file or directory"}},
		{"tcp://a:1 --service postgre --policy " + policy, 2, []string{`has no service "postgre"; did you mean postgres?`}},
		{"tcp://a:1 -- no-such-program", 127, []string{`program "no-such-program" is in no folder of PATH (`}},
		{"tcp://a:1 -- ./no-such-program", 127, []string{`program "./no-such-program" does not exist`}},
		{"tcp://a:1 -- " + policy, 126, []string{"cannot be run: it is a folder, or not executable (chmod +x)"}},
		{"tcp://a:1 -- " + filepath.Dir(policy), 126, []string{"cannot be run"}},
		{"tcp://a -- no-such-program", 2, []string{"the port is missing", "no-such-program"}},
	} {
		code, stderr := runWait(t.Context(), nil, strings.Fields(c.args)...)
		if code != c.code || strings.Count(stderr, "\n") != len(c.want)+1 ||
			!strings.HasSuffix(stderr, "\"abate wait --help\" explains targets and flags\n") {
			t.Errorf("%s: exit code %d, want %d with %d lines\n%s", c.args, code, c.code, len(c.want)+1, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, "abate wait: ") || !strings.Contains(stderr, want) {
				t.Errorf("%s: lacks %q:\n%s", c.args, want, stderr)
			}
		}
	}
}

func TestWaitHelp(t *testing.T) {
	for _, args := range []string{"-h", "tcp://a:1 --help", "tcp://a --timeout soon -help -- no-such-program"} {
		var out, errs bytes.Buffer
		if code := everything.WaitCommand(t.Context(), strings.Fields(args), &out, &errs); code != 0 ||
			out.String() != waitUsage || errs.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, %q", args, code, &out, &errs)
		}
	}
	_, own, _ := strings.Cut(waitUsage, "\n  --timeout") // not the flags of the program in the example
	names := []string{"h", "help"}
	new(waiting).define().VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if slices.Sort(names); !slices.Equal(clitest.FlagsIn("\n  --timeout"+own), names) {
		t.Errorf("the help names %q, there are %q", clitest.FlagsIn(own), names)
	}
	for line := range strings.Lines(waitUsage) {
		if len(line) > 101 { // with its end
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	for scheme := range everything.probers() {
		if scheme != "postgresql" && !strings.Contains(waitUsage, " "+scheme+"://") &&
			!strings.Contains(waitUsage, scheme+"://") {
			t.Errorf("the help lacks %s", scheme)
		}
	}
}

func TestWaitTakesTheBackOffFromThePolicyFile(t *testing.T) {
	policy := clitest.Put(t, "policy.yaml", "defaults: {maxDelay: 2s}\nservices:\n  postgres: {maxDelay: 1s, "+
		"maxElapsed: 7s, attemptTimeout: 300ms, maxRetries: 9}\n")
	for args, want := range map[string]string{
		"":                                      "100ms to 5s equal, 1m0s, 5s",
		"--timeout 9s":                          "100ms to 5s equal, 9s, 5s",
		"--policy " + policy:                    "100ms to 2s full, 1m0s, 5s",
		"--service postgres --policy=" + policy: "100ms to 1s full, 7s, 300ms",
		"--timeout 9s --service postgres --policy " + policy: "100ms to 1s full, 9s, 300ms",
	} {
		w, _, problems := everything.parseWait(append(strings.Fields(args), "tcp://a:1"))
		if len(problems) > 0 {
			t.Errorf("%s: %v", args, problems)
			continue
		}
		p := w.policy.WithDefaults()
		if got := fmt.Sprintf("%v to %v %s, %v, %v", p.InitialDelay, p.MaxDelay, p.Jitter, p.MaxElapsed,
			p.AttemptTimeout); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// later is an address at which nobody listens yet, and a function that makes somebody listen.
func later(t *testing.T) (address string, listen func()) {
	l := clitest.OnLoopback(t)
	address = l.Addr().String()
	l.Close()
	return address, func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { l.Close() })
	}
}

func TestWaitForAListenerThatComesLate(t *testing.T) {
	address, listen := later(t)
	mysql := clitest.OnLoopback(t)
	code, stderr := runWait(t.Context(), listen, "tcp://"+address, "mysql://"+mysql.Addr().String())
	if code != 0 || !strings.Contains(stderr, "tcp://"+address+" is not there, attempt 1, next in ") ||
		!strings.Contains(stderr, "connection refused\n") ||
		!strings.Contains(stderr, "tcp://"+address+" is there after 2 attempts in ") ||
		!strings.Contains(stderr, "mysql://"+mysql.Addr().String()+" is there after 1 attempt in ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, stderr = runWait(t.Context(), nil, "tcp://"+address, "--quiet"); code != 0 || stderr != "" {
		t.Errorf("quiet: exit code %d\n%s", code, stderr)
	}
}

func TestWaitThatGivesUpSaysWhyAboutEachTarget(t *testing.T) {
	address, _ := later(t)
	there := clitest.OnLoopback(t)
	code, stderr := runWaitInABubble(t, "tcp://"+address, "unix:///no/such/socket", "tcp://"+there.Addr().String(),
		"--timeout", "20s", "--quiet")
	if code != 1 || strings.Count(stderr, "\n") != 4 || strings.Count(stderr, ": gave up waiting after ") != 2 ||
		!strings.Contains(stderr, "tcp://"+address+": nobody listens there (ECONNREFUSED)") ||
		!strings.Contains(stderr, "unix:///no/such/socket: gave up") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestWaitThatIsInterruptedEndsAtOnce(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	address, _ := later(t)
	code, stderr := runWait(ctx, interrupt, "tcp://"+address, "--timeout", "1h")
	if code != 1 || !strings.Contains(stderr, "tcp://"+address+" was not there yet: dial tcp ") ||
		!strings.HasSuffix(stderr, "abate wait: interrupted\n") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestWaitForHTTP(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Method != "GET" || r.URL.Path != "/readyz" || r.URL.RawQuery != "deep=1" || user != "me" ||
			password != "hunter2" {
			t.Errorf("%s %s %s", r.Method, r.URL, user)
		}
		if asked.Add(1) == 1 {
			w.WriteHeader(500)
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer s.Close()
	at := "http://me:hunter2@" + s.Listener.Addr().String() + "/readyz?deep=1"
	code, stderr := runWait(t.Context(), nil, at)
	if code != 0 || asked.Load() != 2 || !strings.Contains(stderr, "attempt 1, next in ") ||
		!strings.Contains(stderr, ": it answered 500 Internal Server Error\n") || strings.Contains(stderr, "hunter2") {
		t.Errorf("exit code %d after %d requests\n%s", code, asked.Load(), stderr)
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	code, stderr = runWait(t.Context(), nil, "https://"+secure.Listener.Addr().String())
	if code != 1 || !strings.Contains(stderr, "permanent failure after 1 attempt in ") ||
		!strings.Contains(stderr, "a certificate that is not trusted") || strings.Contains(stderr, "Get ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestWaitObeysRetryAfter(t *testing.T) {
	answer := func(status int, retryAfter string) error {
		return judgeStatus(&http.Response{
			Status: fmt.Sprint(status), StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}},
		})
	}
	for _, status := range []int{200, 204, 301, 307} {
		if err := answer(status, "9"); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
	g, err := abate.New("http", abate.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]time.Duration{
		"9": 9 * time.Second, "": 0, "-9": 0, "soon": 0, "0": 0, "99999999999999999999": 0, "9999999999": 24 * time.Hour,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		if o := g.Judge(answer(503, field)); o.RetryAfter != want || (want > 0) != (o.Class == abate.Overload) ||
			o.Err == nil {
			t.Errorf("%q: %+v, want %v", field, o, want)
		}
	}
	if pause := askedPause(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)); pause < 59*time.Minute ||
		pause > time.Hour {
		t.Errorf("a date in an hour is a pause of %v", pause)
	}
}

func TestWaitForKafka(t *testing.T) {
	address, _ := later(t)
	b, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	code, stderr := runWait(t.Context(), nil, "kafka://"+address+","+b.Addresses()[0]) // one of them is enough
	if code != 0 {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	code, stderr = runWaitInABubble(t, "kafka://"+address, "--timeout", "50ms")
	if code != 1 || !strings.Contains(stderr, "kafka://"+address+": gave up waiting after 1 attempt in ") ||
		!strings.Contains(stderr, "connection refused") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// A scheme is the same in any case, also to the libraries that are asked.
func TestASchemeMayBeInCapitals(t *testing.T) {
	for _, raw := range []string{
		"POSTGRES://u:hunter2@127.0.0.1:9/x", "Redis://127.0.0.1:9", "HTTP://127.0.0.1:9", "TCP://127.0.0.1:9",
	} {
		if target, err := everything.parseTarget(raw); err != nil || strings.ToLower(target.shown) != target.shown {
			t.Errorf("%s: %q, %v", raw, target.shown, err)
		}
	}
}

// A server that takes connections and says nothing holds nobody up: neither the time limit nor an interrupt waits for
// it.
func TestASilentServerDoesNotOutlastTheWait(t *testing.T) {
	for _, scheme := range []string{"postgres", "redis", "rediss", "kafka", "kafka+ssl", "http", "https"} {
		silent := clitest.OnLoopback(t)
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			c, err := silent.Accept()
			if err == nil {
				t.Cleanup(func() { c.Close() })
				_, _ = c.Read(make([]byte, 1)) // the question has come
			}
		}()
		target, err := everything.parseTarget(scheme + "://" + silent.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		go func() { <-asked; interrupt() }()
		if err := target.probe(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", scheme, err)
		}
		interrupt()
	}
}

// A driver that does not heed its context is ended by closing its client; without that this test would never end.
func TestADriverThatHeedsNoContextIsEnded(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	closed, times := make(chan struct{}), 0
	err := address.Until(ctx, func() {
		times++
		close(closed)
	}, func() error { interrupt(); <-closed; return errors.New("client closed") })
	if err != context.Canceled || times != 1 {
		t.Errorf("%v, closed %d times", err, times)
	}
	if err := address.Until(t.Context(), func() { times++ }, func() error { return nil }); err != nil || times != 2 {
		t.Errorf("%v, closed %d times", err, times)
	}
}

func TestMessagesHaveNoSecretsAndNoControlCharacters(t *testing.T) {
	// the library repeats the address
	for _, raw := range []string{"redis://u:p%2fword@ho st", "redis://u:ab@ho st", "REDIS://u:p%2fword@ho st"} {
		if _, err := everything.parseTarget(raw); err == nil || strings.Contains(err.Error(), "word") ||
			strings.Contains(err.Error(), "ab@") || !strings.Contains(err.Error(), "in host name") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	small, err := everything.parseTarget("postgres://u:p%2fword@127.0.0.1/x")
	if err != nil || small.hide("p%2fword, p%2Fword, p/word") != "xxxxx, xxxxx, xxxxx" {
		t.Errorf("%v %q", err, small.hide("p%2fword, p%2Fword, p/word"))
	}
	target, err := everything.parseTarget("postgres://u:pa%2Fss%20word@127.0.0.1/x?sslpassword=other")
	if err != nil {
		t.Fatal(err)
	}
	text := target.hide("cannot pa/ss word\nwith\tpa%2Fss%20word\nwith\tpa%2Fss%20word\n or other \x1b[2J")
	if want := "cannot xxxxx with xxxxx or xxxxx ?[2J"; text != want || target.shown != "postgres://u@127.0.0.1/x" {
		t.Errorf("%q, %q", text, target.shown)
	}
}

// FuzzParseTarget looks for words that crash the parser, or that make it show a password.
func FuzzParseTarget(f *testing.F) {
	const secret = "s3cr3t"
	for _, seed := range []string{"postgres://u:PW@h:5432/db?sslmode=disable", "redis://:PW@h/0", "kafka://h1:1,h2:2",
		"tcp://h:1", "unix:///a", "http://u:PW@[::1]:80/x#y",
		"postgres://u:PW/x@h", "postgres://u:%zzPW@h", "mysql://u:PW@h:x", "PW@h:1", "u:PW@h", "rediss://h:1?password=PW",
		"tcp://u:1/PW@h", "postgres://h,h2:1/?password=PW&pass=%", "://PW@", "http://a@PW@b", "\x00:0", "\x00:// @",
		"unix:///a\x1bb", "gopher://h\x1b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		raw = strings.ReplaceAll(raw, "PW", secret)
		target, err := everything.parseTarget(raw)
		told := target.shown
		if err != nil {
			told = err.Error()
		}
		for _, r := range told {
			if r < ' ' && r != '\n' {
				t.Errorf("%q shows a control character: %q", raw, told)
			}
		}
		if (target.probe == nil) == (err == nil) {
			t.Errorf("%q: neither a question nor an error, or both: %v", raw, err)
		}
		// What stands between user and host is a password; elsewhere it may be a host or a path of that name.
		if _, rest, ok := strings.Cut(raw, "://"); ok {
			if user, host, ok := strings.Cut(rest, ":"+secret); ok && strings.Contains(host, "@") &&
				!strings.ContainsAny(user, "@/?#"+secret) && strings.Count(raw, secret) == 1 && strings.Contains(told, secret) {
				t.Errorf("%q shows the password: %q", raw, told)
			}
		} else if strings.Contains(raw, secret+"@") && strings.Count(raw, secret) == 1 && strings.Contains(told, secret) {
			t.Errorf("%q shows the password: %q", raw, told)
		}
	})
}

func TestWaitPolicyIsThatOfTheLibrary(t *testing.T) {
	w, _, _ := everything.parseWait([]string{"tcp://a:1"})
	if p := startup.Policy(); w.policy.Retry != p.Retry || w.policy.AttemptTimeout != p.AttemptTimeout ||
		w.policy.Retry == (retry.Config{}) {
		t.Errorf("%+v", w.policy)
	}
}
