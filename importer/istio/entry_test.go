package istio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/topology"
)

// A sidecar repeats calls of a host outside of which it sees requests: by its VirtualService, or by what nobody wrote.
// Of TLS and TCP it sees none.
func TestWhatASidecarRepeatsForAServiceEntryDependsOnItsProtocol(t *testing.T) {
	entry := func(ports string) string {
		return "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: pay, namespace: shop}\n" +
			"spec:\n  hosts: [api.pay.example.com]\n  location: MESH_EXTERNAL\n  resolution: DNS\n  ports: " + ports + "\n"
	}
	service := strings.NewReplacer("orders]", "api.pay.example.com]", "host: orders", "host: api.pay.example.com").
		Replace(orders("    retries: {attempts: 4, perTryTimeout: 1s}\n"))
	const http, tls = "{number: 80, name: http, protocol: HTTP}", "{number: 443, name: tls, protocol: TLS}"
	for _, c := range []struct {
		texts []string
		want  string // layers of the call, their tries, and what the host speaks
	}{
		{[]string{entry("[" + http + "]")}, "1 layer, 3 tries, http"},
		{[]string{entry("[" + http + ", " + tls + "]")}, "1 layer, 3 tries, http"}, // which port is called is not known
		{[]string{entry("[" + tls + "]")}, "0 layer, 0 tries, http"},
		{[]string{entry("[{number: 9000, name: x, protocol: TCP}]")}, "0 layer, 0 tries, http"},
		{[]string{entry("[{number: 80, name: x, protocol: GRPC}]")}, "1 layer, 3 tries, grpc"},
		{[]string{entry("[" + http + "]"), service}, "1 layer, 5 tries, http"},
	} {
		f := read(t, "", c.texts...)
		f.Calls = append(f.Calls, topology.Call{From: "checkout.shop", To: "http://api.pay.example.com/v1"})
		joined, _ := f.Join()
		for i := range joined.Calls {
			call := &joined.Calls[i]
			if call.From == "" {
				t.Errorf("%q: a call that nobody makes: %s", c.texts, joined.YAML())
				continue
			}
			tries := 0
			for _, l := range call.Layers {
				for _, r := range l.Repeats {
					tries = max(tries, r.Tries.Or(0))
				}
			}
			speaks := ""
			for _, s := range joined.Services {
				if s.Name == call.To {
					speaks = s.Speaks.V
				}
			}
			if got := fmt.Sprintf("%d layer, %d tries, %s", len(call.Layers), tries, speaks); got != c.want {
				t.Errorf("%q: %s, want %s", c.texts, got, c.want)
			}
		}
	}
}
