package topology_test

import (
	"fmt"
	"testing"

	"github.com/abate-go/abate/topology"
)

// What an audit wrote of a large company can be read again: a limit for files that people write would drop all of it.
func TestAFormOfThousandsOfCallsIsReadAgain(t *testing.T) {
	var f topology.Form
	for i := range 5000 {
		f.Calls = append(f.Calls, topology.Call{From: "hub", To: fmt.Sprint("service-", i)})
	}
	again, err := topology.Parse("all.yaml", f.YAML())
	if err != nil || len(again.Calls) != 5000 {
		t.Errorf("%d calls, %v", len(again.Calls), err)
	}
}
