package behaviour_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/internal/needs"
)

// randomService draws the settings of one service of a policy file, apart from its time limits.
func randomService(r *rand.Rand) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		if r.IntN(3) > 0 {
			fmt.Fprintf(&b, "    "+format+"\n", args...)
		}
	}
	line("maxRetries: %d", r.IntN(6))
	line("multiplier: %d", 1+r.IntN(4))
	line("jitter: %s", []string{"full", "equal", "none"}[r.IntN(3)])
	line("retryOn: [%s]", []string{"gateway-error", "5xx, reset", "connect-failure", "timeout, \"503\"",
		"\"429\", \"500\"", "UNAVAILABLE", "error"}[r.IntN(7)])
	line("neverRetryOn: [\"502\"]")
	line("retryMethods: [GET, POST]")
	line("retryBudget: {ratio: 0.%d, reserve: 0}", 1+r.IntN(9))
	line("circuitBreaker: {failureRateThreshold: 0.%d, minimumNumberOfCalls: %d}", 1+r.IntN(9), 1+r.IntN(100))
	line("bulkhead: {maxConcurrentCalls: %d, maxQueue: %d}", 1+r.IntN(500), r.IntN(500))
	line("outlierDetection: {consecutiveFailures: %d}", 1+r.IntN(9))
	return b.String()
}

// oddNames are names of services that a policy file may have and that other programs could take for something else.
var oddNames = []string{"Orders_API", "shop.orders:8080", "orders v2", `say "orders"`, "x;y", "{orders}", "größe",
	"#1", "orders's", "a,b", "$host", "back\\slash", "*", "~x", "404", "Null"}

// randomPolicies draws a policy file with a service for each name, and where each is.
func randomPolicies(r *rand.Rand, names []string) (policy string, urls map[string][]string) {
	var b strings.Builder
	b.WriteString("services:\n")
	urls = map[string][]string{}
	for i, name := range names {
		fmt.Fprintf(&b, "  %q:\n    attemptTimeout: %dms\n    timeout: %dms\n    initialDelay: %dms\n    maxDelay: %dms\n%s",
			name, 1+r.IntN(5000), 5000+r.IntN(20000), 1+r.IntN(500), 500+r.IntN(20000), randomService(r))
		scheme := []string{"http", "https"}[min(1, r.IntN(5)/4)]
		for j := range 1 + r.IntN(3) {
			urls[name] = append(urls[name], fmt.Sprintf("%s://127.0.0.%d:%d", scheme, j+1, 20000+i))
		}
	}
	return b.String(), urls
}

func exported(t *testing.T, name, policy string, urls map[string][]string) ([]byte, []audit.Loss) {
	t.Helper()
	for _, f := range exporter.Formats {
		if f.Name != name {
			continue
		}
		text, losses, err := audit.Export(f, importer.File{Name: "policy.yaml", Data: []byte(policy)}, urls)
		if err != nil {
			t.Fatalf("%v\n%s", err, policy)
		}
		return text, losses
	}
	t.Fatalf("no format %s", name)
	return nil, nil
}

// policyNames are odd names and others.
func policyNames(n int) []string {
	names := append([]string(nil), oddNames...)
	for i := range n {
		names = append(names, fmt.Sprintf("service-%d", i))
	}
	return names
}

func TestNginxTakesWhatIsExported(t *testing.T) {
	program := needs.Program(t, "nginx")
	accepts(t, "nginx", func(folder *needs.Process, text []byte) *exec.Cmd {
		// The program of a distribution writes to folders that only root may use.
		more := "http {\n  access_log off;\n"
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			more += "  " + kind + "_temp_path " + folder.File(kind) + ";\n"
		}
		text = bytes.Replace(text, []byte("http {\n"), []byte(more), 1)
		write(t, folder.File("nginx.conf"), append([]byte("pid "+folder.File("pid")+";\n"), text...))
		return exec.Command(program, "-t", "-q", "-e", "stderr", "-p", folder.Folder, "-c", folder.File("nginx.conf"))
	})
}

func TestHAProxyTakesWhatIsExported(t *testing.T) {
	program := needs.Program(t, "haproxy")
	accepts(t, "haproxy", func(folder *needs.Process, text []byte) *exec.Cmd {
		write(t, folder.File("haproxy.cfg"), text)
		return exec.Command(program, "-c", "-q", "-f", folder.File("haproxy.cfg"))
	})
}

// accepts exports random policies and runs the program that says whether it takes what was written. It has to be
// silent.
func accepts(t *testing.T, format string, check func(folder *needs.Process, text []byte) *exec.Cmd) {
	t.Helper()
	folder := newProcess(t, format)
	r := rand.New(rand.NewPCG(7, 8))
	for range 10 {
		policy, urls := randomPolicies(r, policyNames(10))
		text, _ := exported(t, format, policy, urls)
		if said, err := check(folder, text).CombinedOutput(); err != nil || len(said) > 0 {
			t.Fatalf("%v\n%s\nof\n%s", err, said, text)
		}
	}
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
