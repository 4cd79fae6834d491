package scenario_test

import (
	"os"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/scenario"
)

// The scenario that the page about the simulator shows is one that can be run.
func TestTheScenarioOfThePageIsGood(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, yaml, found := strings.Cut(string(page), "```yaml\nduration:")
	yaml, _, closed := strings.Cut(yaml, "```")
	if !found || !closed {
		t.Fatal("the page shows no scenario")
	}
	s, err := scenario.Parse("../../scenario.yaml", []byte("duration:"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Variants) != 2 || len(s.Expect) != 3 {
		t.Errorf("%+v", s)
	}
}
