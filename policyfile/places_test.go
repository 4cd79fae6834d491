package policyfile_test

import (
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
)

// What answers and what calls is one program, if both are in one file: it must not wait with its last slots.
func TestTheGuardsOfAFileKnowWhetherItsGatesHaveSlotsLeft(t *testing.T) {
	const gate = "{shed: {concurrency: fixed, maxConcurrency: 1}}"
	path := write(t, "protect: {front: "+gate+", back: "+gate+"}\nservices: {bank: {}}\n")
	set := load(t, path)
	scarce := func(want bool) {
		t.Helper()
		for _, name := range []string{"bank", "stranger", ""} {
			if got := set.Guard(name).Describe().Places.Scarce(); got != want {
				t.Errorf("the guard %q is told %v, want %v", name, got, want)
			}
		}
	}
	for _, name := range []string{"front", "back"} {
		scarce(false)
		g, _ := set.Gate(name)
		var a inbound.Arrival
		if step := g.Arrive(&a, 0, inbound.Request{Deadline: core.NoDeadline}); step.Action != core.Handle {
			t.Fatal(step)
		}
		scarce(true)
		a.Done(0, abate.Success)
	}
	scarce(false)
	replace(t, path, "services: {bank: {maxRetries: 1}}\n")
	if err := set.Reload(); err != nil {
		t.Fatal(err)
	}
	scarce(false)
}

// scarcity is what a hook knows.
type scarcity bool

func (s scarcity) Scarce() bool { return bool(s) }

func TestAHookSaysWhatCallersHold(t *testing.T) {
	set, err := policyfile.Load(write(t, "protect: {front: {}}\nservices: {bank: {}}\n"),
		func(_ string, p *abate.Policy) { p.Places = scarcity(true) })
	if err != nil {
		t.Fatal(err)
	}
	if !set.Guard("bank").Describe().Places.Scarce() {
		t.Error("the file's gates were asked instead")
	}
}
