package basics

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/policyfile"
)

// The commands and the policy of the page are taken at their word.
func TestTheStartupPageWorksAsItStands(t *testing.T) {
	page, err := os.ReadFile("../../../docs/startup.md")
	if err != nil {
		t.Fatal(err)
	}
	policies := regexp.MustCompile("(?s)```yaml\n(services:.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(policies) != 1 {
		t.Fatalf("%d policies", len(policies))
	}
	if _, err := policyfile.Parse("docs/startup.md", []byte(policies[0][1])); err != nil {
		t.Error(err)
	}
	policy := clitest.Put(t, "policy.yaml", policies[0][1])
	var commands [][]string
	for _, m := range regexp.MustCompile(`(?m)^abate wait (.*)$`).FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, strings.Fields(m[1]))
	}
	for _, m := range regexp.MustCompile(`(?m)\[(?:"/abate", )?"wait", (.*)\]$`).FindAllStringSubmatch(string(page), -1) {
		var words []string
		if err := json.Unmarshal([]byte("["+m[1]+"]"), &words); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		commands = append(commands, words)
	}
	if len(commands) != 7 {
		t.Errorf("%d commands", len(commands))
	}
	program := clitest.Put(t, "server", "")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, words := range commands {
		for i, word := range words {
			switch word {
			case "/server":
				words[i] = program
			case "policy.yaml":
				words[i] = policy
			case "$(DATABASE_URL)":
				words[i] = "postgres://app:secret@db/shop"
			}
		}
		if w, help, problems := everything.parseWait(words); help || len(problems) > 0 || len(w.targets) == 0 {
			t.Errorf("%q: %v", words, problems)
		}
	}
	for scheme := range everything.probers() {
		if !strings.Contains(string(page), "`"+scheme+"://") {
			t.Errorf("the page lacks %s", scheme)
		}
	}
}
