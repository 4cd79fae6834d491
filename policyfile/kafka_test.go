package policyfile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/policyfile"
)

func TestValidateNamesWhatIsWrongWithKafka(t *testing.T) {
	for _, row := range []struct {
		kafka redelivery.Config
		want  string
	}{
		{redelivery.Config{Tiers: []time.Duration{time.Second, 25 * time.Hour}},
			"kafka.tiers[1]: 25h0m0s is out of range; allowed: 100ms to 24h"},
		{redelivery.Config{Tiers: []time.Duration{0}}, "kafka.tiers[0]: 0s is out of range; allowed: 100ms to 24h"},
		{redelivery.Config{Tiers: []time.Duration{time.Second, time.Second}},
			"kafka.tiers[1]: 1s does not come after 1s; let them ascend, for example [30s, 5m, 30m]; for several deliveries " +
				"with one delay write delay, multiplier: 1 and attempts"},
		{redelivery.Config{Tiers: []time.Duration{1500001 * time.Microsecond}},
			"kafka.tiers[0]: 1.500001s is not in whole milliseconds; write 1.5s"},
		{redelivery.Config{Tiers: []time.Duration{time.Second}, Delay: time.Second},
			"kafka.delay: stands beside tiers, which say all delays; remove it, or the tiers where they are set"},
		{redelivery.Config{Tiers: []time.Duration{time.Second}, Attempts: 3},
			"kafka.attempts: stands beside tiers, which say all delays; remove it, or the tiers where they are set"},
		{redelivery.Config{Tiers: ascending(21)}, "kafka.tiers: 21 retry topics are too many; allowed: at most 20"},
		{redelivery.Config{Delay: time.Second, Multiplier: 1.1, Attempts: 50}, "kafka.attempts: 50 make 49 retry topics; " +
			"at most 20: lower it, or raise the multiplier so that maxDelay is reached earlier"},
		{redelivery.Config{Delay: time.Minute, MaxDelay: time.Second},
			"kafka.delay: 1m0s is above maxDelay 1s; lower it or raise maxDelay"},
		{redelivery.Config{Delay: time.Millisecond}, "kafka.delay: 1ms is out of range; allowed: 100ms to 24h"},
		{redelivery.Config{Delay: time.Second, DLTStrategy: "forget"},
			`kafka.dltStrategy: "forget" is not known; allowed: dead-letter, retry-last, drop`},
		{redelivery.Config{Delay: time.Second, Naming: "uber"}, `kafka.naming: "uber" is not known; allowed: abate, spring`},
		{redelivery.Config{Delay: time.Second, Order: "fifo"},
			`kafka.order: "fifo" is not known; allowed: unordered, key, park-key`},
		{redelivery.Config{Delay: time.Second, RetryErrors: []string{"*x", ""}}, `kafka.retryErrors[1]: "" is no class of ` +
			`errors; without spaces around, * stands for anything, for example "*json.SyntaxError"`},
		{redelivery.Config{Delay: time.Second, NeverRetryErrors: []string{" x"}}, `kafka.neverRetryErrors[0]: " x" is no ` +
			`class of errors; without spaces around, * stands for anything, for example "*json.SyntaxError"`},
		{redelivery.Config{Delay: time.Second, RetrySuffix: "/retry"}, `kafka.retrySuffix: "/retry" cannot stand in the ` +
			`name of a topic; allowed: at most 100 letters, digits, dots, underscores and hyphens, for example "-retry"`},
		{redelivery.Config{Delay: time.Second, DLTSuffix: "-dlé"}, `kafka.dltSuffix: "-dlé" cannot stand in the name of a ` +
			`topic; allowed: at most 100 letters, digits, dots, underscores and hyphens, for example "-dlq"`},
		{redelivery.Config{Delay: time.Second, DLTSuffix: "-retry"}, `kafka.dltSuffix: "-retry" is the retrySuffix, too; a ` +
			`retry topic could be called like the dead-letter topic: choose another, for example "-dlq"`},
		{redelivery.Config{Delay: time.Second, Drain: redelivery.Drain{Factor: 0.5}},
			"kafka.drain.factor: 0.5 is out of range; allowed: 1 to 100"},
		{redelivery.Config{Delay: time.Second, Outage: 12 * time.Hour, Flood: redelivery.Flood{MaxHold: 13 * time.Hour}},
			"kafka.flood.maxHold: 13h0m0s is above outage 12h0m0s; lower it or raise outage: the broker would delete what is " +
				"held"},
		{redelivery.Config{Delay: time.Second, Flood: redelivery.Flood{MaxHold: 200 * time.Hour}},
			"kafka.flood.maxHold: 200h0m0s is above outage 168h0m0s; lower it or raise outage: the broker would delete what " +
				"is held"},
		{redelivery.Config{Delay: time.Second, Concurrency: 1001},
			"kafka.concurrency: 1001 is out of range; allowed: 1 to 1000"},
	} {
		p := policyfile.DefaultPolicy()
		p.Kafka = row.kafka
		err := p.Validate()
		if err == nil || err.Error() != row.want {
			t.Errorf("got  %v\nwant %s", err, row.want)
		}
		var field *abate.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%v is no FieldError", err)
		}
	}
}

