package abateadmin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/startup"
)

const sec = time.Second

func TestRatesAreThoseOfTheLastTenWholeSeconds(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.guard("a", abate.Policy{})
	s.calls("a", 5*sec, 1000, 0, 0) // too long ago
	for at := 10 * sec; at < 20*sec; at += sec {
		s.calls("a", at+500*time.Millisecond, 20, 250, 1)
	}
	s.calls("a", 20*sec+time.Millisecond, 700, 0, 0) // the second is not over
	r := s.RowAt("a", false, 20*sec+900*time.Millisecond)
	want := abateadmin.Row{
		Name:    "a",
		Guards:  1,
		Circuit: "off",
		Level:   abateadmin.Watch,
		Story: abateadmin.Story{
			Cause: "100 of 250 attempts failed. The last error: Get \"http://…@payments:8080/charge?…\": dial tcp " +
				"10.2.3.4:8080: connect: connection refused.",
			Effect: "In the last 10 seconds 200 calls ended: 150 answered, 50 failed.",
			Next:   "Every call goes on being sent: no circuit breaker is on.",
		},
		Why:           "many retries: 1.25 attempts for each call; 25 % of calls fail",
		Calls:         20,
		Attempts:      25,
		Good:          15,
		Bad:           5,
		Amplification: 1.25,
		RetryShare:    0.2,
		Last:          [3]int{25, 15, 5},
		Took:          r.Took,
	}
	if r != want {
		t.Errorf("\n%+v, want\n%+v", r, want)
	}
	if r := s.RowAt("a", false, 31*sec); r.Calls != 0 || r.Amplification != 1 || r.Level != abateadmin.Idle {
		t.Errorf("ten quiet seconds later: %+v", r)
	}
	if r := s.RowAt("a", false, 20*sec+300*sec); r.Calls != 0 {
		t.Errorf("a place of the ring that was used five minutes ago counts: %+v", r)
	}
}

func TestASecondIsFoundWhereverTheClockBegan(t *testing.T) {
	for _, at := range []time.Duration{0, 1, -1, -sec, 299 * sec, 300*sec - 1, 300 * sec, -26 * 365 * 24 * time.Hour,
		math.MaxInt64 - 2*sec, math.MinInt64/2 + 2*sec} {
		s := newStage(t, abateadmin.Config{})
		s.guard("a", abate.Policy{})
		s.calls("a", at, 3, 0, 0)
		begin := abateadmin.Begin(at)
		if begin > at || at-begin >= sec || begin%sec != 0 {
			t.Errorf("the second of %d began at %d", at, begin)
		}
		if first, _ := s.SentAt("a", begin+sec, 0); first != 3 {
			t.Errorf("of 3 calls at %v one second later %d are there", at, first)
		}
		if first, _ := s.SentAt("a", begin+sec-1, 0); first != 0 {
			t.Errorf("calls at %v are counted before their second is over: %d", at, first)
		}
	}
}

func TestACountThatIsFullStopsAndHarmsNoOther(t *testing.T) {
	var w abateadmin.Word
	w.Fill(7, 5, 1<<22-20_000)
	for range 50_000 {
		w.Add(7, false)
	}
	if a, b := w.Counts(7); a != 5 || b < 1<<22-20_000 || b > 1<<22-1 {
		t.Errorf("counts %d and %d", a, b)
	}
	var sum abateadmin.Word
	for range 5000 {
		sum.Sum(3, math.MaxUint64)
	}
	if total := sum.Total(3); total <= 0 || total >= 1<<44 || sum.Total(4) != 0 {
		t.Errorf("the sum is %d, in the next lap %d", total, sum.Total(4))
	}
}

