package policyfile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/abate-go/abate/policyfile"
)

// The policy file that the page about policy files shows is one that loads.
func TestThePolicyFileOfThePageLoads(t *testing.T) {
	page, err := os.ReadFile("../docs/policy-file.md")
	if err != nil {
		t.Fatal(err)
	}
	_, yaml, found := strings.Cut(string(page), "```yaml\ndefaults:")
	yaml = "defaults:" + yaml
	yaml, _, closed := strings.Cut(yaml, "```")
	if !found || !closed {
		t.Fatal("the page shows no policy file")
	}
	f, err := policyfile.Parse("policy-file.md", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Services) != 3 || f.Services[0].Policy.MaxRetries != 2 || f.Services[0].Policy.JitterFactor != 0.5 {
		t.Errorf("%+v", f)
	}
}
