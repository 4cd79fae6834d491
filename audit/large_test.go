package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
)

// Twenty-two services that all call those behind them, each call tried three times: the last one gets 3·4^20 attempts,
// which is much, and not "any number".
func TestALargeBoundIsStillANumber(t *testing.T) {
	var b strings.Builder
	b.WriteString("calls:\n")
	for i := range 22 {
		for j := i + 1; j < 22; j++ {
			fmt.Fprintf(&b, "- {from: s%d, to: s%d, layers: [{kind: client, repeats: [{on: [\"503\"], tries: 3}]}]}\n", i, j)
		}
	}
	r := audit.Run([]importer.File{{Name: "calls.yaml", Data: []byte(b.String())}}, audit.Options{})
	var text strings.Builder
	if err := audit.Text(&text, r, audit.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if line, _, _ := strings.Cut(text.String(), "\n"); !strings.Contains(line, "become 3.3e+12 attempts at s21") {
		t.Error(line)
	}
}
