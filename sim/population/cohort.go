package population

import (
	"errors"
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/sim/kernel"
)

// negligible is the share of the clients below which a cohort waits for the next slot instead of being moved.
const negligible = 1e-13

// Cohort counts the clients in groups, one for each number of retries and slot, and returns what is to be expected. It
// takes every group as spread evenly over its slot and treats all attempts of a slot alike, which is nearly true of
// many clients; see Check. Its cost grows with the number of slots and retries, not with the number of clients.
//
// What a group cannot know of its clients is an error that says so: Patience and MaxElapsed (when the request began),
// decorrelated jitter (the last delay), delays shorter than a slot.
func Cohort(c Config) (*Curve, error) {
	c, err := c.prepare()
	if err != nil {
		return nil, err
	}
	policy := retry.New(c.Retry)
	if err := groupable(&c, policy); err != nil {
		return nil, err
	}
	m := newCohorts(&c, policy)
	slot := 0
	for m.run(slot); slot+1 < c.slots() && !m.finished(slot); m.run(slot) {
		slot++
	}
	m.curve.Waiting = m.late + m.coming(slot)
	return m.curve, nil
}

// groupable returns what Exact could do and Cohort cannot.
func groupable(c *Config, policy *retry.Policy) error {
	var v validator
	p := policy.Config()
	const exact = `use the method "exact"`
	if c.Patience > 0 {
		v.add("Patience", "needs the begin of every single request, which a cohort does not know", exact+", or leave it away")
	}
	if p.MaxElapsed > 0 {
		v.add("Retry.maxElapsed", "needs the begin of every single request, which a cohort does not know",
			exact+", or leave it away")
	}
	if p.Jitter == retry.DecorrelatedJitter {
		v.add("Retry.jitter", "decorrelated needs the last delay of every single client, which a cohort does not know",
			exact+", or another jitter")
	}
	if c.Think > 0 && c.Think < c.Slot {
		v.add("Think", fmt.Sprintf("%v is shorter than a slot of %v", c.Think, c.Slot), exact+", or a shorter Slot")
	}
	for retries := range p.MaxRetries {
		if d := time.Duration(mean(delayAfter(policy, retries))); d < c.Slot {
			v.add("Retry", fmt.Sprintf("the mean delay before retry %d, %v, is shorter than a slot of %v", retries+1, d, c.Slot),
				exact+", or a shorter Slot")
			break
		}
	}
	return errors.Join(v.found...)
}

// group is the clients that have made the same number of retries.
type group struct {
	flow     *flow    // on their way to this attempt; nil until the first client comes, and for the first attempt
	now      float64  // attempts in this slot
	refused  []change // from an attempt refused at once to the next one; nil when there is none
	timedOut []change // from an attempt that was not answered in time
}

// reach is how many slots into the future the next attempts of a group can lie.
func (g *group) reach() int {
	n := 0
	for _, list := range [][]change{g.refused, g.timedOut} {
		if len(list) > 0 {
			n = max(n, list[len(list)-1].slots)
		}
	}
	return n
}

// cohorts is one run.
type cohorts struct {
	c        *Config
	groups   []group // by the number of retries made
	used     int     // groups that ever had clients
	curve    *Curve
	queue    fluid
	least    float64
	thinking float64 // clients of a closed loop between two requests
	begin    float64 // share of those that begin a request within a slot
	late     float64 // requests that end after the run
	open     float64 // requests whose end is not decided
}

func newCohorts(c *Config, policy *retry.Policy) *cohorts {
	m := &cohorts{c: c, used: 1, curve: newCurve(c), queue: newFluid(c), least: float64(negligible * float64(c.Clients))}
	for retries := range policy.Config().MaxRetries + 1 {
		delay := delayAfter(policy, retries)
		m.groups = append(m.groups, group{
			refused:  spread(delay, 0, float64(c.Slot)),
			timedOut: spread(delay, float64(c.AttemptTimeout), float64(c.Slot)),
		})
		if delay == nil {
			break
		}
	}
	if c.Think > 0 {
		m.thinking = float64(c.Clients)
		m.begin = 1 - kernel.Exp(-float64(c.Slot)/float64(c.Think))
	}
	return m
}

// first returns how many requests begin in a slot.
func (m *cohorts) first(slot int) float64 {
	if m.c.Think > 0 {
		n := float64(m.thinking * m.begin)
		m.thinking -= n
		return n
	}
	begin := time.Duration(slot) * m.c.Slot
	switch {
	case m.c.Within > 0:
		overlap := max(min(begin+m.c.Slot, m.c.Within)-begin, 0)
		return float64(float64(m.c.Clients) * (float64(overlap) / float64(m.c.Within)))
	case slot == 0:
		return float64(m.c.Clients)
	}
	return 0
}

// run moves all clients through one slot.
func (m *cohorts) run(slot int) {
	all := m.first(slot)
	m.curve.Offered[slot] = all
	m.open += all
	m.groups[0].now = all
	for i := 1; i < m.used; i++ {
		g := &m.groups[i]
		g.now = g.flow.take(slot, m.least)
		all += g.now
	}
	m.curve.Attempts[slot] = all
	fate := m.queue.slot(slot, all)
	if all > 0 {
		served := float64(all * fate.served)
		m.late += smear(m.curve.Served, fate.from, fate.to, served)
		m.open -= served
		for i := range m.used {
			m.settle(slot, i, fate)
		}
	}
	if m.c.Think > 0 {
		m.thinking += m.curve.Served[slot] + m.curve.Failed[slot]
	}
}

// settle sends the attempts of one group that failed on their way, or gives them up.
func (m *cohorts) settle(slot, i int, f fate) {
	g := &m.groups[i]
	refused, timedOut := float64(g.now*f.refused), float64(g.now*f.timedOut)
	if refused+timedOut == 0 {
		return
	}
	if g.refused == nil {
		m.open -= refused + timedOut
		m.curve.Failed[slot] += refused
		from := float64(slot) + float64(m.c.AttemptTimeout)/float64(m.c.Slot)
		m.late += smear(m.curve.Failed, from, from+1, timedOut)
		return
	}
	next := &m.groups[i+1]
	if next.flow == nil {
		next.flow = newFlow(g.reach())
		m.used = i + 2
	}
	if refused > 0 {
		next.flow.add(slot, refused, g.refused)
	}
	if timedOut > 0 {
		next.flow.add(slot, timedOut, g.timedOut)
	}
}

// coming returns how many requests are on their way to another attempt after a slot.
func (m *cohorts) coming(slot int) float64 {
	total := 0.0
	for i := 1; i < m.used; i++ {
		total += m.groups[i].flow.rest(slot)
	}
	return total
}

// finished reports whether nothing is left to happen after a slot.
func (m *cohorts) finished(slot int) bool {
	const few = 1e-10 // of the clients
	return m.c.Think == 0 && time.Duration(slot+1)*m.c.Slot >= m.c.Within && m.open <= few*float64(m.c.Clients)
}
