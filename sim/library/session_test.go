//go:build !race

package library_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// What scenarios/README.md says of a gate that has to learn its limit.
func TestAGateLearnsNothingFromGatewaysThatDieFirst(t *testing.T) {
	const file, told = "discord-reconnects.yaml", "{shed: {maxConcurrency: 20}}"
	for limit, want := range map[string]bool{told: true, "{}": false} {
		text := strings.Replace(read(t, file), told, limit, 1)
		s, err := scenario.Parse(file, []byte(text))
		if err != nil || limit != told && !strings.Contains(text, "&gate {}") {
			t.Fatal(err, text)
		}
		for _, seed := range seeds(2) {
			r := run(t, s, "gated", seed)
			held := r.Value(&expect.Expectation{Measure: "goodput", Window: expect.After})
			if well := held > 0.99; well != want || !well && held > 0.05 {
				t.Errorf("%s, seed %d: %.1f %% hold a session afterwards", limit, seed, 100*held)
			}
		}
	}
}