func TestWhatIsTheMatterIsSaidInWords(t *testing.T) {
	open := abate.DefaultPolicy()
	for _, c := range []struct {
		name  string
		play  func(s *stage)
		level abateadmin.Level
		why   string
	}{
		{"nothing", func(*stage) {}, abateadmin.Idle, ""},
		{"some calls", func(s *stage) { s.calls("a", 5*sec, 9, 0, 0) }, abateadmin.Calm, ""},
		{"a storm", func(s *stage) {
			s.calls("a", 5*sec, 40, 1000, 3)
		}, abateadmin.Trouble, "retry storm: 4.0 attempts for each call; 100 % of calls fail"},
		{"the reserve of a budget is used", func(s *stage) {
			s.calls("a", 5*sec, 11, 1000, 1)
		}, abateadmin.Trouble, "100 % of calls fail; many retries: 2.00 attempts for each call"},
		{"a few failures", func(s *stage) { s.calls("a", 5*sec, 9, 1000, 0) }, abateadmin.Calm, ""},
		{"failures", func(s *stage) { s.calls("a", 5*sec, 100, 60, 0) }, abateadmin.Watch, "6 % of calls fail"},
		{"refusals", func(s *stage) {
			s.refused("a", 5*sec, 20, abate.ErrBulkheadFull)
		}, abateadmin.Trouble, "100 % of calls refused"},
		{"some refusals", func(s *stage) {
			s.calls("a", 5*sec, 98, 0, 0)
			s.refused("a", 5*sec, 2, abate.ErrThrottled)
		}, abateadmin.Watch, "2 % of calls refused"},
		{"forced open", func(s *stage) {
			_ = s.guards["a"].Override(abate.OverrideForcedOpen)
		}, abateadmin.Trouble, "circuit forced open by hand"},
		{"disabled", func(s *stage) {
			_ = s.guards["a"].Override(abate.OverrideDisabled)
		}, abateadmin.Watch, "circuit breaker disabled by hand"},
		{"shadow", func(s *stage) {
			_ = s.guards["a"].Override(abate.OverrideShadow)
		}, abateadmin.Watch, "circuit breaker in shadow by hand"},
		{"retries that are refused", func(s *stage) {
			for range 12 {
				s.tell["a"].Observe(abate.Event{Kind: core.CallBegan, At: 5 * sec})
				s.tell["a"].Observe(abate.Event{Kind: core.CallEnded, At: 5 * sec, Attempt: 1, Reason: abate.ErrBudgetExhausted})
			}
		}, abateadmin.Watch, "retries refused"},
		{"a call that goes on for long", func(s *stage) {
			s.tell["a"].Observe(abate.Event{Kind: core.CallBegan, At: -99 * sec})
		}, abateadmin.Calm, ""},
		{"callers who left", func(s *stage) { s.refused("a", 5*sec, 50, context.Canceled) }, abateadmin.Idle, ""},
	} {
		s := newStage(t, abateadmin.Config{})
		s.guard("a", open)
		c.play(s)
		if r := s.RowAt("a", false, 10*sec); r.Level != c.level || r.Why != c.why {
			t.Errorf("%s: %v %q, want %v %q", c.name, r.Level, r.Why, c.level, c.why)
		}
	}
}

func TestAnOpenCircuitIsTroubleAndOfManyGuardsThoseOpenAreCounted(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	p := abate.DefaultPolicy()
	p.CircuitBreaker.FailureThreshold, p.CircuitBreaker.FailureRateThreshold = 1, 0
	p.MaxRetries = 0
	a := s.guard("a", p)
	b := s.guard("a", p)
	fail := func(g *abate.Guard) {
		_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, errors.New("no") })
	}
	fail(a)
	r := s.RowAt("a", false, core.Now())
	if r.Circuit != "open" || r.Guards != 2 || r.Open != 1 || r.Level != abateadmin.Trouble ||
		r.Why != "1 of 2 circuits open" || r.Since == 0 {
		t.Errorf("%+v", r)
	}
	s.Remove(a)
	if r := s.RowAt("a", false, core.Now()); r.Guards != 1 || r.Open != 0 || r.Circuit != "closed" {
		t.Errorf("without the one that is open: %+v", r)
	}
	fail(b)
	if r := s.RowAt("a", false, core.Now()); r.Why != "circuit open" {
		t.Errorf("%+v", r)
	}
}

func TestTheStripTellsTheWorstOfEverySecond(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.guard("a", abate.Policy{})
	for _, c := range []struct {
		at       time.Duration
		from, to breaker.State
	}{
		{2*sec + 1, breaker.Closed, breaker.Open}, {2*sec + 2, breaker.Closed, breaker.Open}, // two guards with one name
		{4 * sec, breaker.Open, breaker.HalfOpen}, {5 * sec, breaker.Open, breaker.HalfOpen},
		{6*sec + 1, breaker.HalfOpen, breaker.Open}, {6*sec + 2, breaker.Open, breaker.HalfOpen},
		{8 * sec, breaker.HalfOpen, breaker.RampUp}, {8 * sec, breaker.HalfOpen, breaker.Closed},
		{9 * sec, breaker.RampUp, breaker.Closed},
	} {
		s.tell["a"].Observe(abate.Event{Kind: core.BreakerChanged, At: c.at, From: c.from, To: c.to})
	}
	s.tell["a"].Observe(abate.Event{Kind: core.PolicyChanged, At: 9 * sec}) // no circuit has to do with it
	for _, c := range []struct {
		now  time.Duration
		n    int
		want string
	}{{11 * sec, 11, "00222221110"}, {9*sec + sec/2, 4, "2211"}, {4*sec + 1, 3, "022"}, {400 * sec, 3, "000"},
		{0, 2, "00"}} {
		want := c.want
		if got := s.StripAt("a", c.now, c.n); got != want {
			t.Errorf("at %v: %s, want %s", c.now, got, want)
		}
	}
}

