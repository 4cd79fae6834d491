package abatekafka

import (
	"reflect"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/redelivery"
)

// view is the policy in force, and what follows from it.
type view struct {
	policy *abate.Policy
	c      redelivery.Config
	plan   *redelivery.Plan
}

// view is the policy in force. It costs one comparison as long as nothing was reloaded.
func (r *running) view() *view {
	if v := r.current.Load(); v.policy == r.c.Guard.Describe() {
		return v
	}
	return r.reloaded()
}

// reloaded takes over a policy that was reloaded, but for what names topics: those were checked when Run began.
func (r *running) reloaded() *view {
	r.reload.Lock()
	defer r.reload.Unlock()
	policy := r.c.Guard.Describe()
	before := r.current.Load()
	if before.policy == policy {
		return before
	}
	c := policy.Kafka.WithDefaults()
	if kept := keepNames(c, r.names); !reflect.DeepEqual(kept, c) {
		r.log.Warn("the policy file changes the retry topics or what is fixed while a consumer runs; those stay as they were until the consumer is restarted",
			"keys", "kafka.tiers, delay, naming, suffixes, groupInNames, order, exactlyOnce, dltStrategy from or to dead-letter")
		c = kept.WithDefaults() // a section that was taken away had none
	}
	v := &view{policy: policy, c: c, plan: redelivery.NewPlan(c)}
	r.pace.Reconfigure(c.Drain)
	r.flood.Reconfigure(c.Flood)
	r.current.Store(v)
	return v
}

// keepNames returns c with everything of names on which topics, groups, clients and lanes depend.
func keepNames(c, names redelivery.Config) redelivery.Config {
	c.Disabled = names.Disabled
	c.Tiers, c.Delay, c.Multiplier, c.MaxDelay, c.Attempts = names.Tiers, names.Delay, names.Multiplier, names.MaxDelay, names.Attempts
	c.Naming, c.RetrySuffix, c.DLTSuffix, c.GroupInNames = names.Naming, names.RetrySuffix, names.DLTSuffix, names.GroupInNames
	c.Order, c.ExactlyOnce = names.Order, names.ExactlyOnce
	if (c.DLTStrategy == redelivery.DeadLetters) != (names.DLTStrategy == redelivery.DeadLetters) {
		c.DLTStrategy = names.DLTStrategy
	}
	return c
}
