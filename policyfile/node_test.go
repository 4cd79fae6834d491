package policyfile_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/policyfile"
)

// inner is the value of the key policy in another file.
func inner(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var outer struct{ Policy yaml.Node }
	if err := yaml.Unmarshal([]byte(text), &outer); err != nil {
		t.Fatal(err)
	}
	return &outer.Policy
}

func TestAPolicyInsideAnotherFileIsRead(t *testing.T) {
	const text = "defaults: {maxRetries: 4}\nservices:\n  pay: {maxRetries: 1}\ngatewayRetries: true\n"
	got, err := policyfile.ParseNode("storm.yaml",
		inner(t, "title: storm\npolicy:\n  "+strings.ReplaceAll(text, "\n", "\n  ")))
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, text)
	if got.Name != "storm.yaml" || string(got.Format()) != string(want.Format()) {
		t.Errorf("%s:\n%s\nwant:\n%s", got.Name, got.Format(), want.Format())
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	if got, err := policyfile.ParseNode("p.yaml", &document); err != nil || string(got.Format()) != string(want.Format()) {
		t.Errorf("as a document: %v", err)
	}
}

func TestMistakesInsideAnotherFileStandThere(t *testing.T) {
	const least = `it needs at least one of defaults, services, gatewayRetries and protect; for example "defaults: ` +
		`{maxRetries: 3}"`
	for _, c := range []struct{ text, want string }{
		{"policy:\n  defaults: {maxRetrys: 3}\n  services: {pay: {timeout: 1s, attemptTimeout: 2s}}",
			`s.yaml:2:14: defaults: unknown key "maxRetrys"; did you mean maxRetries?` + "\n" +
				`s.yaml:3:49: service "pay", attemptTimeout: 2s is above timeout 1s; an attempt cannot last longer than its ` +
				`call: lower it or raise timeout`},
		{"policy:\n  defaults: {initialDelay: 30s}", "s.yaml:2:28: defaults.initialDelay: 30s is above maxDelay 10s; lower " +
			"it or raise maxDelay"},
		{"policy: [1]", "s.yaml:1:9: a list is not a mapping; " + least},
		{"x: 1\npolicy: {}", "s.yaml:2:9: the file has no policy; " + least},
		{"x: 1\npolicy: {kind: ConfigMap}", `s.yaml:2:10: unknown key "kind"; allowed: defaults, services, gatewayRetries, ` +
			`ambiguousPaths, protect, redis, outside`},
		{"x: 1", "s.yaml: there is no policy; " + least},
	} {
		f, err := policyfile.ParseNode("s.yaml", inner(t, c.text))
		if f != nil || err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot:\n%v\nwant:\n%s", c.text, err, c.want)
		}
	}
	if f, err := policyfile.ParseNode("s.yaml", nil); f != nil || err == nil {
		t.Error("nil is a policy")
	}
}

func TestAServiceHasItsPolicyOrTheDefaults(t *testing.T) {
	f := parse(t, "defaults: {maxRetries: 4, retryOn: [reset]}\nservices: {pay: {maxRetries: 1}}")
	pay, listed := f.Policy("pay")
	other, otherListed := f.Policy("mail")
	if !listed || otherListed || pay.MaxRetries != 1 || other.MaxRetries != 4 {
		t.Errorf("pay %v %d, mail %v %d", listed, pay.MaxRetries, otherListed, other.MaxRetries)
	}
	for _, p := range []policyfile.Policy{pay, other} {
		p.RetryOn[0] = "timeout"
	}
	if f.Services[0].Policy.RetryOn[0] != "reset" || f.Defaults.RetryOn[0] != "reset" {
		t.Error("the file's own list was changed")
	}
}
