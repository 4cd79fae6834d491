package drill_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/drill"
)

func TestDefaultDrillShowsAStorm(t *testing.T) {
	c := drill.Default()
	if found := c.Problems(); len(found) > 0 {
		t.Errorf("problems: %q", found)
	}
	if found := c.Notes(); len(found) > 0 {
		t.Errorf("notes: %q", found)
	}
	if c.StormLoad() < 2*c.Service.Capacity() {
		t.Errorf("a storm of %v/s is hardly above the capacity of %v/s", c.StormLoad(), c.Service.Capacity())
	}
	if c.Service.QueueTime() < 2*c.AttemptTimeout {
		t.Errorf("a full queue is %v of work, hardly above the timeout of %v", c.Service.QueueTime(), c.AttemptTimeout)
	}
	if total := 2 * (c.Length() + c.AttemptTimeout); total > 55*time.Second {
		t.Errorf("both acts take up to %v", total)
	}
}

func TestBothActsWaitAndRetryAlike(t *testing.T) {
	c := drill.Default()
	for _, want := range []string{"attemptTimeout: 1s ", "maxRetries: 3 "} {
		if !strings.Contains(string(drill.EmbeddedPolicy()), want) {
			t.Errorf("the embedded policy lacks %q", want)
		}
	}
	if c.AttemptTimeout != time.Second || c.Retries != 3 {
		t.Errorf("unguarded clients wait %v and retry %d times", c.AttemptTimeout, c.Retries)
	}
}

func TestProblemsNameTheFlag(t *testing.T) {
	tests := []struct {
		name   string
		change func(*drill.Config)
		want   string
	}{
		{"no capacity", func(c *drill.Config) { c.Service.Workers = 0 }, "--capacity: 0 is out of range; allowed: 1 to 10000"},
		{"negative rate", func(c *drill.Config) { c.Rate = -5 }, "--rate: -5 is out of range"},
		{"rate is no number", func(c *drill.Config) { c.Rate = math.NaN() }, "--rate: NaN is out of range"},
		{"endless rate", func(c *drill.Config) { c.Rate = math.Inf(1) }, "--rate: +Inf is out of range"},
		{"no clients", func(c *drill.Config) { c.Clients = 0 }, "--clients: 0"},
		{"no queue", func(c *drill.Config) { c.Service.Queue = 0 }, "--queue: 0"},
		{"huge queue", func(c *drill.Config) { c.Service.Queue = math.MaxInt }, "--queue: "},
		{"no service time", func(c *drill.Config) { c.Service.ServiceTime = 0 }, "--service-time: 0s is out of range"},
		{"no time before", func(c *drill.Config) { c.Before = 0 }, "--before: 0s"},
		{"negative outage", func(c *drill.Config) { c.Outage = -time.Second }, "--outage: -1s"},
		{"outage of a day", func(c *drill.Config) { c.Outage = 24 * time.Hour }, "--outage: 24h0m0s is out of range; allowed: 500ms to 10m0s"},
		{"no time after", func(c *drill.Config) { c.After = time.Second }, "--after: 1s"},
		{"more within than after", func(c *drill.Config) { c.Within = time.Minute }, "--within: 1m0s is out of range; allowed: 1s to 14s"},
		{"a length between two steps", func(c *drill.Config) { c.Before += 50 * time.Millisecond }, "--before: 4.05s is not a multiple of 100ms, the steps in which the drill counts"},
		{"an outage between two steps", func(c *drill.Config) { c.Outage += time.Millisecond }, "--outage: 5.001s is not a multiple of 100ms"},
		{"an end between two steps", func(c *drill.Config) { c.After += 99 * time.Millisecond }, "--after: 14.099s is not a multiple of 100ms"},
		{"no answer in time", func(c *drill.Config) { c.Service.ServiceTime, c.Service.Workers = time.Second, 1000 }, "--service-time: 1s is not below 1s, after which an answer is too late"},
		{"too few requests to judge by", func(c *drill.Config) { c.Rate = 19 }, "--rate: 19 is out of range; allowed: 20 to 5000 requests per second"},
		{"too few before the outage", func(c *drill.Config) { c.Rate, c.Before = 30, 1200*time.Millisecond }, "--before: 1.2s is too short: goodput is measured from 600ms on, and to know what it normally is takes 400ms and 20 requests, not 600ms and 18; raise"},
		{"no steady time at all", func(c *drill.Config) {
			c.Before, c.Service.ServiceTime, c.Service.Workers = time.Second, 900*time.Millisecond, 1000
		}, "--before: 1s is too short: goodput is measured from 1.4s on, and to know what it normally is takes 400ms and 20 requests, not 0s and 0"},
		{"hardly any steady time", func(c *drill.Config) {
			c.Before, c.Service.ServiceTime, c.Service.Workers = 1500*time.Millisecond, 900*time.Millisecond, 1000
		}, "--before: 1.5s is too short: goodput is measured from 1.4s on, and to know what it normally is takes 400ms and 20 requests, not 100ms and 25"},
		{"more load than capacity", func(c *drill.Config) { c.Rate = 390 }, "--rate: 390/s is more than nine tenths"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := drill.Default()
			tt.change(&c)
			found := c.Problems()
			if len(found) != 1 || !strings.HasPrefix(found[0], tt.want) {
				t.Errorf("problems %q, want one that begins %q", found, tt.want)
			}
			if _, err := drill.Run(t.Context(), c); err == nil {
				t.Error("Run played it")
			}
		})
	}
}