func TestRefusalsAreCountedByReasonAndTheFirstIsAnEvent(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.guard("a", abate.Policy{})
	now := core.Now()
	for i := range 40 {
		s.refused("a", now-time.Duration(i)*sec, 2, abate.ErrCircuitOpen)
	}
	s.refused("a", now, 3, errors.New("somebody's own"))
	if five, step := s.CausesAt("a", "circuit open", now, 30), s.CausesAt("a", "circuit open", now, 1); five != 80 ||
		step > 20 || step < 2 {
		t.Errorf("%d in five minutes, %d in the last step", five, step)
	}
	if other := s.CausesAt("a", "other", now, 1); other != 3 {
		t.Errorf("%d of unknown reasons", other)
	}
	d := s.detail("a")
	if len(d.Events) != 2 || !strings.Contains(d.Events[0].Text+d.Events[1].Text, "first call refused: circuit open") {
		t.Errorf("events: %+v", d.Events)
	}
}

func TestAGateIsCountedToo(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.gate("g", inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 4}})
	o := s.asks["g"]
	for i := range 40 {
		e := inbound.GateEvent{Kind: inbound.RequestAdmitted, At: 5 * sec, Attempt: 1 + i%2, Latency: 4 * time.Millisecond}
		if i < 10 {
			e.Kind, e.Reason, e.Shed = inbound.RequestRefused, abate.ErrOverloaded, shed.LaterAttempt
			o.ObserveGate(e)
			e.Shadow = true // let through all the same, and told of again
			o.ObserveGate(e)
			continue
		}
		o.ObserveGate(e)
		e.Kind = inbound.RequestDone
		if i == 10 {
			e.Class = abate.Failure
		}
		if i < 39 {
			o.ObserveGate(e)
		}
	}
	r := s.RowAt("g", true, 10*sec)
	want := abateadmin.Row{
		Name:          "g",
		Gate:          true,
		Guards:        1,
		Level:         abateadmin.Trouble,
		Why:           "retry storm from callers: 2.0 requests for each first one; 26 % of requests refused",
		Calls:         4,
		Attempts:      4,
		Good:          2.8,
		Bad:           0.1,
		Refused:       1,
		Amplification: 2,
		RetryShare:    0.5,
		InFlight:      1,
		Limit:         4,
		Took:          4,
		Last:          [3]int{},
		Story: abateadmin.Story{
			Cause:  "Callers send again what has failed: 2.00 requests for each first one.",
			Effect: "In the last 10 seconds 39 requests ended: 28 answered, 1 failed, 10 refused at once.",
			Next:   "Whoever was refused is told when to come back.",
		},
	}
	if r != want {
		t.Errorf("\n%+v, want\n%+v", r, want)
	}
}

func TestACallerWhoLeavesSaysNothingAboutHowLongRequestsTake(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.gate("g", inbound.Protection{Shed: shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 4}})
	for i := range 20 {
		e := inbound.GateEvent{Kind: inbound.RequestAdmitted, At: 5 * sec, Attempt: 1}
		s.asks["g"].ObserveGate(e)
		if e.Kind, e.Latency = inbound.RequestDone, 4*time.Millisecond; i%2 == 0 {
			e.Class, e.Latency = abate.Ignored, 30*time.Second
		}
		s.asks["g"].ObserveGate(e)
	}
	if r := s.RowAt("g", true, 10*sec); r.Took != 4 || r.InFlight != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAGuardThatIsRemovedLeavesNoOpenCircuitBehind(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	old := s.guard("g", abate.DefaultPolicy())
	if err := old.Override(abate.OverrideForcedOpen); err != nil {
		t.Fatal(err)
	}
	if strip := s.StripAt("g", core.Now()+2*time.Second, 1); strip != "2" {
		t.Errorf("forced open: %s", strip)
	}
	s.Remove(old)
	s.Remove(old)
	s.guard("g", abate.DefaultPolicy())
	if strip := s.StripAt("g", core.Now()+2*time.Second, 1); strip != "0" {
		t.Errorf("a new one: %s", strip)
	}
}

