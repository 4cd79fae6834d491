package harm

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// Table shows what came of all policies: systems that may be tuned on, and those that judge, and then the judging ones
// by kind. The same cases give the same bytes on every machine.
func Table(cases []Case, policies []Policy) string {
	var b strings.Builder
	train, test := Split(cases)
	for _, part := range []struct {
		name  string
		cases []Case
	}{{"for judging (nobody tunes on these)", test}, {"for tuning", train}} {
		if len(part.cases) == 0 {
			continue
		}
		fmt.Fprintf(&b, "Systems %s: %d\n\n", part.name, len(part.cases))
		ratios(&b, part.cases, policies)
		recovery(&b, part.cases, policies)
	}
	if len(test) == 0 {
		test = train
	}
	byKind(&b, test, policies)
	return b.String()
}

// Split separates the cases that may be tuned on from those for judging.
func Split(cases []Case) (train, test []Case) {
	for i := range cases {
		if ForTest(cases[i].System.Number) {
			test = append(test, cases[i])
		} else {
			train = append(train, cases[i])
		}
	}
	return train, test
}

func columns(b *strings.Builder) *tabwriter.Writer {
	return tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// ratios shows how much harm there is, compared with none at all and with naive retries.
func ratios(b *strings.Builder, cases []Case, policies []Policy) {
	for _, other := range []int{none, naive} {
		w := columns(b)
		name := "nothing"
		if other == naive {
			name = "naive retries"
		}
		fmt.Fprintf(w, "harm ÷ %s\tp50\tp75\tp95\tp99\tmax\t> 1.02\t[95 %%]\t< 0.9\tmean excess, points\t\n", name)
		for p := range policies {
			if p == other {
				continue
			}
			x := compare(cases, p, other)
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s %%\t%s-%s\t%s %%\t%+.2f\t\n", policies[p].Name, times(x.P50),
				times(x.P75), times(x.P95), times(x.P99), times(x.Most), hundredth(share(x.Worse, x.Systems)),
				hundredth(x.Low), hundredth(x.High), hundredth(share(x.Better, x.Systems)), x.Excess)
		}
		w.Flush()
		b.WriteString("\n")
	}
}

// recovery shows how soon goodput is back, and what healthy days cost.
func recovery(b *strings.Builder, cases []Case, policies []Policy) {
	w := columns(b)
	f := Sum(cases, "", none)
	fmt.Fprintf(w, "\tback, where nothing needs > 1 s (%d runs)\twith 10/s per instance (%d runs)\t"+
		"> 1 s, where nothing does not (%d runs)\thealthy days > 0.1 point worse (%d)\tworst, points\t\n",
		f.SlowRuns, f.BusyRuns, f.QuickRuns, f.HealthyDays)
	for p := range policies {
		f := Sum(cases, policies[p].Name, p)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s %%\t%s %%\t%.2f\t\n", f.Policy, back(f.Back), back(f.BusyBack),
			hundredth(share(f.Late, f.QuickRuns)), hundredth(share(f.Hurt, f.HealthyDays)), f.MostHurt)
	}
	w.Flush()
	b.WriteString("\n")
}

// back writes a time to recovery.
func back(seconds float64) string {
	if seconds == neverSeconds {
		return "never"
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// byKind shows in which share of the systems of each kind a policy does harm.
func byKind(b *strings.Builder, cases []Case, policies []Policy) {
	w := columns(b)
	fmt.Fprintf(w, "worse than nothing, by kind\tsystems\t")
	for p := 1; p < len(policies); p++ {
		fmt.Fprintf(w, "%s\tworst\t", policies[p].Name)
	}
	fmt.Fprintln(w)
	for k := range Kinds {
		var of []Case
		for i := range cases {
			if cases[i].System.Kind == k {
				of = append(of, cases[i])
			}
		}
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t", k, len(of))
		for p := 1; p < len(policies); p++ {
			worse, worst := 0, 0.0
			for i := range of {
				ratio := of[i].Ratio(p, none)
				worse += one(ratio > worseRatio)
				worst = math.Max(worst, ratio)
			}
			fmt.Fprintf(w, "%s %%\t%s\t", hundredth(share(worse, len(of))), times(worst))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// hundredth writes a share in hundredths.
func hundredth(share float64) string { return fmt.Sprintf("%.1f", perHundred*share) }

// times writes a ratio.
func times(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
