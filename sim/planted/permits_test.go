package planted_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// leaks are permits that are lost, or given back twice, in one place each. The programs of permits_fuzz_test.go and
// places_fuzz_test.go have to find every one of them.
var leaks = []bug{
	// a permit arrives as its caller leaves
	{"core/call.go", "if c.place.arrive(c.s); cause == nil {", "if cause == nil {"},
	{"core/attempt.go", "if !ok || wait > 0 {", "if !ok {"}, // nothing is given back before the wait for a turn
	{"core/call.go", "	c.place.leave(c.s)\n", "	if c.attempts > 0 {\n		c.place.leave(c.s)\n	}\n"},
	// a call ends in its back-off, or in the queue after it
	{"core/permit.go", "	case away:\n		s.bulkhead.Back()\n", "	case away:\n"},
	{"core/permit.go", "	if *p == away {\n		s.bulkhead.Back()\n", "	if *p == away {\n"},
	{"core/answer.go", "	defer a.kept.release()\n", "	if a.judged {\n		defer a.kept.release()\n	}\n"},
	{"core/answer.go", "askedAnswer|askedPermit) != 0 {\n			return a\n", "askedAnswer) != 0 {\n			return a\n"},
	{"core/call.go", "		c.token = false\n		c.returnToken()\n", "		c.token = false\n"},
	{"core/record.go", "		c.s.recordBreaker(now, a, breaker.Neutral)\n", ""},
	{"core/call.go", "		c.dropCopies(now)             // also one that was let pass and is not sent\n", ""},
	{"core/attempt.go", "			s.recordThrottle(now, now, a, throttle.Neutral)\n			return ErrCircuitOpen\n",
		"			return ErrCircuitOpen\n"},
	{"core/attempt.go", "	if reason != nil {\n		s.giveBack(now, a)\n", "	if reason != nil {\n"},
	{"core/attempt.go", "		a.asked &^= askedThrottle\n", ""},
	{"policy/bulkhead/bulkhead.go", "	b.take(w)\n	b.word.Add(^uint64(oneWaiting - 1))\n", "	b.take(w)\n"},
	{"policy/breaker/breaker.go", "		if !drawn {\n			b.takeBack(permit)\n",
		"		if !drawn && permit.gen == 0 {\n			b.takeBack(permit)\n"},
	{"core/call.go", "		if !dropped {\n			c.AnswerEnded", "		if dropped && c.s == nil {\n			c.AnswerEnded"},
	{"core/call.go", "	defer c.finish(now, reason, err) // none is in the air by then\n	dropped := false\n",
		"	dropped := false\n	defer func() {\n		if dropped {\n			c.finish(now, reason, err)\n		}\n	}()\n"},
	{"core/repeat.go", "s.breaker.ClosedOff(now) && !mayHold(c) {\n		return ErrCircuitOpen\n",
		"s.breaker.Rejecting(now) && !mayHold(c) {\n		return nil\n"},
	{"core/repeat.go", "		c.returnToken()\n		return ErrBudgetExhausted\n", "		return ErrBudgetExhausted\n"},
	{"core/budgets.go", "	if _, ok := s.shared.Repeat(now); ok {", "	if _, ok := s.shared.Repeat(now); ok || true {"},
	{"core/calltree.go", "		c.tree.giveBack(handed - used)\n", ""},

	{"core/call.go", "			c.place.arrive(c.s) // Abort gives it back\n", ""},
	{"core/record.go", "			began = a.start\n", "			_ = a.start\n"},
	{"core/call.go", "		defer c.AnswerEnded(now, nil) // which nobody will read\n", ""},
	{"core/answer.go", "		if !told {\n			c.AnswerEnded(now, nil)\n		}\n", "		_ = told\n"},
	{"core/attempt.go", "	c.reserved = false\n", ""},
	// others were quicker
	{"core/attempt.go", "		c.returnToken()\n		reason = ErrBudgetExhausted\n", "		reason = ErrBudgetExhausted\n"},
	{"core/budgets.go", "		s.budget.Return(now, c)\n", "		_ = c\n"},
	// of a repeat that was not paid
	{"core/budgets.go", "		s.budget.Undo(now, drawn)\n", "		s.budget.Undo(now, drawn)\n		s.budget.Undo(now, drawn)\n"},
	{"core/calltree.go", "		c.tree.take(used-handed, false)\n", "		_ = used\n"},
	{"policy/breaker/answer.go", "		b.report(now, permit, r)\n",
		"		if r == Failure {\n			b.report(now, permit, r)\n		}\n"},
	{"policy/breaker/breaker.go", "		if !notified {\n", "		if notified && permit == (Permit{}) {\n"},
	{"policy/bulkhead/bulkhead.go", "	b.mu.Unlock()\n	b.admit()\n", "	b.mu.Unlock()\n"},

	{"inbound/arrival.go", "		a.s.shedder.Release(now, permit, shed.Ignored)\n		return a.refuse(now, core.ErrDeadline, " +
		"shed.Expired)\n", "		return a.refuse(now, core.ErrDeadline, shed.Expired)\n"},
	{"inbound/arrival.go", "if permit, reason := w.Outcome(); !left && reason == shed.None {",
		"if permit, reason := w.Outcome(); left && reason == shed.None {"},
	{"inbound/arrival.go", "		a.s.shedder.Release(now, a.permit, a.result(now, class))\n",
		"		if class != core.Ignored {\n			a.s.shedder.Release(now, a.permit, a.result(now, class))\n		}\n"},
	{"inbound/arrival.go", "	a.Resume(now)\n", ""}, // a slot that is lent to the end
	{"inbound/lend.go", "	a.lent, a.since = true, now\n", "	a.lent, a.since = a.held, now\n	a.held = false\n"},
	{"policy/shed/lend.go", "	p.kind &^= lent\n", ""},
	{"policy/shed/lend.go", "			s.count(p.caller, 1)\n", ""},
	{"policy/shed/shedder.go", "	s.count(p.caller, -1)\n", ""},
	{"policy/shed/wait.go", "	w.permit = s.permit(now, s.admissions, w.permit.caller)\n",
		"	w.permit = s.permit(now, s.admissions, 0)\n"},

	{"inbound/arrival.go", "		if !told && a.held {\n", "		if !told && a.limited && !a.held {\n"},
	{"policy/shed/wait.go", "	s.count(caller, 1)\n	w.rank", "	w.rank"},
	{"policy/shed/wait.go", "		s.giveUp(now, s.queue.lists[least].newest, least.below(k), woken)\n",
		"		s.queue.remove(s.queue.lists[least].newest)\n"},
	{"policy/shed/settings.go", "	s.serve(now, &woken)\n	s.unlock(now, &woken)\n", "	s.unlock(now, &woken)\n"},
}