// TestACircuitForcedOpenIsSeenOnTheLane, also where the policy has no circuit breaker.
func TestACircuitForcedOpenIsSeenOnTheLane(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	g := s.guard("g", abate.Policy{})
	for _, c := range []struct {
		o    abate.Override
		want string
	}{{abate.OverrideForcedOpen, "2"}, {abate.NoOverride, "0"}, {abate.OverrideForcedOpen, "2"},
		{abate.OverrideDisabled, "0"}} {
		if err := g.Override(c.o); err != nil {
			t.Fatal(err)
		}
		if strip := s.StripAt("g", core.Now()+2*time.Second, 1); strip != c.want {
			t.Errorf("%q: %s", c.o, strip)
		}
	}
}

func TestAWaitThatIsCalledOffRetriesNoMore(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.guard("g", abate.DefaultPolicy())
	p := startup.Policy()
	s.Adjust("g", &p)
	ctx, leave := context.WithCancel(startup.ContextWithLogger(t.Context(), slog.New(slog.DiscardHandler)))
	p.Observer = leaver{p.Observer, leave}
	if _, err := startup.Connect(ctx, "g", p, func(context.Context) (int, error) {
		return 0, errors.New("not yet")
	}); err == nil {
		t.Fatal("it is there")
	}
	if r := s.RowAt("g", false, core.Now()); r.Retrying != 0 || r.InFlight != 0 {
		t.Errorf("%+v", r)
	}
}

// leaver leaves when a retry is scheduled.
type leaver struct {
	abate.Observer
	leave func()
}

func (l leaver) Observe(e abate.Event) {
	l.Observer.Observe(e)
	if e.Kind == core.RetryScheduled {
		l.leave()
	}
}

func TestCallsInFlightAreThoseOfGuardsUnderWay(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	g := s.guard("a", abate.DefaultPolicy())
	came, leave := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) { came <- struct{}{}; <-leave; return 0, nil })
		})
	}
	for range 3 {
		<-came
	}
	if r := s.RowAt("a", false, core.Now()); r.InFlight != 3 || r.Level != abateadmin.Calm {
		t.Errorf("%+v", r)
	}
	close(leave)
	all.Wait()
	if r := s.RowAt("a", false, core.Now()); r.InFlight != 0 {
		t.Errorf("all have ended: %+v", r)
	}
}

// TestObserversOfOneServiceAreEqual: a reload compares them, and must not take a policy that is the same for another.
func TestObserversOfOneServiceAreEqual(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	other := &counter{}
	for _, before := range []abate.Observer{nil, other} {
		p, q := abate.Policy{Observer: before}, abate.Policy{Observer: before}
		s.Adjust("a", &p)
		s.Adjust("a", &q)
		if p.Observer != q.Observer {
			t.Errorf("with %T before: two observers", before)
		}
		s.Adjust("a", &q)
		if p.Observer != q.Observer {
			t.Errorf("with %T before: adjusted twice is another", before)
		}
	}
	p := abate.Policy{Observer: other}
	s.Adjust("a", &p)
	p.Observer = abate.Observers(&counter{}, p.Observer) // as an adapter for metrics does
	s.Adjust("a", &p)
	p.Observer.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: 1, At: 5 * sec})
	if first, _ := s.SentAt("a", 6*sec, 0); other.n != 1 || first != 1 {
		t.Errorf("the other was told %d times, the page %d", other.n, first)
	}
	q := inbound.Protection{}
	s.AdjustProtection("g", &q)
	before := q.Observer
	s.AdjustProtection("g", &q)
	if q.Observer != before {
		t.Error("a protection that is adjusted twice tells the page twice")
	}
}

type counter struct{ n int }

func (c *counter) Observe(abate.Event) { c.n++ }

