package basics

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/policyfile"
)

func TestCheckPrintsThePolicyInForceAsAPolicyFile(t *testing.T) {
	code, out, errs := check(t, "../../../examples/policy.yaml")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	if !strings.HasPrefix(out, "# ../../../examples/policy.yaml: ok, 3 services\ndefaults:\n  timeout: 3s\n") {
		t.Errorf("it begins with:\n%.200s", out)
	}
	again, second, errs := check(t, clitest.Put(t, "printed.yaml", out))
	if again != 0 {
		t.Fatalf("what check prints is not a good file: %s", errs)
	}
	_, first, _ := strings.Cut(out, "\n")
	_, second, _ = strings.Cut(second, "\n")
	a, b := strings.Split(first, "\n"), strings.Split(second, "\n")
	for i := range a {
		if unset := strings.HasPrefix(strings.TrimSpace(a[i]), "# "); len(a) != len(b) || a[i] != b[i] && !unset {
			t.Fatalf("printed twice, line %d differs: %q and %q", i+1, a[i], b[i])
		}
	}
}

func TestCheckPrintsWhatAFileProtects(t *testing.T) {
	code, out, errs := check(t, "../../../examples/ingress.yaml")
	const first = "# ../../../examples/ingress.yaml: ok, 0 services, 1 protected\n" +
		"# protects orders, on 127.0.0.1:8080 before http://127.0.0.1:9000: timeout 10s; rate limit 100/s by caller; shed; " +
		"idempotency of POST\ndefaults:\n"
	if code != 0 || errs != "" || !strings.HasPrefix(out, first) {
		t.Fatalf("exit %d, %s\n%.400s", code, errs, out)
	}
	again, second, errs := check(t, clitest.Put(t, "printed.yaml", out))
	_, printed, _ := strings.Cut(out, "\n")
	if _, second, _ = strings.Cut(second, "\n"); again != 0 || second != printed {
		t.Errorf("exit %d, %s: what is printed is another file:\n%s\nfrom:\n%s", again, errs, second, printed)
	}
	if code, out, _ := check(t, "-q", "../../../examples/ingress.yaml"); code != 0 ||
		out != "../../../examples/ingress.yaml: ok, 0 services, 1 protected\n" {
		t.Errorf("with -q: exit %d, %q", code, out)
	}
	if code, _,
		errs := check(
		t, clitest.Put(t, "tried.yaml", strings.Replace(read(t, "../../../examples/ingress.yaml"), "# redis: {embedded",
			"redis: {embedded", 1))); code != 0 {
		t.Errorf("the other redis of the comments: exit %d, %s", code, errs)
	}
}

func TestCheckSaysHowMuchOfAProtectionIsOn(t *testing.T) {
	const redis = "redis: {embedded: true}\n"
	const unused = "# redis is used for nothing: no rateLimit, idempotency, retryBudget or circuitBreaker says fleet: " +
		"true\n"
	const forgets = "# redis.replicas is 0: a failover can forget idempotency keys, and what was done under them is " +
		"done again; set it to the number of replicas of each master\n"
	for text, want := range map[string]string{
		"protect: {a: }":                         "# protects a, in a Go program: shed\n",
		"protect: {a: {shed: {disabled: true}}}": "# protects a, in a Go program: nothing is refused\n",
		"protect: {a: {rateLimit: {limit: 0/s, shadow: true}, shed: {shadow: true}}}": "# protects a, in a Go program: " +
			"rate limit 0/s (shadow); shed (shadow)\n",
		redis + "protect: {a: {idempotency: {methods: [POST, PUT]}}}": "# protects a, in a Go program: shed; idempotency " +
			"of POST, PUT\n" + unused,
		redis + "protect: {a: {idempotency: {methods: [POST], fleet: true}}}": "# protects a, in a Go program: shed; " +
			"idempotency of POST\n",
		"redis: {addresses: [\"a:1\"], cluster: true}\nprotect: {a: {idempotency: {methods: [POST], fleet: " +
			"true}}}": "# protects a, in a Go program: shed; idempotency of POST\n" + forgets,
		"redis: {addresses: [\"a:1\"], master: m}\nprotect: {a: {idempotency: {methods: [POST], fleet: " +
			"true}}}": "# protects a, in a Go program: shed; idempotency of POST\n" + forgets,
		"redis: {addresses: [\"a:1\"], master: m, replicas: 1}\nprotect: {a: {idempotency: {methods: [POST], fleet: " +
			"true}}}": "# protects a, in a Go program: shed; idempotency of POST\n",
		"redis: {addresses: [\"a:1\"], master: m}\nprotect: {a: {rateLimit: {limit: 1/s, fleet: true}}}": "# protects a, " +
			"in a Go program: rate limit 1/s; shed\n",
		redis + "services: {a: {retryBudget: {fleet: true}}}": "",
		redis + "defaults: {circuitBreaker: {fleet: true}}":   "",
		redis + "services: {a: }":                             unused,
		"protect: {a: {listen: \"[::1]:1\", upstreams: [\"http://a\", \"h2c://b\"], tls: {certificate: c, key: k, " +
			"clientCA: a}, authentication: {bearerTokens: t}}}": "# protects a, on [::1]:1 before http://a, h2c://b: " +
			"authentication; mutual TLS; shed\n",
	} {
		code, out, errs := check(t, clitest.Put(t, "p.yaml", text+"\n"))
		_, rest, _ := strings.Cut(out, "\n")
		if got, _, _ := strings.Cut(rest, "defaults:\n"); code != 0 || got != want {
			t.Errorf("%s\nexit %d, %s\ngot  %s\nwant %s", text, code, errs, got, want)
		}
	}
}

