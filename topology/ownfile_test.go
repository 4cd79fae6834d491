package topology_test

import (
	"testing"

	"github.com/abate-go/abate/topology"
)

// A file of a gateway that is called after the service behind it is no service that calls itself.
func TestAGatewayThatIsCalledAfterItsFileCallsNotItself(t *testing.T) {
	at := func(file string) topology.Position { return topology.Position{File: file, Line: 1} }
	route := []topology.Layer{{Kind: topology.Gateway, Product: "kong"}}
	f := topology.Form{
		Services: []topology.Service{{Name: "orders", At: at("orders.yml"), Cancels: topology.Write(true,
			at("orders.yml"))}},
		Calls: []topology.Call{{From: "orders", To: "orders", At: at("orders.yml"), Layers: route},
			{From: "orders", To: "stock", At: at("orders.yml"), Layers: route},
			{From: "orders", To: "db", At: at("compose.yml")}},
	}
	joined, _ := f.Join()
	var got string
	for _, c := range joined.Calls {
		got += c.From + ">" + c.To + " "
	}
	if got != "kong>orders kong>stock orders>db " {
		t.Errorf("%s", got)
	}
	for _, s := range joined.Services {
		if s.Name == "orders" && !s.Cancels.IsZero() {
			t.Errorf("what the gateway does is said of %s", s.Name)
		}
	}
	if f.Calls[0].From != "orders" || f.Services[0].Name != "orders" {
		t.Error("the form given was changed")
	}
}

// A proxy that has a database, of which its environment tells, passes each request on to one service all the same.
func TestAProxyMayHaveADatabase(t *testing.T) {
	guess := topology.Assume(1.0, "the address stands in the variable DB_URL")
	for said, want := range map[bool]bool{false: true, true: false} {
		db := topology.Call{From: "edge", To: "db"}
		if !said {
			db.PerRequest = guess
		}
		joined, _ := topology.Form{Calls: []topology.Call{db, {From: "edge", To: "a",
			Layers: []topology.Layer{{Kind: topology.Gateway, Product: "kong"}}}}}.Join()
		for _, s := range joined.Services {
			if s.Name == "edge" && s.Proxy != want {
				t.Errorf("said %v: proxy %v", said, s.Proxy)
			}
		}
	}
}
