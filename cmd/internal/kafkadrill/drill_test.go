package kafkadrill_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
	"github.com/abate-go/abate/cmd/internal/kafkadrill"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/policyfile"
)

// small is a drill of a few seconds: long enough for retry topics without a guard to give messages up, too short to
// work everything off.
func small() kafkadrill.Config {
	c := kafkadrill.Default()
	c.Rate, c.Partitions = 60, 2
	c.Before, c.Outage, c.After, c.Within = 2*time.Second, 10*time.Second, 2*time.Second, 2*time.Second
	return c
}

// What is true of every drill, on a machine of any speed: nothing is lost, and nobody but the unguarded act gives
// messages up.
func TestOutageMakesDeadLettersOnlyWithoutAGuard(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	c := small()
	var seen []kafkadrill.Progress
	c.Progress = func(p kafkadrill.Progress) { seen = append(seen, p) }
	r, err := kafkadrill.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Acts {
		if a.Written == 0 || a.Handled == 0 || a.Handled+a.DeadLetters+a.Left != a.Written {
			t.Errorf("%s: %d written are %d handled, %d dead letters and %d left", a.Act, a.Written, a.Handled,
				a.DeadLetters, a.Left)
		}
		if a.Twice != 0 {
			t.Errorf("%s: %d messages were handled more than once", a.Act, a.Twice)
		}
		var written, attempts int
		for _, p := range a.Series {
			written, attempts = written+p.Written, attempts+p.Attempts
		}
		if written != a.Written || attempts != a.Attempts {
			t.Errorf("%s: the seconds have %d messages and %d attempts, the act %d and %d", a.Act, written, attempts, a.Written,
				a.Attempts)
		}
	}
	unguarded, guarded := r.Acts[0], r.Acts[1]
	if unguarded.Act != kafkadrill.Unguarded || guarded.Act != kafkadrill.Guarded {
		t.Fatalf("acts %s and %s", unguarded.Act, guarded.Act)
	}
	if unguarded.DeadLetters == 0 || guarded.DeadLetters != 0 {
		t.Errorf("dead letters: %d unguarded, %d guarded", unguarded.DeadLetters, guarded.DeadLetters)
	}
	if guarded.Attempts >= unguarded.Attempts {
		t.Errorf("attempts: %d guarded, %d unguarded", guarded.Attempts, unguarded.Attempts)
	}
	if !slices.ContainsFunc(seen, func(p kafkadrill.Progress) bool {
		return len(p.Acts) == 2 && p.Acts[1].Circuits.Open == 1 && p.Acts[0].Circuits.All == 0
	}) {
		t.Errorf("progress never told of an open circuit: %v", seen)
	}
	var text strings.Builder
	r.Report(&text)
	for _, want := range []string{
		"messages written", "unguarded: attempts", "guarded: attempts", "▲ outage of 10 s", "Guarded: ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// The lines say what came of messages, not what was planned for the second. Their columns stand below the heading.
func TestALineOfProgressSaysHowThingsStand(t *testing.T) {
	p := kafkadrill.Progress{Elapsed: 13 * time.Second, Acts: []kafkadrill.ActProgress{
		{Name: "unguarded", Second: drill.Second{Offered: 100, Extra: 1130}, Dead: 100, Left: 1200},
		{Name: "guarded", Second: drill.Second{Offered: 100, Answered: 97, Circuits: drill.Circuits{All: 1, HalfOpen: 1}},
			Left: 640},
	}}
	want := "         unguarded, in each second:             guarded, in each second:\n" +
		"         handled   extra   circuit dead  left   handled   extra   circuit dead  left"
	if got := p.Heading(); got != want {
		t.Errorf("heading\n%s\nwant\n%s", got, want)
	}
	want = "  13 s       0 % +1130 %      none  100  1200      97 %    +0 % half-open    0   640"
	if got := p.String(); got != want {
		t.Errorf("line\n%s\nwant\n%s", got, want)
	}
}

// The report knows a message that is handled as the one that was written: after a short outage it sees in both acts
// that the backlog is worked off. How much is left at the end of the drill is the machine's affair.
func TestABacklogThatIsWorkedOffIsSeenToBe(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	c := small()
	c.Outage, c.After, c.Within = time.Second, 10*time.Second, 10*time.Second
	r, err := kafkadrill.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Acts {
		if a.DrainedSeconds == nil {
			t.Errorf("%s: %d of %d messages are handled, %d left, worked off after %v",
				a.Act, a.Handled, a.Written, a.Left, a.DrainedSeconds)
		}
	}
}

func TestAnInterruptedDrillSaysSo(t *testing.T) {
	c := small()
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = func(kafkadrill.Progress) { cancel() }
	r, err := kafkadrill.Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.Report(&text)
	if !r.Interrupted || r.Passed || !strings.Contains(text.String(), "no verdict") {
		t.Errorf("interrupted %v, passed %v:\n%s", r.Interrupted, r.Passed, text.String())
	}
}

// On brokers of somebody else's the drill leaves nothing behind.
func TestTopicsOnOtherBrokersAreDeleted(t *testing.T) {
	broker, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	names := func() []string {
		client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addresses()...))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		admin := kadm.NewClient(client)
		topics, err := admin.ListTopics(t.Context())
		groups, err2 := admin.ListGroups(t.Context())
		if err != nil || err2 != nil {
			t.Error(err, err2)
		}
		return append(topics.Names(), groups.Groups()...)
	}
	c := small()
	c.Brokers = broker.Addresses()
	ctx, cancel := context.WithCancel(t.Context())
	var during []string
	c.Progress = func(kafkadrill.Progress) { during = names(); cancel() }
	if _, err := kafkadrill.Run(ctx, c); err != nil {
		t.Fatal(err)
	}
	if len(during) < 18 || !strings.HasPrefix(during[0], "abate-drill-") {
		t.Errorf("the drill ran on %q", during)
	}
	if left := names(); len(left) > 0 {
		t.Errorf("the drill left %q behind", left)
	}
}

