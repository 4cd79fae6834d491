package scenario_test

import (
	"os"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/scenario"
)

// The scenario that the README shows is one that can be played.
func TestTheScenarioOfTheReadmeIsGood(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, yaml, found := strings.Cut(string(readme), "```yaml\nduration:")
	yaml, _, closed := strings.Cut(yaml, "```")
	if !found || !closed {
		t.Fatal("the README shows no scenario")
	}
	s, err := scenario.Parse("../../README.md", []byte("duration:"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Variants) != 2 || len(s.Expect) != 3 {
		t.Errorf("%+v", s)
	}
}