func TestCountingAllocatesNothing(t *testing.T) {
	if raceDetector {
		return // it allocates by itself
	}
	s := newStage(t, abateadmin.Config{})
	g := s.guard("a", abate.DefaultPolicy())
	ok := func(context.Context) (int, error) { return 0, nil }
	if n := testing.AllocsPerRun(1000, func() { _, _ = abate.Do(context.Background(), g, ok) }); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
	err := errors.New("no")
	for _, e := range []abate.Event{{Kind: core.AttemptEnded, Class: abate.Failure, Err: err},
		{Kind: core.CallEnded, Reason: abate.ErrCircuitOpen}, {Kind: core.RetryScheduled, Retries: 1}} {
		s.tell["a"].Observe(e)
		if n := testing.AllocsPerRun(1000, func() { s.tell["a"].Observe(e) }); n != 0 {
			t.Errorf("%v allocates %v times", e.Kind, n)
		}
	}
}

func TestManyCountAtTheSameTime(t *testing.T) {
	s := newStage(t, abateadmin.Config{})
	s.guard("a", abate.Policy{})
	const each = 500
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range each {
				s.calls("a", time.Duration(i%4)*sec, 1, 0, 0)
				if i%50 == 0 {
					_ = s.RowAt("a", false, 4*sec)
				}
			}
		})
	}
	all.Wait()
	if r := s.RowAt("a", false, 4*sec); r.Good != 8*each/10 {
		t.Errorf("%+v", r)
	}
}

func TestErrorsAreShownWithoutSecrets(t *testing.T) {
	for in, want := range map[string]string{
		`Get "http://anna:geheim@db:80/x?token=abc": EOF`:  `Get "http://…@db:80/x?…": EOF`,
		"dial postgres://u:p@h/db failed":                  "dial postgres://…@h/db failed",
		`parse "postgres://u:hun/ter2@h/db": invalid port`: `parse "postgres://…@h/db": invalid port`,
		"amqp://u:pa?x#y@h failed":                         "amqp://…@h failed",
		"http://db:8080/users/a@b.c: 404":                  "http://db:8080/users/a@b.c: 404",
		"http://[::1]:80/users/a@b.c: 404":                 "http://[::1]:80/users/a@b.c: 404",
		"password=hunter2 host=db":                         "password=… host=db",
		`config {"api_key": "k-123", "a": 1}`:              `config {"api_key": …, "a": 1}`,
		"header Authorization: Bearer abc.def.ghi refused": "header Authorization: … … refused",
		"plain text":                                           "plain text",
		"with\nnewline\x1b[31m and colour":                     "with newline [31m and colour",
		strings.Repeat("ä", 300):                               strings.Repeat("ä", 199) + "…",
		strings.Repeat("x", 200):                               strings.Repeat("x", 200),
		"see https://example.com/#access_token=1 for more":     "see https://example.com/?… for more",
		"MY_SECRET='a b c' and DB-PASSWORD: xyz":               "MY_SECRET=… and DB-PASSWORD: …",
		"dial tcp 127.0.0.1:5432: connect: connection refused": "dial tcp 127.0.0.1:5432: connect: connection refused",
		"unexpected token in JSON":                             "unexpected token in JSON",
		"\u202etxt.exe":                                        "\u202etxt.exe", // the page shows its number
	} {
		if got := abateadmin.Redact(errors.New(in)); got != want {
			t.Errorf("%q\nbecomes %q\nwant    %q", in, got, want)
		}
	}
	var broken *broken
	if got := abateadmin.Redact(broken); got == "" {
		t.Error("an error that cannot be asked for its text is not shown at all")
	}
}

type broken struct{ text string }

func (b *broken) Error() string { return b.text }

