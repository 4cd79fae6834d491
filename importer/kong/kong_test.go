package kong_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

const config = `_format_version: "3.0"
services:
  - name: orders
    url: http://orders:8080/v1
    routes: [{paths: [/orders], methods: [GET, POST]}]
  - name: stock
    host: stock-group
    retries: 1
    connect_timeout: 500
    read_timeout: 2000
  - name: hidden
    host: ${{ env "DECK_HOST" }}
upstreams:
  - name: stock-group
    targets: [{target: "stock-1:80"}, {target: "stock-2:80"}]
    healthchecks: {passive: {unhealthy: {http_failures: 7, timeouts: 3, tcp_failures: 0}}}
`

func read(t *testing.T, text string) topology.Form {
	t.Helper()
	docs, _ := source.YAML("gw/kong.yml", []byte(text))
	if len(docs) != 1 || !kong.Recognise(docs[0]) {
		t.Fatal("it is not recognised")
	}
	return kong.Read(docs, source.Assume{Versions: map[string]string{"kong": "3.7"}})
}

func TestKongTriesSixTimesByDefault(t *testing.T) {
	f := read(t, config)
	if len(f.Calls) != 2 || len(f.Remarks) != 1 || f.Remarks[0].Rule != "F702" {
		t.Fatalf("%s", f.YAML())
	}
	orders, stock := f.Calls[0].Layers[0], f.Calls[1].Layers[0]
	for _, c := range []struct{ got, want string }{
		{f.Calls[0].From + " " + f.Calls[0].To + " " + f.Calls[1].To, "kong orders stock-group"},
		{orders.Repeats[0].Tries.String(), "6 (default of Kong 3.7; gw/kong.yml:3:5)"},
		{orders.Match.Path, "/orders*"},
		{stock.Repeats[0].Tries.String(), "2 (gw/kong.yml:8:14)"},
		{stock.PerTry.String(), "2s (gw/kong.yml:10:19)"},
		{stock.Connect.String(), "500ms (gw/kong.yml:9:22)"},
		{stock.Ejection.Consecutive.String(), "3 (gw/kong.yml:16:70)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for _, c := range []struct {
		o    topology.Outcome
		m    topology.Methods
		want int
	}{{topology.Refused, topology.Unsafe, 6}, {topology.Hang, topology.Safe, 6}, {topology.Hang, topology.Unsafe, 1},
		{topology.ResetSent, topology.Unsafe, 1}, {topology.S503, topology.Safe, 1}} {
		if got := orders.Tries(c.o, c.m).N; got != c.want {
			t.Errorf("%v %v: %d tries, want %d", c.o, c.m, got, c.want)
		}
	}
	if longest, _ := orders.Longest(topology.Hang, topology.Safe); longest != 6*time.Minute {
		t.Errorf("a hang lasts %v", longest)
	}
}

func FuzzKongIsReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(config))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		for _, d := range docs {
			kong.Recognise(d)
		}
		for _, c := range kong.Read(docs, source.Assume{}).Calls {
			if c.To == "" {
				t.Error("a call to nobody")
			}
		}
	})
}
