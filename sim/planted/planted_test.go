// Package planted_test holds the promise that the simulator runs the policies of production: a bug of one line, planted
// in any of them, changes what is simulated.
package planted_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bug is one line of the repository, and a wrong one.
type bug struct{ file, right, wrong string }

var bugs = []bug{
	{"policy/retry/policy.go", "case retries >= c.MaxRetries-max(q.Elsewhere, 0):",
		"case retries > c.MaxRetries-max(q.Elsewhere, 0):"},
	{"policy/retry/policy.go", "case retries >= c.MaxRetries-max(q.Elsewhere, 0):", "case retries >= c.MaxRetries:"},
	{"policy/retry/jitter.go", "return span{floor(interval), interval}", "return span{interval / 2, interval}"},
	{"policy/retry/policy.go", "delay = max(delay, q.RetryAfter+extra.draw(q.Rand))",
		"delay = max(delay, extra.draw(q.Rand))"},
	{"policy/budget/bank.go", "if k.deposited.Load()-spent < cost {", "if k.deposited.Load()-spent < cost-one {"},
	{"policy/budget/bank.go", "least := k.marks[0].deposited - s.floor", "least := k.marks[slots-1].deposited - s.floor"},
	{"policy/budget/bucket.go", "k.tokens -= cost", "k.tokens -= cost / 2"},
	{"policy/breaker/breaker.go", "if b.probes.successes >= c.SuccessThreshold {",
		"if b.probes.successes > c.SuccessThreshold {"},
	{"policy/breaker/phase.go", "return unit(draw) < p.cfg.RampUpFrom+(1-p.cfg.RampUpFrom)*done",
		"return unit(draw) < p.cfg.RampUpFrom+done"},
	{"policy/breaker/hanging.go", "ticks >= overdueTicks {", "ticks > 2*overdueTicks {"},
	{"policy/hedge/policy.go", "if samples >= MinSamples {", "if samples > 5*MinSamples {"},
	{"policy/bulkhead/bulkhead.go", "now-o.since > o.Until-now", "now-o.since < o.Until-now"},
	{"policy/bulkhead/bulkhead.go", "waiting(word) >= int64(b.maxQueue)) ||", "waiting(word) > int64(b.maxQueue)) ||"},
	{"core/call.go", "case s.breaker.Rejecting(now) && !hopeful(c, now) && (scarce(c) || !mayHold(c)):", "case now < 0:"},
	{"core/call.go", "!s.withdraw(now, budgetCost(o.Class))", "!s.withdraw(now, budgetCost(Failure))"},
	{"core/calltree.go", "c.below = int16(min(int(c.below)+used, MaxAllowance))", "c.below = int16(used)"},
	{"core/calltree.go", "o.NoRetry, c.told = true, true", "c.told = true"},
	{"core/calltree.go", "c.tree.final.Store(true)", "c.tree.final.Store(false)"},
	{"core/calltree.go", "left-- // for when", "// for when"},
	{"core/attempt.go", "if c.attempts == 0 && c.repeat == firstTime {", "if c.repeat == firstTime {"},
	{"core/attempt.go", "return min(c.deadline, clock.Later(now, t))", "return clock.Later(now, t)"},
	{"core/attempt.go", "if wait > 0 {", "if wait < 0 {"},
	{"policy/comeback/line.go", "add(at, each), true", "add(at, 0*each), true"},
	{"inbound/arrival.go", "case class == core.Overload, class == core.Failure && now-a.away >= a.deadline:",
		"case class == core.Failure && now >= a.deadline:"},
	{"inbound/arrival.go", "r := shed.Request{Priority: a.request.Priority, Attempt: a.request.Attempt, Caller: " +
		"a.request.Caller}", "r := shed.Request{Priority: a.request.Priority, Caller: a.request.Caller}"},
	{"inbound/arrival.go", "a.s.shedder.Release(now, a.permit, a.result(now, class))",
		"a.s.shedder.Release(now, a.permit, shed.Ignored)"},
	{"inbound/arrival.go", "s.shedder.SetCPU(now, share)", "s.shedder.SetCPU(now, 0)"},
	{"policy/throttle/window.go", "accepts += share * float64(out)", "accepts += (1 - share) * float64(out)"},
	{"policy/ratelimit/settings.go", "a.full, a.over = full+price, false", "a.full, a.over = full, false"},
	{"policy/shed/queue.go", "case now-c.since >= c.interval:", "case now-c.since >= 3*c.interval:"},
	{"policy/shed/limit.go",
		"gradient := max(tolerance*l.base/l.latency, 0.5)\n\t\treturn l.limit*min(gradient, tolerance) ",
		"gradient := max(1.3*l.base/l.latency, 0.5)\n\t\treturn l.limit*min(gradient, 1.3) "},
	{"policy/balance/choice.go", "if c.in[second].pending() < c.in[first].pending() {",
		"if c.in[second].pending() > c.in[first].pending() {"},
	{"policy/balance/choice.go", "if n > 1 && uint(avoid) <", "if n > 2 && uint(avoid) <"},
	{"policy/balance/balancer.go", "c.ejected >= b.mayBeOut ||", "c.ejected > b.mayBeOut ||"},
	{"policy/balance/balancer.go", "e.streak.Load() < b.limit ||", "e.streak.Load() <= b.limit ||"},
	{"policy/balance/endpoint.go", "quiet/uint64(base)", "quiet/uint64(2*base)"},
	{"hops/endpoint.go", "case abate.Failure, abate.Overload:", "case abate.Failure:"},
	{"core/typical.go", "t.ns.Store(old + old/32 + 1)", "t.ns.Store(int64(latency))"},
}