// soon is how long the programs may take to find a leak, by their own processor time.
const soon = 10 * time.Second

// A line that was changed takes its leak with it. This is quick, and the test below is not.
func TestEachLeakHasOneLineToBePlantedIn(t *testing.T) {
	for i := range leaks {
		overlay(t, t.TempDir(), &leaks[i])
	}
}

// The whole list costs some minutes, most of them to build, so it is for make leaks; one is always planted.
func TestAPlantedPermitLeakIsFoundInTenSeconds(t *testing.T) {
	if testing.Short() {
		return
	}
	chosen := leaks
	if os.Getenv("ABATE_LEAKS") == "" {
		chosen = leaks[:1]
	}
	if took, found := foundIn(t, nil); found {
		t.Fatalf("a leak was found in %v where none is planted", took)
	}
	for _, b := range chosen {
		t.Run(fmt.Sprintf("%s: %q for %q", b.file, b.wrong, b.right), func(t *testing.T) {
			if took, found := foundIn(t, &b); !found || took > soon {
				t.Errorf("found %t, after %v", found, took)
			} else {
				t.Log(took.Round(time.Millisecond))
			}
		})
	}
}

// foundIn runs the random programs of package abate's tests, with a bug if one is given.
func foundIn(t *testing.T, b *bug) (took time.Duration, found bool) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "permits.test")
	args := []string{"test", "-c", "-o", program}
	if b != nil {
		args = append(args, "-overlay", overlay(t, dir, b))
	}
	build := exec.Command("go", append(args, ".")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: go test -c: %v\n%s", b, err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, program, "-test.run", "^Test(Permits|Places)AddUpAfterEveryEventOfAnyProgram$")
	run.Dir = root
	out, err := run.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "AddUpAfterEveryEventOfAnyProgram") {
		t.Fatalf("%v: %v\n%s", b, err, out)
	}
	return run.ProcessState.UserTime() + run.ProcessState.SystemTime(), err != nil
}
