package policyfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate/policyfile"
)

// TestAHostIsListedForTheServiceThatRequestsToItBelongTo: CONNECT goes by the same hosts as plain requests.
func TestAHostIsListedForTheServiceThatRequestsToItBelongTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(`services:
  tcp: {upstreams: ["http://tcp.test", "h2c://tcp.test:9000"]}
  tls: {upstreams: ["https://tls.test", "https://10.0.0.9"]}
  sock: {upstreams: ["unix:/run/s.sock?host=sock.test", "https+unix:/run/t.sock?host=sock.test:8443"]}
  alone: {upstreams: ["unix:/run/alone.sock"]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]policyfile.Listed{
		"tcp.test:80": {Service: "tcp"}, "TCP.test.:9000": {Service: "tcp"}, "tcp.test:81": {},
		"tls.test:443": {Service: "tls", Secure: true}, "sock.test:80": {Service: "sock"},
		"sock.test:8443": {Service: "sock", Secure: true}, "localhost:80": {},
		"[::ffff:10.0.0.9]:443": {Service: "tls", Secure: true},
	} {
		if got, ok := set.Listed(host); ok != (want.Service != "") || ok && got != want {
			t.Errorf("%s: %+v, %v; want %+v", host, got, ok, want)
		}
	}
}