const (
	root     = "../.."
	patience = time.Minute // a run takes a fraction of a second, on a busy machine some
)

// built builds the pack, with the files that an overlay names if there is one, and returns its path.
func built(t *testing.T, overlay string) string {
	t.Helper()
	pack := filepath.Join(t.TempDir(), "pack")
	args := []string{"build", "-ldflags", "-s -w", "-o", pack}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.Command("go", append(args, "./testdata/pack")...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return pack
}

// simulated runs the pack with the bug that is chosen, if it is one that has bugs in it, and returns what it prints.
func simulated(t *testing.T, pack, chosen string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, pack)
	run.Env = append(os.Environ(), chooses+"="+chosen)
	out, err := run.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "%v", err) // a run that fails, or does not end, is noticed too
	}
	return string(out)
}

// overlay writes the file with the bug in it, and what tells go build to take that one.
func overlay(t *testing.T, dir string, b *bug) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, b.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), b.right); n != 1 {
		t.Errorf("%s has %d lines %q, want one to plant a bug in: choose another line", b.file, n, b.right)
	}
	replacement := filepath.Join(dir, "planted.go")
	list := filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{path: replacement}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		replacement: []byte(strings.Replace(string(text), b.right, b.wrong, 1)), list: replaced,
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// A line that was changed takes its bug with it. This is quick, and the test below is not.
func TestEachBugHasOneLineToBePlantedIn(t *testing.T) {
	for i := range bugs {
		overlay(t, t.TempDir(), &bugs[i])
	}
}

// The test builds two programs, so the quick run of the tests leaves it out.
func TestABugInAnyPolicyChangesWhatIsSimulated(t *testing.T) {
	if testing.Short() {
		return
	}
	healthy := simulated(t, built(t, ""), "")
	if strings.Count(healthy, "\n") < 8 {
		t.Fatalf("the runs are\n%s", healthy)
	}
	pack := built(t, switches(t, t.TempDir(), bugs))
	for range 2 {
		if again := simulated(t, pack, "none"); again != healthy {
			t.Fatalf("without a bug the runs are\n%sand, where none of the bugs is switched on,\n%s", healthy, again)
		}
	}
	for i, b := range bugs {
		t.Run(fmt.Sprintf("%s: %q for %q", b.file, b.wrong, b.right), func(t *testing.T) {
			if simulated(t, pack, strconv.Itoa(i)) == healthy {
				t.Error("nobody would notice: every run is as without the bug")
			}
		})
	}
}