func TestNoBrokerIsAnError(t *testing.T) {
	c := small()
	c.Brokers = []string{"127.0.0.1:1"}
	_, err := kafkadrill.Run(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "no broker answers at 127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}

func TestProblemsAreAllTold(t *testing.T) {
	if found := kafkadrill.Default().Problems(); len(found) > 0 {
		t.Errorf("the default has problems: %q", found)
	}
	c := kafkadrill.Config{Rate: 5, Within: time.Hour}
	found := strings.Join(c.Problems(), "\n")
	for _, want := range []string{
		"rate: 5", "partitions: 0", "workers: 0", "before: 0s", "outage: 0s", "after: 0s", "within: 1h0m0s",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("nothing says %q:\n%s", want, found)
		}
	}
	c = kafkadrill.Default()
	c.Rate = 140
	if found := c.Problems(); len(found) != 1 || !strings.Contains(found[0], "it would be in trouble without any outage") {
		t.Errorf("problems %q", found)
	}
	if _, err := kafkadrill.Run(t.Context(), kafkadrill.Config{}); err == nil {
		t.Error("a drill of nothing was run")
	}
}

// The acts differ by what guards them, and by nothing of the retry topics.
func TestBothActsHaveTheSameRetryTopics(t *testing.T) {
	var tiers [2][]time.Duration
	for i, name := range []string{kafkadrill.Unguarded, kafkadrill.Guarded} {
		file, err := policyfile.Parse(name, []byte(kafkadrill.Policy(name)))
		if err != nil {
			t.Fatal(err)
		}
		p, ok := file.Policy("inventory")
		if !ok {
			t.Fatalf("%s has no policy", name)
		}
		tiers[i] = p.Kafka.Tiers
		if guarded := name == kafkadrill.Guarded; p.RetryBudget.Enabled() != guarded ||
			p.CircuitBreaker.Enabled() != guarded || p.Kafka.Drain.Disabled == guarded {
			t.Errorf("%s: budget %v, breaker %v, drain disabled %v", name, p.RetryBudget.Enabled(), p.CircuitBreaker.Enabled(),
				p.Kafka.Drain.Disabled)
		}
	}
	if len(tiers[0]) == 0 || !slices.Equal(tiers[0], tiers[1]) {
		t.Errorf("tiers %v and %v", tiers[0], tiers[1])
	}
}

func TestEveryWayToFailIsNamed(t *testing.T) {
	c, soon, late := kafkadrill.Default(), 1.0, 1000.0
	good := kafkadrill.ActResult{Written: 10, Handled: 10, Load: 1.1, DrainedSeconds: &soon}
	for want, change := range map[string]func(*kafkadrill.ActResult){
		"":                                          func(*kafkadrill.ActResult) {},
		"3 messages are neither handled nor":        func(a *kafkadrill.ActResult) { a.Left = 3 },
		"2 messages are dead letters":               func(a *kafkadrill.ActResult) { a.DeadLetters = 2 },
		"1 messages were handled more than once":    func(a *kafkadrill.ActResult) { a.Twice = 1 },
		"1.60 times the load":                       func(a *kafkadrill.ActResult) { a.Load = 1.6 },
		"the backlog was not worked off":            func(a *kafkadrill.ActResult) { a.DrainedSeconds = nil },
		"the backlog was not worked off within 46s": func(a *kafkadrill.ActResult) { a.DrainedSeconds = &late },
	} {
		a := good
		change(&a)
		missed := kafkadrill.Missed(c, a)
		if want == "" && len(missed) > 0 || want != "" && (len(missed) != 1 || !strings.Contains(missed[0], want)) {
			t.Errorf("%q: missed %q", want, missed)
		}
	}
}

func TestReportIsAsWideAsATerminal(t *testing.T) {
	drained := 48.4
	r := &kafkadrill.Result{
		Passed: true, Setup: kafkadrill.Setup{CapacityPerSecond: 150, BeforeSeconds: 5, OutageSeconds: 6, AfterSeconds: 54},
	}
	for _, name := range []string{kafkadrill.Unguarded, kafkadrill.Guarded} {
		a := kafkadrill.ActResult{Act: name, Written: 1_234_567, Handled: 999, DeadLetters: 1000, Load: 12.4}
		if name == kafkadrill.Guarded {
			a.DrainedSeconds = &drained
		}
		for i := range 68 {
			a.Series = append(a.Series, kafkadrill.Point{AtSeconds: float64(i), Attempts: 100 * (i % 12), Handled: i})
		}
		r.Acts = append(r.Acts, a)
	}
	var text strings.Builder
	r.Report(&text)
	kafkadrill.Default().Intro(&text)
	for line := range strings.Lines(text.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"1,234,567", "1,000", "never", "48.4 s", "PASS."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