func TestCheckTellsEveryMistakeAndExitsWithOne(t *testing.T) {
	good, bad := clitest.Put(t, "good.yaml", "services: {a: }\n"),
		clitest.Put(t, "bad.yaml", "defaults: {maxRetrys: 1, timeout: -1s}\n")
	code, out, errs := check(t, bad, good)
	want := bad + `:1:12: defaults: unknown key "maxRetrys"; did you mean maxRetries?` + "\n" +
		bad + `:1:35: defaults.timeout: -1s is out of range; allowed: 0s to 24h; for example 2s` + "\n"
	if code != 1 || errs != want {
		t.Errorf("exit %d, errors:\n%s\nwant:\n%s", code, errs, want)
	}
	if !strings.Contains(out, "# "+good+": ok, 1 service\n") {
		t.Error("the good file among bad ones is not printed")
	}
	code, out, errs = check(t, "-q", bad, good)
	if want := bad + ": 2 mistakes\n" + good + ": ok, 1 service\n"; code != 1 || out != want || errs != "" {
		t.Errorf("with -q: exit %d, %q, %q", code, out, errs)
	}
}

func TestCheckExitsWithOneForEveryBadExample(t *testing.T) {
	files, err := filepath.Glob("../../../policyfile/testdata/*.bad.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		if code, out, errs := check(t, file); code != 1 || out != "" || !strings.HasPrefix(errs, file+":") {
			t.Errorf("%s: exit %d, %q, %q", file, code, out, errs)
		}
	}
}

func TestCheckOfAMissingFile(t *testing.T) {
	code, _, errs := check(t, filepath.Join(t.TempDir(), "missing.yaml"))
	if code != 1 || !strings.Contains(errs, "missing.yaml: no such file") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestCheckReadsStandardInput(t *testing.T) {
	f, err := os.Open(clitest.Put(t, "in.yaml", "services: {a: {multiplier: 0}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := os.Stdin
	os.Stdin = f
	defer func() { os.Stdin = before }()
	code, _, errs := check(t, "-")
	if code != 1 || !strings.HasPrefix(errs, `<stdin>:1:28: service "a", multiplier: 0 is out of range`) {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestCheckUsage(t *testing.T) {
	for _, c := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"-h", 0, "Usage: abate check", ""},
		{"--help", 0, "Usage: abate check", ""},
		{"", 2, "", "Usage: abate check"},
		{"--colour x.yaml", 2, "", "abate check: flag provided but not defined: -colour"},
		{"--schema x.yaml", 2, "", "Usage: abate check"},
	} {
		code, out, errs := check(t, strings.Fields(c.args)...)
		if code != c.code || !strings.HasPrefix(out, c.out) || !strings.HasPrefix(errs, c.err) || c.out == "" && out != "" ||
			c.err == "" && errs != "" {
			t.Errorf("check %s: exit %d, %q, %q", c.args, code, out, errs)
		}
	}
}

func TestCheckTakesFlagsAfterFilesToo(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.yaml", "b.yaml", "-q", "--"} {
		if err := os.WriteFile(name, []byte("services: {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b := "a.yaml: ok, 0 services\n", "b.yaml: ok, 0 services\n"
	for _, c := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"-q a.yaml b.yaml", 0, a + b, ""},
		{"a.yaml -q", 0, a, ""},
		{"a.yaml -q b.yaml", 0, a + b, ""},
		{"a.yaml -q -- -q", 0, a + "-q: ok, 0 services\n", ""},
		{"-q -- -- a.yaml", 0, "--: ok, 0 services\n" + a, ""},
		{"a.yaml -h", 0, checkUsage, ""},
		{"a.yaml --schema", 2, "", checkUsage},
		{"a.yaml --colour", 2, "", "abate check: flag provided but not defined: -colour\n\n" + checkUsage},
		{"-q", 2, "", checkUsage},
		{"--", 2, "", checkUsage},
	} {
		code, out, errs := check(t, strings.Fields(c.args)...)
		if code != c.code || out != c.out || errs != c.err {
			t.Errorf("check %s: exit %d, %q, %q", c.args, code, out, errs)
		}
	}
}

func TestCheckPrintsTheSchema(t *testing.T) {
	code, out, errs := check(t, "--schema")
	if code != 0 || errs != "" || !json.Valid([]byte(out)) || out != string(policyfile.Schema()) {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func check(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = CheckCommand(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
