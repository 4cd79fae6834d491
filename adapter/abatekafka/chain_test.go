package abatekafka_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
)

func TestTopicsAndGroupsAreNamedByTheirDelays(t *testing.T) {
	issue := []time.Duration{30 * time.Second, 5 * time.Minute, 30 * time.Minute}
	same := redelivery.Config{Delay: time.Second, Multiplier: 1, Attempts: 4}
	for _, c := range []struct {
		name          string
		config        redelivery.Config
		topics, group []string
		dead          string
	}{
		{"abate", redelivery.Config{Tiers: issue},
			[]string{"payments-retry-30s", "payments-retry-5m", "payments-retry-30m"}, []string{
				"billing-retry-30s", "billing-retry-5m", "billing-retry-30m",
			}, "payments-dlq"},
		{"delay and multiplier give the same", redelivery.Config{Delay: 30 * time.Second},
			[]string{"payments-retry-30s", "payments-retry-5m", "payments-retry-30m"}, []string{
				"billing-retry-30s", "billing-retry-5m", "billing-retry-30m",
			}, "payments-dlq"},
		{"odd delays", redelivery.Config{
			Tiers: []time.Duration{
				100 * time.Millisecond, 1500 * time.Millisecond, 90 * time.Second, 90 * time.Minute, 24 * time.Hour,
			},
		},
			[]string{"payments-retry-100ms", "payments-retry-1500ms", "payments-retry-1m30s", "payments-retry-1h30m",
				"payments-retry-24h"}, nil, "payments-dlq"},
		{"group in names", redelivery.Config{Tiers: issue[:1], GroupInNames: true}, []string{"payments-billing-retry-30s"},
			[]string{"billing-retry-30s"}, "payments-billing-dlq"},
		{"suffixes", redelivery.Config{Tiers: issue[:1], RetrySuffix: ".again", DLTSuffix: ".dead"},
			[]string{"payments.again-30s"}, []string{"billing.again-30s"}, "payments.dead"},
		{"drop", redelivery.Config{Tiers: issue[:1], DLTStrategy: redelivery.DropLast}, []string{"payments-retry-30s"},
			[]string{"billing-retry-30s"}, ""},
		{"retry-last", redelivery.Config{Tiers: issue[:1], DLTStrategy: redelivery.RetryLast}, []string{"payments-retry-30s"},
			[]string{"billing-retry-30s"}, "payments-dlq"},
		{"spring", redelivery.Config{Tiers: issue, Naming: redelivery.NamingSpring},
			[]string{"payments-retry-30000", "payments-retry-300000", "payments-retry-1800000"}, []string{
				"billing-retry-30000", "billing-retry-300000", "billing-retry-1800000",
			}, "payments-dlt"},
		{"spring, the last delay again", redelivery.Config{
			Delay: time.Second, Multiplier: 2, MaxDelay: 2 * time.Second, Attempts: 5, Naming: redelivery.NamingSpring,
		},
			[]string{"payments-retry-1000", "payments-retry-2000"}, []string{"billing-retry-1000", "billing-retry-2000"},
			"payments-dlt"},
		{"spring, one topic", redelivery.Config{
			Delay: same.Delay, Multiplier: 1, Attempts: 4, Naming: redelivery.NamingSpring,
		}, []string{"payments-retry"}, []string{"billing-retry"}, "payments-dlt"},
		{"abate, one topic", same, []string{"payments-retry-1s"}, []string{"billing-retry-1s"}, "payments-dlq"},
		{"off", redelivery.Config{}, nil, nil, ""},
		{"disabled", redelivery.Config{Tiers: issue, Disabled: true}, nil, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain := abatekafka.NewChain("payments", "billing", c.config)
			var topics, groups []string
			for _, hop := range chain.Hops {
				topics, groups = append(topics, hop.Topic), append(groups, hop.Group)
			}
			if !slices.Equal(topics, c.topics) || chain.DeadLetters != c.dead ||
				c.group != nil && !slices.Equal(groups, c.group) {
				t.Errorf("topics %q, groups %q, dead letters %q", topics, groups, chain.DeadLetters)
			}
		})
	}
}