func TestAllProblemsAreFoundAtOnce(t *testing.T) {
	c := drill.Config{}
	if found := c.Problems(); len(found) < 8 {
		t.Errorf("only %d problems in an empty config: %q", len(found), found)
	}
}

func TestNotesTellWhenNoStormIsToBeExpected(t *testing.T) {
	c := drill.Default()
	c.Rate = 90
	c.Service.Queue = 100
	notes := strings.Join(c.Notes(), "\n")
	for _, want := range []string{"within the capacity of 400/s", "a full queue is 0.3 s of work"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
}

func TestPolicyOfTheUserIsPlayedAsItIs(t *testing.T) {
	tests := []struct{ name, yaml, note string }{
		{"complete", "services: {payment-service: {attemptTimeout: 1s}}", ""},
		{"another service", "defaults: {attemptTimeout: 1s}\nservices: {other: {maxRetries: 1}}", "does not list payment-service"},
		{"no timeout", "services: {payment-service: {maxRetries: 1}}", "sets no attemptTimeout"},
		{"patient", "services: {payment-service: {attemptTimeout: 2s}}", "lets an attempt take 2s, but an answer after more than 1s is too late to count"},
		{"patient as a whole", "services: {payment-service: {timeout: 5s}}", "lets an attempt take 5s, but"},
		{"fallback", "services: {payment-service: {attemptTimeout: 1s, fallback: {status: 200}}}", "a degraded answer is not goodput"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := drill.Default()
			p, err := drill.ParsePolicy("my.yaml", []byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			c.Policy = p
			notes := strings.Join(c.Notes(), "\n")
			if (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
	if _, err := drill.ParsePolicy("bad.yaml", []byte("services: {payment-service: {maxRetrys: 1}}")); err == nil || !strings.Contains(err.Error(), "bad.yaml:1:") {
		t.Errorf("a bad file gives %v", err)
	}
}

func TestIntroShowsTheArithmetic(t *testing.T) {
	var out strings.Builder
	drill.Default().Intro(&out)
	for _, want := range []string{"20 workers / 50ms = 400", "250/s × 4 = 1,000/s"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("the introduction lacks %q:\n%s", want, out.String())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines > 9 {
		t.Errorf("the introduction has %d lines", lines)
	}
}
