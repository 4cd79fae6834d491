package policyfile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policyfile"
)

func TestAConsumerFollowsReloadsOfItsRedelivery(t *testing.T) {
	path := write(t, "defaults: {kafka: {tiers: [1s]}}\nservices: {pay: {kafka: {tiers: [2s]}}}")
	set := load(t, path)
	pay, other := set.Redelivery("pay"), set.Redelivery("other")
	first := pay()
	if !slices.Equal(first.Tiers, []time.Duration{2 * time.Second}) || first.DLTSuffix != "-dlq" {
		t.Errorf("pay has %+v", first)
	}
	if pay() != first {
		t.Error("it is another pointer although nothing has changed")
	}
	if c := other(); !slices.Equal(c.Tiers, []time.Duration{time.Second}) {
		t.Errorf("a service that the file does not list has %v, want the defaults", c.Tiers)
	}
	replace(t, path, "services: {pay: {kafka: {tiers: [3s]}}}")
	reload(t, set)
	if c := pay(); !slices.Equal(c.Tiers, []time.Duration{3 * time.Second}) {
		t.Errorf("after a reload pay has %v", c.Tiers)
	}
	if c := other(); c.Enabled() {
		t.Errorf("after a reload the others have %v", c.Tiers)
	}
}

func TestAGuardsPolicyIsWrittenWithWhatTheFileHasBesideIt(t *testing.T) {
	set := load(t, write(t, `services: {pay: {upstreams: ["http://a:1"], kafka: {tiers: [2s]}}}`))
	p := *set.Guard("pay").Describe()
	p.MaxRetries = 7
	text := string(set.FormatPolicy("pay", &p))
	for _, want := range []string{"maxRetries: 7", `upstreams: ["http://a:1"]`, "tiers: [2s]"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if text := string(policyfile.Format("pay", &p)); strings.Contains(text, "http://a:1") {
		t.Errorf("a guard by itself has upstreams:\n%s", text)
	}
}
