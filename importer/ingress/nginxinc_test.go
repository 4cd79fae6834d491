package ingress_test

import (
	"testing"

	"github.com/abate-go/abate/importer/source"
)

// Its class is nginx too, so its resources say whose an Ingress is, but for one with annotations of the other.
func TestResourcesOfNginxIncSayWhoseTheClassIs(t *testing.T) {
	for notes, want := range map[string]int{"": 0, annotations("use-regex: \"true\""): 1} {
		f := readAs(t, source.Assume{NginxInc: true}, ingressOf(notes, nginxClass))
		if got := len(f.Calls[0].Layers); got != want {
			t.Errorf("%q: %d layers, want %d", notes, got, want)
		}
	}
}

// ingress-nginx passes such connections on without looking into them, so nothing of a request is tried again.
func TestAConnectionOfTLSThatIsPassedOnIsNotTriedAgain(t *testing.T) {
	for passed, want := range map[string]int{"true": 0, "false": 1} {
		f := read(t, ingressOf(annotations("ssl-passthrough: \""+passed+"\""), nginxClass))
		if len(f.Calls) != 1 || len(f.Calls[0].Layers) != want {
			t.Errorf("ssl-passthrough %s: %+v", passed, f.Calls)
		}
	}
}
