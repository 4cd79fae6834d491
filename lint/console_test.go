package lint_test

import (
	"testing"

	"github.com/abate-go/abate/lint"
)

func TestNobodyNeedsLimitsForWhatMakesLoadForATest(t *testing.T) {
	for caller, want := range map[string]int{"load": 0, "loadgenerator": 0, "load-generator.shop": 0, "locust-worker": 0,
		"k6": 0, "traffic-gen": 0, "loader": 3, "load-balancer": 3, "checkout": 3} {
		form := "calls:\n- from: " + caller + "\n  to: web\n  layers:\n  - {kind: sidecar-out, product: istio, overall: " +
			"none, perTry: none, limits: {requests: unbounded}, repeats: [{on: ['503'], tries: '3 (default of Istio 1.31)'}]}\n"
		all := lint.Run(parse(t, form), lint.Options{})
		if got := len(of("F107", all)) + len(of("F204", all)) + len(of("F505", all)); got != want {
			t.Errorf("calls of %s: %d findings, want %d: %+v", caller, got, want, all)
		}
	}
}

func TestAGatewaysPagesForOperatorsStayOpen(t *testing.T) {
	for callee, want := range map[string]int{"grafana": 0, "dapr-dashboard": 0, "hubble-ui.kube-system": 0, "dashboard": 1,
		"web": 1} {
		form := "calls:\n- from: edge\n  to: " + callee + "\n  layers:\n  - {kind: gateway, overall: none, perTry: none}\n"
		if got := len(of("F204", lint.Run(parse(t, form), lint.Options{}))); got != want {
			t.Errorf("a page of %s: %d findings, want %d", callee, got, want)
		}
	}
}
