package sidecar

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
)

func TestProxyTellsAllFilesThatItCannotRead(t *testing.T) {
	policy := clitest.Put(t, "policy.yaml", "protect: {orders: {listen: '127.0.0.1:0', upstreams: "+
		"['http://127.0.0.1:1'], authentication: {bearerTokens: /none/tokens}, tls: {certificate: /none/crt, key: "+
		"/none/key}}}\n")
	code, _, stderr := runProxy(t, clitest.Ended(t), "-c", policy, "--listen", "off", "--admin", "off")
	for _, want := range []string{
		"abate proxy: protect.orders.authentication.bearerTokens: ", "abate proxy: protect.orders.tls: ",
	} {
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%d, and nothing begins with %q:\n%s", code, want, stderr)
		}
	}
}

func TestAnEntranceAtTheAddressOfAFlagIsToldSo(t *testing.T) {
	l := clitest.OnLoopback(t)
	addr := l.Addr().String()
	l.Close()
	policy := clitest.Put(t, "policy.yaml", "protect: {orders: {listen: '"+addr+"', upstreams: ['http://127.0.0.1:1']}}\n")
	for flag, args := range map[string][]string{
		"--listen": {"--listen", addr, "--admin", "off"}, "--admin": {"--listen", "off", "--admin", addr},
	} {
		code, _, stderr := runProxy(t, clitest.Ended(t), append([]string{"-c", policy}, args...)...)
		want := "protect.orders.listen " + addr + ": that is the address of " + flag + "; write another port for one of them"
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%d\n%swant %s", code, stderr, want)
		}
	}
}

func TestAProxyToWhichNothingComesSaysSo(t *testing.T) {
	const warning = "nothing comes in: --listen is off"
	for file, warns := range map[string]bool{
		"services: {pay: {upstreams: ['http://127.0.0.1:1']}}\n":                          true,
		"protect: {orders: {listen: '127.0.0.1:0', upstreams: ['http://127.0.0.1:1']}}\n": false,
	} {
		code, _, stderr := runProxy(t, clitest.Ended(t), "-c", clitest.Put(t, "policy.yaml", file), "--listen", "off",
			"--admin", "off")
		if code != 0 || strings.Contains(stderr, warning) != warns {
			t.Errorf("%d\n%swith %s", code, stderr, file)
		}
	}
}