func FuzzRedact(f *testing.F) {
	f.Add("http://anna:geheim@db/x?y=1", "geheim")
	f.Add("\xff\xfe://\x00@", "@")
	f.Add(strings.Repeat("a://b@", 2000), "b")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := abateadmin.Redact(errors.New(text))
		if n := len([]rune(got)); n > 200 {
			t.Errorf("%d characters", n)
		}
		if strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Errorf("control characters: %q", got)
		}
		plain := strings.Map(func(r rune) rune {
			if r > ' ' && r < 0x7f && !strings.ContainsRune(`/?#"'@:`, r) {
				return r
			}
			return -1
		}, secret)
		if len(plain) > 3 && !strings.Contains("://user:…@host/", plain) {
			if got := abateadmin.Redact(fmt.Errorf("x://user:%s@host/", plain)); strings.Contains(got, plain) {
				t.Errorf("the password %q is in %q", plain, got)
			}
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add(int64(0), uint8(1), int64(5), 1, uint8(0))
	f.Add(int64(math.MaxInt64), uint8(9), int64(math.MaxInt64), math.MaxInt, uint8(255))
	f.Add(int64(math.MinInt64), uint8(4), int64(math.MinInt64), -1, uint8(2))
	f.Fuzz(func(t *testing.T, at int64, kind uint8, latency int64, attempt int, class uint8) {
		s := newStage(t, abateadmin.Config{})
		s.guard("a", abate.Policy{})
		for _, at := range []time.Duration{time.Duration(at), 0, time.Duration(at) + 3*sec, -sec} {
			s.tell["a"].Observe(abate.Event{Kind: core.EventKind(kind), At: at, Latency: time.Duration(latency),
				Delay: time.Duration(latency), Attempt: attempt,
				Class: abate.Class(class), Retries: attempt, Reason: abate.ErrDeadline, Err: errors.New("x"),
				From: breaker.State(class), To: breaker.State(kind)})
			r := s.RowAt("a", false, at+sec)
			if r.Amplification < 1 || r.Amplification > 99 || r.RetryShare < 0 || r.RetryShare > 1 || r.Took < 0 ||
				r.Calls < 0 || r.InFlight < 0 {
				t.Errorf("%+v", r)
			}
			if n := len(s.StripAt("a", at, 60)); n != 60 {
				t.Errorf("a strip of %d seconds", n)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	s := newStage(b, abateadmin.Config{})
	s.guard("a", abate.Policy{})
	for _, e := range []abate.Event{{Kind: core.CallBegan}, {Kind: core.AttemptBegan, Attempt: 1},
		{Kind: core.AttemptEnded, Latency: sec}, {Kind: core.CallEnded},
		{Kind: core.AttemptEnded, Class: abate.Failure, Err: errors.New("no")},
		{Kind: core.CallEnded, Reason: abate.ErrCircuitOpen}} {
		b.Run(fmt.Sprint(e.Kind, " ", e.Class, " ", e.Reason), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.tell["a"].Observe(e)
			}
		})
	}
}

func BenchmarkCall(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprint("watched ", watched), func(b *testing.B) {
			s := newStage(b, abateadmin.Config{})
			g, _ := abate.New("a", abate.DefaultPolicy())
			if watched {
				g = s.guard("a", abate.DefaultPolicy())
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = abate.Do(context.Background(), g, func(context.Context) (int, error) { return 0, nil })
			}
		})
	}
}

func BenchmarkRow(b *testing.B) {
	s := newStage(b, abateadmin.Config{})
	s.guard("a", abate.DefaultPolicy())
	s.calls("a", 5*sec, 100, 100, 1)
	b.ReportAllocs()
	for b.Loop() {
		s.RowAt("a", false, 10*sec)
	}
}

// The acts of a drill have the same names, one after the other.
func TestNothingOfARunIsLeftInTheNext(t *testing.T) {
	s := newStage(t, abateadmin.Config{Title: "abate drill"})
	p := abate.DefaultPolicy()
	play := func() {
		s.guard("a", p)
		s.gate("g", inbound.Protection{})
	}
	play()
	now := core.Now()
	s.calls("a", now-2*sec, 40, 1000, 3)
	s.tell["a"].Observe(abate.Event{Kind: core.CallBegan, At: now})
	s.tell["a"].Observe(abate.Event{Kind: core.BreakerChanged, At: now - sec, From: breaker.Closed, To: breaker.Open})
	s.asks["g"].ObserveGate(inbound.GateEvent{Kind: inbound.RequestAdmitted, At: now - 2*sec, Attempt: 1})
	before := s.tell["a"]
	s.Page.Begin("guarded")
	if got := s.state(); len(got.Rows) != 0 || got.Title != "abate drill: guarded" {
		t.Errorf("begun: %+v", got)
	}
	play()
	before.Observe(abate.Event{Kind: core.CallEnded, At: now - sec, Attempt: 1, Class: abate.Failure}) // a straggler
	fresh := newStage(t, abateadmin.Config{})
	fresh.guard("a", p)
	fresh.gate("g", inbound.Protection{})
	for _, gate := range []bool{false, true} {
		name := map[bool]string{false: "a", true: "g"}[gate]
		if got, want := s.RowAt(name, gate, now), fresh.RowAt(name, gate, now); got != want {
			t.Errorf("%+v, want\n%+v", got, want)
		}
	}
	if d := s.detail("a"); len(d.Errors)+len(d.Events)+len(d.Refusals) != 0 || strings.Trim(d.Strip, "0") != "" ||
		d.Attempts[1].Five != 0 {
		t.Errorf("%+v", d)
	}
}
