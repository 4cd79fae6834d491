package abateadmin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abateadmin"
)

// The page shows a number wherever there is a budget: 0 is one, and the one that counts in a storm.
func TestABudgetThatIsUsedUpIsWrittenDown(t *testing.T) {
	text, err := json.Marshal(abateadmin.Row{HasBudget: true})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"budget":0`) {
		t.Errorf("%s has no budget", text)
	}
}
