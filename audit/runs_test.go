package audit_test

import (
	"reflect"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
)

// An outage of a large system, of which each run takes long, is played less often where that makes no difference.
func TestLongRunsThatAllRecoverAreFive(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	files := []importer.File{{Name: "calls.yaml", Data: []byte(`calls:
- {from: a, to: b, layers: [{kind: client, perTry: 500ms, repeats: [{on: ["503"], tries: 2}]}]}
`)}}
	played := func(o audit.SimulateOptions) audit.Verdict {
		t.Helper()
		r := audit.Run(files, audit.Options{})
		r.Simulate(t.Context(), o)
		if len(r.Verdicts) != 1 || r.Verdicts[0].Failed != "" || r.Verdicts[0].Before.Collapse.Share > 0 {
			t.Fatalf("%+v", r.Verdicts)
		}
		return r.Verdicts[0]
	}
	for _, c := range []struct {
		o    audit.SimulateOptions
		want int
	}{{audit.SimulateOptions{}, 10}, {audit.SimulateOptions{}.Long(1), 5}, {audit.SimulateOptions{Runs: 7}.Long(1), 7},
		{audit.SimulateOptions{Runs: 1}, 1}} {
		one := played(c.o)
		if one.Before.Runs != c.want {
			t.Errorf("%+v: %d runs, want %d", c.o, one.Before.Runs, c.want)
		}
		if again := played(c.o); !reflect.DeepEqual(one, again) {
			t.Errorf("%+v: at first %+v, then %+v", c.o, one, again)
		}
	}
}
