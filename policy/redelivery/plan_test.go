package redelivery_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

const (
	s30 = 30 * time.Second
	m5  = 5 * time.Minute
	m30 = 30 * time.Minute
)

var three = redelivery.Config{Tiers: []time.Duration{s30, m5, m30}}

func hold(d time.Duration, reason string) redelivery.Verdict {
	return redelivery.Verdict{Action: redelivery.Hold, Delay: d, Reason: reason}
}

func forward(tier int, d time.Duration, reason string) redelivery.Verdict {
	return redelivery.Verdict{
		Action: redelivery.Forward, Tier: tier, Delay: d, Reason: reason, Excused: reason == "excused",
	}
}

func dead(reason string) redelivery.Verdict {
	return redelivery.Verdict{Action: redelivery.DeadLetter, Reason: reason}
}

func TestAFailureGoesToTheNextRetryTopicAndThenIsADeadLetter(t *testing.T) {
	p := redelivery.NewPlan(three)
	var got []redelivery.Verdict
	for tier := redelivery.Main; tier < 3; tier++ {
		got = append(got, p.Next(redelivery.Failure{Tier: tier, Delivery: tier + 2}))
	}
	want := []redelivery.Verdict{
		forward(0, s30, "retry"), forward(1, m5, "retry"), forward(2, m30, "retry"), dead("exhausted"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if p.Deliveries() != 4 || len(p.Hops()) != 3 {
		t.Errorf("%d deliveries, %d retry topics", p.Deliveries(), len(p.Hops()))
	}
}

func TestWhatIsAskedFirst(t *testing.T) {
	c := three
	c.Timeout, c.NeverRetryErrors = time.Hour, []string{"card-declined"}
	p := redelivery.NewPlan(c)
	all := redelivery.Failure{Tier: 2, Delivery: 4, Class: "card-declined", Permanent: true, Refused: true,
		CircuitOpen: true, Age: 2 * time.Hour, Held: 9}
	for _, step := range []struct {
		want redelivery.Verdict
		then func(*redelivery.Failure)
	}{
		{redelivery.Verdict{Action: redelivery.Hold, Tier: 2, Delay: 5 * time.Second, Reason: "refused"},
			func(f *redelivery.Failure) {
				f.Refused = false
			}},
		{dead("permanent"), func(f *redelivery.Failure) { f.Permanent = false }},
		{dead("never-retry"), func(f *redelivery.Failure) { f.Class = "" }},
		{dead("timeout"), func(f *redelivery.Failure) { f.Age = time.Hour }},
		{forward(2, m30, "excused"), func(f *redelivery.Failure) { f.CircuitOpen = false }},
		{dead("exhausted"), func(f *redelivery.Failure) {}},
	} {
		if got := p.Next(all); got != step.want {
			t.Errorf("%+v: %+v, want %+v", all, got, step.want)
		}
		step.then(&all)
	}
}

func TestNext(t *testing.T) {
	equal := redelivery.Config{Delay: time.Second, Multiplier: 1, Attempts: 4}
	capped := redelivery.Config{Delay: time.Second, MaxDelay: 10 * time.Second, Attempts: 5} // 1s, 10s, 10s, 10s
	drop, last, short, only := three, three, three, three
	drop.DLTStrategy, last.DLTStrategy, short.Timeout = redelivery.DropLast, redelivery.RetryLast, time.Minute
	only.RetryErrors = []string{"*Timeout*"}
	for name, row := range map[string]struct {
		c    redelivery.Config
		f    redelivery.Failure
		want redelivery.Verdict
	}{
		"refused for as long as the guard says": {
			three, redelivery.Failure{Tier: -1, Refused: true, Wait: 7 * time.Second}, redelivery.Verdict{
				Action: redelivery.Hold, Tier: -1, Delay: 7 * time.Second, Reason: "refused",
			},
		},
		"refused for as long as the service says": {
			three, redelivery.Failure{Refused: true, Wait: time.Second, RetryAfter: 2 * time.Second},
			hold(2*time.Second, "refused"),
		},
		"refused without a word": {
			three, redelivery.Failure{Refused: true}, hold(100*time.Millisecond, "refused"),
		},
		"refused the third time": {
			three, redelivery.Failure{Refused: true, Held: 2}, hold(400*time.Millisecond, "refused"),
		},
		"refused the thousandth time": {
			three, redelivery.Failure{Refused: true, Held: 999}, hold(5*time.Second, "refused"),
		},
		"refused for ever": {
			three, redelivery.Failure{Refused: true, RetryAfter: redelivery.Forever}, hold(24*time.Hour, "refused"),
		},
		"no retry topic, come back never": {
			redelivery.Config{}, redelivery.Failure{CircuitOpen: true, Wait: redelivery.Forever},
			hold(24*time.Hour, "circuit-open"),
		},
		"refused with an open circuit at the end": {
			three, redelivery.Failure{Tier: 2, Delivery: 4, Refused: true, CircuitOpen: true}, redelivery.Verdict{
				Action: redelivery.Hold, Tier: 2, Delay: 100 * time.Millisecond, Reason: "refused",
			},
		},
		"the circuit is open": {
			three, redelivery.Failure{CircuitOpen: true, Delivery: 1, Wait: 3 * time.Second},
			hold(3*time.Second, "circuit-open"),
		},
		"the circuit is open without a word": {
			three, redelivery.Failure{CircuitOpen: true, Delivery: 1, Held: 2}, hold(100*time.Millisecond, "circuit-open"),
		},
		"held often": {
			three, redelivery.Failure{Tier: -1, CircuitOpen: true, Delivery: 1, Held: 3}, forward(0, s30, "excused"),
		},
		"the service asks for more than the tier": {
			three, redelivery.Failure{Tier: -1, CircuitOpen: true, Delivery: 1, RetryAfter: time.Minute},
			forward(1, m5, "excused"),
		},
		"the service asks for less than the tier": {
			three, redelivery.Failure{CircuitOpen: true, Delivery: 1, RetryAfter: time.Minute},
			hold(time.Minute, "circuit-open"),
		},
		"the circuit is open and nothing is left": {
			three, redelivery.Failure{Tier: 2, CircuitOpen: true, Delivery: 4, Held: 3}, forward(2, m30, "excused"),
		},
		"an open circuit does not fix bad input": {
			three, redelivery.Failure{CircuitOpen: true, Permanent: true, Delivery: 1}, dead("permanent"),
		},
		"no retry topic, the circuit is open": {
			redelivery.Config{}, redelivery.Failure{Tier: -1, CircuitOpen: true, Held: 9}, redelivery.Verdict{
				Action: redelivery.Hold, Tier: -1, Delay: 100 * time.Millisecond, Reason: "circuit-open",
			},
		},
		"no retry topic": {
			redelivery.Config{}, redelivery.Failure{Tier: -1, Delivery: 1}, dead("exhausted"),
		},
		"disabled": {
			redelivery.Config{Disabled: true, Delay: time.Second}, redelivery.Failure{Tier: -1, Delivery: 1}, dead("exhausted"),
		},
		"Retry-After above the first tier": {
			three, redelivery.Failure{Tier: -1, Delivery: 1, RetryAfter: 31 * time.Second}, forward(1, m5, "retry"),
		},
		"Retry-After of exactly the first tier": {
			three, redelivery.Failure{Tier: -1, Delivery: 1, RetryAfter: s30}, forward(0, s30, "retry"),
		},
		"Retry-After above all tiers": {
			three, redelivery.Failure{Tier: -1, Delivery: 1, RetryAfter: 5 * time.Hour}, forward(2, m30, "retry"),
		},
		"excused before: it has two deliveries": {
			three, redelivery.Failure{Tier: 2, Delivery: 2}, forward(2, m30, "retry"),
		},
		"excused before: from where it stands": {
			three, redelivery.Failure{Tier: 1, Delivery: 1}, forward(2, m30, "retry"),
		},
		"one topic for equal delays": {
			equal, redelivery.Failure{Tier: 0, Delivery: 3}, forward(0, time.Second, "retry"),
		},
		"one topic for equal delays, all used": {equal, redelivery.Failure{Tier: 0, Delivery: 4}, dead("exhausted")},
		"the last topic repeats": {
			capped, redelivery.Failure{Tier: 1, Delivery: 4}, forward(1, 10*time.Second, "retry"),
		},
		"the last topic repeats no longer": {capped, redelivery.Failure{Tier: 1, Delivery: 5}, dead("exhausted")},
		"a count from a longer chain":      {three, redelivery.Failure{Tier: 0, Delivery: 7}, dead("exhausted")},
		"a topic that is no more": {
			three, redelivery.Failure{Tier: 8, Delivery: 3}, forward(2, m30, "retry"),
		},
		"a tier below the main topic": {
			three, redelivery.Failure{Tier: -9, Delivery: 1}, forward(0, s30, "retry"),
		},
		"too old": {
			short, redelivery.Failure{Tier: -1, Delivery: 1, Age: time.Minute + 1}, dead("timeout"),
		},
		"not too old": {
			short, redelivery.Failure{Tier: -1, Delivery: 1, Age: time.Minute}, forward(0, s30, "retry"),
		},
		"no timeout": {
			three, redelivery.Failure{Tier: -1, Delivery: 1, Age: 1000 * time.Hour}, forward(0, s30, "retry"),
		},
		"drop at the end": {
			drop, redelivery.Failure{Tier: 2, Delivery: 4}, redelivery.Verdict{Action: redelivery.Drop, Reason: "exhausted"},
		},
		"drop what is permanent": {
			drop, redelivery.Failure{Tier: -1, Delivery: 1, Permanent: true}, redelivery.Verdict{
				Action: redelivery.Drop, Reason: "permanent",
			},
		},
		"retry-last at the end": {
			last, redelivery.Failure{Tier: 2, Delivery: 40}, forward(2, m30, "exhausted"),
		},
		"retry-last from before the last": {
			last, redelivery.Failure{Tier: 0, Delivery: 4}, forward(2, m30, "exhausted"),
		},
		"retry-last of what is permanent": {
			last, redelivery.Failure{Tier: 2, Delivery: 4, Permanent: true}, dead("permanent"),
		},
		"a class that is worth it": {
			only, redelivery.Failure{Tier: -1, Delivery: 1, Class: "*net.TimeoutError"}, forward(0, s30, "retry"),
		},
		"a class that is not": {
			only, redelivery.Failure{Tier: -1, Delivery: 1, Class: "*json.SyntaxError"}, dead("never-retry"),
		},
		"a class that is not, with an open circuit": {
			only, redelivery.Failure{Tier: -1, Delivery: 1, Class: "ios", CircuitOpen: true}, dead("never-retry"),
		},
	} {
		if got := redelivery.NewPlan(row.c).Next(row.f); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestRemainingIsNeverLongerThanTheTopicsDelay(t *testing.T) {
	p := redelivery.NewPlan(three)
	for _, row := range []struct {
		tier        int
		until, want time.Duration
	}{
		{0, 10 * time.Second, 10 * time.Second}, {0, -time.Hour, 0}, {0, time.Hour, s30}, {2, time.Hour, m30},
		{redelivery.Main, time.Hour, 0}, {3, time.Hour, 0},
	} {
		if got := p.Remaining(row.tier, row.until); got != row.want {
			t.Errorf("tier %d, due in %v: %v, want %v", row.tier, row.until, got, row.want)
		}
	}
}

// life takes a message through the plan until it ends, with circuit, refusals and Retry-After as fate says, and checks
// every verdict on the way.
func life(t *testing.T, c redelivery.Config, fate []byte) {
	p := redelivery.NewPlan(c)
	tier, delivery, held := redelivery.Main, 1, 0
	for i := 0; i < 1000; i++ {
		var b byte
		if i < len(fate) {
			b = fate[i]
		}
		f := redelivery.Failure{Tier: tier, Delivery: delivery, Held: held, Refused: b&3 == 1, CircuitOpen: b&12 == 4,
			RetryAfter: time.Duration(b>>4) * 20 * time.Second}
		v := p.Next(f)
		switch v.Action {
		case redelivery.Hold:
			if held++; v.Delay <= 0 || !f.Refused && !f.CircuitOpen || v.Tier != tier || v.Excused {
				t.Fatalf("%+v: %+v", f, v)
			}
		case redelivery.Forward:
			if v.Tier < tier || v.Tier >= len(p.Hops()) || v.Delay != p.Hops()[v.Tier].Delay || f.Refused ||
				v.Excused != f.CircuitOpen {
				t.Fatalf("%+v: %+v", f, v)
			}
			if tier, held = v.Tier, 0; !v.Excused {
				delivery++
			}
			if delivery > p.Deliveries() {
				t.Fatalf("delivery %d of %d", delivery, p.Deliveries())
			}
		case redelivery.DeadLetter:
			if f.CircuitOpen || f.Refused || delivery != p.Deliveries() || v.Reason != "exhausted" {
				t.Fatalf("a dead letter in delivery %d of %d: %+v: %+v", delivery, p.Deliveries(), f, v)
			}
			return
		default:
			t.Fatalf("%+v: %+v", f, v)
		}
	}
	t.Fatal("it does not end")
}

func FuzzEveryMessageHasItsDeliveries(f *testing.F) {
	f.Add(byte(0), []byte{0, 0, 0, 0})
	f.Add(byte(1), []byte{1, 4, 4, 4, 4, 0, 240, 4, 4, 4, 4, 4})
	f.Add(byte(2), []byte{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4})
	f.Add(byte(3), []byte{244, 100, 0, 4, 255, 17})
	f.Fuzz(func(t *testing.T, which byte, fate []byte) {
		if len(fate) > 900 {
			return
		}
		life(t, []redelivery.Config{
			three, {Delay: time.Second}, {Delay: time.Second, Multiplier: 1, Attempts: 7},
			{Delay: time.Second, Multiplier: 2, MaxDelay: 5 * time.Second, Attempts: 9}, {Tiers: []time.Duration{s30}},
		}[which%5], fate)
	})
}

func TestNextAllocatesNothing(t *testing.T) {
	c := three
	c.RetryErrors, c.NeverRetryErrors = []string{"*Timeout*"}, []string{"*json*"}
	p := redelivery.NewPlan(c)
	if n := testing.AllocsPerRun(100, func() {
		p.Next(redelivery.Failure{Tier: redelivery.Main, Delivery: 1, Class: "*net.TimeoutError"})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	p := redelivery.NewPlan(three)
	for b.Loop() {
		p.Next(redelivery.Failure{Tier: redelivery.Main, Delivery: 1, Class: "error"})
	}
}

func TestAPartitionRestsOnlyIfItsOtherMessagesWouldFareNoBetter(t *testing.T) {
	held := redelivery.Verdict{Action: redelivery.Hold, Delay: time.Second}
	for name, c := range map[string]struct {
		concurrency int
		failure     redelivery.Failure
		circuit     time.Duration
		delay, stop time.Duration
	}{
		"nothing is wrong with the service": {4, redelivery.Failure{}, 0, time.Second, 0},
		"its circuit is open": {
			4, redelivery.Failure{Refused: true}, 3 * time.Second, time.Second, 3 * time.Second,
		},
		"half-open, for a moment":      {4, redelivery.Failure{}, 1, time.Second, redelivery.Brief},
		"refused":                      {4, redelivery.Failure{Refused: true}, 0, time.Second, redelivery.Brief},
		"refused, one after the other": {1, redelivery.Failure{Refused: true}, 0, redelivery.Brief, redelivery.Brief},
		"refused for long, one by one": {
			1, redelivery.Failure{Refused: true, Wait: time.Minute}, 0, time.Minute, time.Minute,
		},
	} {
		p := redelivery.NewPlan(redelivery.Config{Tiers: []time.Duration{time.Minute}, Concurrency: c.concurrency})
		if delay, stop := p.Rest(c.failure, held, c.circuit); delay != c.delay || stop != c.stop {
			t.Errorf("%s: again in %v, stopped for %v; want %v, %v", name, delay, stop, c.delay, c.stop)
		}
	}
}
