package ingress_test

import (
	"slices"
	"testing"
)

// virtualServer is what only the controller of NGINX Inc. has.
const virtualServer = "apiVersion: k8s.nginx.org/v1\nkind: VirtualServer\nmetadata: {name: cafe}\nspec: {host: a.b}\n"

// Its class is nginx too, so its resources say whose an Ingress is, but for one with annotations of the other. They are
// not read, which is said once.
func TestResourcesOfNginxIncSayWhoseTheClassIs(t *testing.T) {
	for notes, want := range map[string]int{"": 0, annotations("use-regex: \"true\""): 1} {
		f := read(t, ingressOf(notes, nginxClass), virtualServer, virtualServer)
		if got := rules(f); !slices.Equal(got, []string{"F702:1"}) || len(f.Calls[0].Layers) != want {
			t.Errorf("%q: %v, %d layers, want %d", notes, got, len(f.Calls[0].Layers), want)
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
