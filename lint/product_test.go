package lint_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

func TestALongLimitIsRightForWhatStaysOpen(t *testing.T) {
	for layer, want := range map[string]int{
		"perTry: 60s, " + on("3", "hang"):                                      1,
		"perTry: 60s, upgrades: true, " + on("3", "hang"):                      0,
		"perTry: 60s, match: {other: header Upgrade}, " + on("3", "hang"):      0,
		"perTry: '60s (default of nginx)', upgrades: true, " + on("3", "hang"): 1, // nobody has chosen it
	} {
		if got := of("F206", lint.Run(parse(t, call(nobody, layer)), lint.Options{})); len(got) != want {
			t.Errorf("%s: %d findings, want %d", layer, len(got), want)
		}
	}
	for on, want := range map[string]int{"refused": 0, "hang": 1} { // a proxy of TCP, and one of HTTP
		layer := "perTry: 10m, startsOnly: true, repeats: [{on: [" + on + "], tries: 2}]"
		if got := of("F206", lint.Run(parse(t, call(nobody, layer)), lint.Options{})); len(got) != want {
			t.Errorf("what tries again after %s: %d findings, want %d", on, len(got), want)
		}
	}
	const open = "overall: 0s, "
	if got := of("F204", lint.Run(parse(t, call(nobody, open+"upgrades: true")), lint.Options{})); len(got) > 0 {
		t.Errorf("a limit of none that somebody wrote for websockets: %+v", got)
	}
	if got := of("F204", lint.Run(parse(t, call(nobody, open+on("1", "503"))), lint.Options{})); len(got) != 1 {
		t.Errorf("without an upgrade: %+v", got)
	}
}

func TestAFixNamesTheDirectiveOfTheProduct(t *testing.T) {
	for product, want := range map[string]string{"haproxy": "option abortonclose", "nginx": "proxy_ignore_client_abort",
		"resilience4j": "cancellation"} {
		got := of("F209", lint.Run(parse(t, call(nobody, "product: "+product+", cancels: false, "+on("3", "503"))),
			lint.Options{}))
		if len(got) != 1 || !strings.Contains(got[0].Fix, want) {
			t.Errorf("%s: %+v", product, got)
		}
		if product != "haproxy" && strings.Contains(got[0].Fix, "abortonclose") {
			t.Errorf("%s: the fix is HAProxy's: %s", product, got[0].Fix)
		}
	}
	// The list of an SDK of AWS is not its user's.
	for product, want := range map[string]int{"aws-sdk": 0, "envoy": 1} {
		got := of("F302", lint.Run(parse(t, call(nobody, "product: "+product+", "+on("3", "500"))), lint.Options{}))
		if len(got) != want {
			t.Errorf("F302 of %s: %+v", product, got)
		}
	}
}
