package harm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/engine"
)

// Bad is a system that a policy leaves worse off than nothing.
type Bad struct {
	Case   *Case
	Policy int
	Ratio  float64
}

// Worst returns the systems with the largest ratios, at most so many, the worst first. Each system is there once, with
// the worst of the policies that count, which the first two do not; with a nil function all others do.
func Worst(cases []Case, policies []Policy, most int, counts func(p *Policy) bool) []Bad {
	var all []Bad
	for i := range cases {
		worst := Bad{Case: &cases[i], Ratio: worseRatio}
		for p := naive + 1; p < len(policies); p++ {
			if ratio := cases[i].Ratio(p, none); ratio > worst.Ratio && (counts == nil || counts(&policies[p])) {
				worst.Policy, worst.Ratio = p, ratio
			}
		}
		if worst.Policy > 0 {
			all = append(all, worst)
		}
	}
	slices.SortStableFunc(all, func(a, b Bad) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return all[:min(most, len(all))]
}

// Line says in one line which system it is, how bad, and how its requests ended more often than without any policy.
func (b *Bad) Line(policies []Policy) string {
	s := b.Case.System
	return fmt.Sprintf("system %d (%s), %s: %s × the harm, %.1f instead of %.1f %%; %s; %s", s.Number, s.Kind,
		policies[b.Policy].Name, times(b.Ratio), b.Case.Points(b.Policy), b.Case.Points(none), b.Why(), s.Describe())
}

// Why says which ends of requests there are more of than without any policy, the most frequent first.
func (b *Bad) Why() string {
	type change struct {
		end  engine.EndKind
		more int64
	}
	var changes []change
	for k := engine.Answered + 1; k < engine.EndKinds; k++ {
		c := change{end: k}
		for i := range b.Case.Runs[b.Policy] {
			c.more += b.Case.Runs[b.Policy][i].Ends[k] - b.Case.Runs[none][i].Ends[k]
		}
		if c.more != 0 {
			changes = append(changes, c)
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(b.more, a.more) })
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = fmt.Sprintf("%s %+d", c.end, c.more)
	}
	return strings.Join(words, ", ")
}

// Describe says in a few words what a system is like.
func (s *System) Describe() string {
	x := &s.Services[s.Target]
	return fmt.Sprintf("%s/s, %d instances, %d services, %s: %d × %d workers, %s, %.0f %% used", number(s.Rate),
		s.Instances, len(s.Services), x.Name, x.Replicas, x.Workers, x.Time, perHundred*x.Utilisation)
}

// File returns the system as a scenario file, in which the policy fails what is met without any policy: the middle
// between the two in half of the runs, since single runs of a small system differ by more than the policies do. What
// the judge saw stands in the file, for it made few runs: what it was may be chance.
func (b *Bad) File(policies []Policy) string {
	with, without := b.Case.Points(b.Policy), b.Case.Points(none)
	nothing, policy := policies[none].Name, policies[b.Policy].Name
	met := fmt.Sprintf("goodput > %.3f%% in 50%% of runs", perHundred-(with+without)/2)
	number := fmt.Sprintf("from the number %d.\n", b.Case.System.Number)
	about := fmt.Sprintf("%s In the %d runs of the judge %.1f %% of the requests under %s were not answered in time, and "+
		"%.1f %% under %s. Expected of both is the middle, in half of the runs.\n", strings.TrimSpace(number),
		len(b.Case.Runs[b.Policy]), with, policy, without, nothing)
	text := b.Case.System.Text(policies, map[string]string{nothing: met, policy: met})
	return "# " + b.Line(policies) + "\n" + strings.Replace(text, number, about, 1)
}
