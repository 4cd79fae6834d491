package topology_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/topology"
)

func TestWhatAServiceSpeaksIsWhatFilesSayOfItOrHTTP(t *testing.T) {
	call := func(layer string) string {
		return "calls: [{from: a, to: b, layers: [{kind: sidecar-out, " + layer + "}]}]\n"
	}
	istio := func(on string) string { return call("product: istio, repeats: [{on: [" + on + "], tries: 3}]") }
	service := func(more string) string { return "services: [{name: b, " + more + "}]\n" }
	for form, want := range map[string]string{
		call("repeats: []"):                                                       "http (assumed: no file says that b ",
		istio(`"503", refused, UNAVAILABLE, CANCELLED`):                           "http (assumed",
		istio(`refused, reset-unsent, UNAVAILABLE`):                               "http (assumed",
		istio(`UNAVAILABLE, CANCELLED`):                                           "grpc (inherited",
		istio(`refused, DEADLINE_EXCEEDED`):                                       "grpc (inherited",
		istio(`"500", INTERNAL, UNAVAILABLE`):                                     "http (assumed",
		istio(`UNAVAILABLE`) + service("speaks: http"):                            "http (t.yaml",
		call(`product: linkerd, repeats: [{on: ["503", UNAVAILABLE], tries: 3}]`): "grpc (inherited",
		call("product: grpc"):                                                     "grpc (inherited",
		call("product: envoy, match: {other: \"header x, gRPC\"}"):                "grpc (inherited",
		call("product: grpc") + service("speaks: http"):                           "grpc (inherited",
		call("product: envoy, match: {other: gRPC}") + service("speaks: http"):    "grpc (inherited",
		call("speaks: grpc"):                                                      "grpc (t.yaml",
		call("speaks: http") + service("speaks: grpc"):                            "grpc (t.yaml",
		call("speaks: grpc") + service("speaks: http"):                            "grpc (t.yaml",
		call("speaks: other"):                                                     "other (t.yaml",
		call("kind: client") + service("database: true"):                          "other (assumed: b is a database)",
		istio("UNAVAILABLE") + service(`speaks: "http (assumed: x)"`):             "grpc (inherited",
		"protos: true\n" + call("kind: client") +
			service(`speaks: "http (assumed: x)"`): "",
		"protos: true\n" + call("kind: client"):                           "",
		"protos: true\n" + call("kind: client") + service("speaks: http"): "http (t.yaml",
	} {
		form = strings.Replace(form, "{kind: sidecar-out, kind: client}", "{kind: client}", 1)
		f, err := topology.Parse("t.yaml", []byte(form))
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		joined, _ := f.Join()
		for _, s := range joined.Services {
			if got := s.Speaks.String(); s.Name == "b" && (!strings.HasPrefix(got, want) || (got == "") != (want == "")) {
				t.Errorf("%s: %q, want %q", form, got, want)
			}
		}
	}
}

func TestAServiceWithAPortForGRPCSpeaksIt(t *testing.T) {
	say := func(what string) topology.Service {
		return topology.Service{Name: "a", Speaks: topology.Write(what, topology.Position{})}
	}
	assumed := topology.Service{Name: "a", Speaks: topology.Assume("http", "an earlier audit did")}
	for _, services := range [][]topology.Service{{assumed, say("other")}, {say("other"), assumed}} {
		joined, _ := topology.Form{Services: services}.Join()
		if s := joined.Services[0]; s.Speaks.V != "other" {
			t.Errorf("%+v speaks %v", services, s.Speaks)
		}
	}
	for _, services := range [][]topology.Service{{say("http"), say("grpc")}, {say("grpc"), say("http")},
		{{Name: "a"}, say("other"), say("grpc"), {Name: "a"}}} {
		joined, _ := topology.Form{Services: services}.Join()
		if s := joined.Services[0]; s.Speaks.V != "grpc" || !s.Codes() {
			t.Errorf("%+v speaks %v", services, s.Speaks)
		}
	}
}