func TestAKafkaSectionIsValid(t *testing.T) {
	for _, c := range []redelivery.Config{
		{},
		{Disabled: true},
		{Tiers: []time.Duration{100 * time.Millisecond, 24 * time.Hour}},
		{Tiers: ascending(20), DLTStrategy: redelivery.DropLast, Order: redelivery.ParkKey},
		{Delay: 30 * time.Second, RetryErrors: []string{"*TimeoutError"}, Naming: redelivery.NamingSpring,
			GroupInNames: true},
		{Delay: time.Second, Multiplier: 1, Attempts: 100},
		{Delay: 2 * time.Hour},
	} {
		p := policyfile.DefaultPolicy()
		p.Kafka = c
		if err := errors.Join(p.Validate(), p.WithDefaults().Validate(), p.Ineffective(),
			p.WithDefaults().Ineffective()); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestIneffectiveNamesWhatDoesNothingInKafka(t *testing.T) {
	idle := redelivery.Config{Attempts: 3, Concurrency: 8, Order: redelivery.ByKey, Drain: redelivery.Drain{MaxRate: 5}}
	drop := redelivery.Config{
		Delay: time.Second, DLTStrategy: redelivery.DropLast, DLTSuffix: "-dead", DLTRetention: time.Hour,
	}
	short := redelivery.Config{Tiers: []time.Duration{time.Second, time.Minute, time.Hour}, Timeout: 30 * time.Second}
	for _, row := range []struct {
		kafka redelivery.Config
		want  []string
	}{
		{idle, []string{
			"kafka.attempts: has no effect; set delay, for example 30s",
			"kafka.concurrency: has no effect; set tiers, for example [30s, 5m, 30m]",
			"kafka.order: has no effect; set tiers, for example [30s, 5m, 30m]",
			"kafka.drain.maxRate: has no effect; set tiers, for example [30s, 5m, 30m]",
		}},
		{drop, []string{
			"kafka.dltSuffix: has no effect; remove it, or choose dltStrategy: dead-letter",
			"kafka.dltRetention: has no effect; remove it, or choose dltStrategy: dead-letter",
		}},
		{redelivery.Config{Delay: time.Second, Concurrency: 16, Window: 8}, []string{
			"kafka.concurrency: 16 is never reached with a window of 8; raise the window, or lower it",
		}},
		{short, []string{
			"kafka.timeout: 30s is over in delivery 3 of 4; no other would follow: raise it to 1m1s or more, or ask for fewer " +
				"deliveries",
		}},
	} {
		p := policyfile.DefaultPolicy()
		p.Kafka = row.kafka
		if err := p.Ineffective(); err == nil || err.Error() != strings.Join(row.want, "\n") {
			t.Errorf("got  %v\nwant %s", err, strings.Join(row.want, "\n"))
		}
		p.Kafka.Disabled = true
		if err := p.Ineffective(); err != nil {
			t.Errorf("what is disabled has settings without effect: %v", err)
		}
	}
	drop.PoisonBatch, short.Timeout = redelivery.PoisonDeadLetter, 61*time.Second
	for _, c := range []redelivery.Config{drop, short} {
		p := policyfile.DefaultPolicy()
		p.Kafka = c
		if err := p.Ineffective(); err != nil {
			t.Error(err)
		}
	}
}

func TestAFileKeepsItsOwnTiers(t *testing.T) {
	const text = "services: {payments: {kafka: {tiers: [1s, 1m], retryErrors: [a], neverRetryErrors: [b]}}}"
	f, err := policyfile.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := f.Policy("payments")
	p.Kafka.Tiers[0], p.Kafka.RetryErrors[0], p.Kafka.NeverRetryErrors[0] = time.Hour, "x", "x"
	p, _ = f.Policy("payments")
	k := p.WithDefaults().Kafka
	if k.Tiers[0] != time.Second || k.RetryErrors[0] != "a" || k.NeverRetryErrors[0] != "b" {
		t.Errorf("the file's policy changed with the caller's lists: %+v", k)
	}
	if k.Concurrency != 1 || k.DLTSuffix != "-dlq" ||
		!slices.Equal(k.Delays(), []time.Duration{time.Second, time.Minute}) {
		t.Errorf("no defaults: %+v", k)
	}
}

func ascending(n int) []time.Duration {
	var tiers []time.Duration
	for i := range n {
		tiers = append(tiers, time.Duration(i+1)*time.Second)
	}
	return tiers
}
