//go:build !race

package rehearse

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
)

// telling is a counter under which name the rules read another one, and which counters have to grow for it to
// be shown.
type telling struct {
	of    string
	tells []string
}

var (
	extraTells   = []string{"abate_extra_attempts_total"}
	failureTells = []string{"abate_calls_failed_total"}
	shedTells    = []string{"abate_requests_shed_total", "abate_critical_requests_shed_total"}
	tellings     = map[string]telling{
		"abate_first_attempts_total": {"first_attempts", extraTells}, "abate_extra_attempts_total": {"extra_attempts",
			extraTells},
		"abate_calls_ended_total": {"calls", failureTells}, "abate_calls_failed_total": {"failed_calls", failureTells},
		"abate_call_refusals_total": {"", []string{"abate_call_refusals_total"}}, // of: the reason
		"abate_requests_shed_total": {"shed", shedTells}, "abate_critical_requests_arrived_total": {"critical_arrivals",
			shedTells}, "abate_critical_requests_shed_total": {"critical_shed", shedTells},
	}
)

// noticedLimits are where alerts begin that are shown beside what they are compared with.
var noticedLimits = map[string]string{
	"abate_policy_circuit_breaker_max_wait_seconds": "circuit_wait",
	"abate_policy_shed_max_retry_share":             "max_retry_share",
}

// noticed adds to series what is shown beside them while there is something to notice; simulated programs have
// shown their counters themselves.
func noticed(t testing.TB, series []inputSeries) []inputSeries {
	t.Helper()
	all, values := slices.Clone(series), map[string][]string{}
	shown := false
	for _, s := range series {
		values[s.Series] = scraped(t, s.Values)
		shown = shown || strings.HasPrefix(s.Series, "abate_noticed_total{")
	}
	for _, s := range series {
		name, labels, _ := strings.Cut(strings.TrimSuffix(s.Series, "}"), "{")
		if name == "abate_circuit_breaker_open" || name == "abate_override" {
			twin := strings.Replace(name, "abate_circuit_breaker", "abate_noticed_circuit", 1)
			twin = strings.Replace(twin, "abate_override", "abate_noticed_override", 1)
			all = append(all, inputSeries{twin + "{" + labels + "}", onlyOnes(values[s.Series])})
		}
		if policy := noticedLimits[name]; policy != "" {
			all = append(all, inputSeries{fmt.Sprintf("abate_noticed_policy{%s, of=%q}", labels, policy), s.Values})
		}
		if name == "abate_arriving_retry_ratio" {
			all = append(all, inputSeries{"abate_noticed_arriving_retry_ratio{" + labels + "}", s.Values},
				inputSeries{"abate_noticed_total{" + labels + `, of="arrivals"}`,
					strings.Join(values["abate_requests_arrived_total{"+labels+"}"], " ")})
		}
		tell, told := tellings[name]
		if shown || !told {
			continue
		}
		if _, circuit := values["abate_circuit_breaker_open{"+labels+"}"]; circuit && tell.of == "calls" {
			tell.tells = []string{name} // an open circuit shows whether it is called
		}
		var growing [][]string
		for _, other := range tell.tells {
			growing = append(growing, values[other+"{"+labels+"}"])
		}
		if labels += fmt.Sprintf(", of=%q", tell.of); tell.of == "" {
			labels = strings.Replace(strings.TrimSuffix(labels, `, of=""`), "reason=", "of=", 1)
		}
		telltale := whileGrowing(values[s.Series], growing)
		all = append(all, inputSeries{"abate_noticed_total{" + labels + "}", telltale})
		if name == "abate_extra_attempts_total" || name == "abate_first_attempts_total" { // for storms of one instance
			many := strings.Replace(labels, `of="extra_attempts"`, `of="many_extra_attempts"`, 1)
			all[len(all)-1].Series = "abate_noticed_total{" + many + "}"
		}
		if name == "abate_extra_attempts_total" { // all are hedges, but for those that are retries
			others := minus(values[s.Series], values["abate_retries_total{"+strings.Split(labels, ", of=")[0]+"}"])
			all = append(all, inputSeries{"abate_noticed_total{" + labels + "}", telltale}, inputSeries{"abate_noticed_total{" +
				strings.Replace(labels, `of="extra_attempts"`, `of="extra_but_retries"`, 1) + "}", whileGrowing(others, growing)})
		}
		if name == "abate_calls_ended_total" {
			unsent := minus(values[s.Series], values["abate_first_attempts_total{"+strings.Split(labels, ", of=")[0]+"}"])
			all = append(all, inputSeries{"abate_noticed_total{" +
				strings.Replace(labels, `of="calls"`, `of="unsent_calls"`, 1) + "}", whileGrowing(unsent, growing)})
		}
		if name == "abate_calls_failed_total" { // for instances of which most calls fail
			many := strings.Replace(labels, `of="failed_calls"`, `of="many_failed_calls"`, 1)
			all = append(all, inputSeries{"abate_noticed_total{" + many + "}", telltale})
		}
	}
	return noticedPolicies(all)
}

// oneLabel is a label of a series.
var oneLabel = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)

// otherLabels are the labels of a series but for one called of, in order.
func otherLabels(series string) string {
	labels := slices.DeleteFunc(oneLabel.FindAllString(series, -1), func(l string) bool {
		return strings.HasPrefix(l, "of=")
	})
	slices.Sort(labels)
	return strings.Join(labels, ",")
}

// noticedPolicies adds where alerts begin by the policies that series show, in place of what programs have said that
// were not added to their metrics; who shows no policy is under the default one.
func noticedPolicies(series []inputSeries) []inputSeries {
	const first = "abate_policy_max_extra_attempts{"
	most, numbers, shown := map[string]inputSeries{}, map[string]float64{}, map[string]bool{}
	for _, s := range series {
		name, _, _ := strings.Cut(s.Series, "{")
		if of, found := strings.CutPrefix(name, "abate_policy_"); found {
			value := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(s.Values, "_ ", ""), "x", " "))
			v, _ := strconv.ParseFloat(value[0], 64)
			numbers[otherLabels(s.Series)+of] = v
		}
		shown[otherLabels(s.Series)] = shown[otherLabels(s.Series)] || name == "abate_noticed_policy" &&
			strings.Contains(s.Series, `of="bank"`)
		if strings.HasPrefix(s.Series, first) {
			most[otherLabels(s.Series)] = s
		}
	}
	all := slices.DeleteFunc(slices.Clone(series), func(s inputSeries) bool {
		_, policy := most[otherLabels(s.Series)]
		return policy && strings.HasPrefix(s.Series, "abate_noticed_policy{") &&
			!strings.Contains(s.Series, "circuit_wait") && !strings.Contains(s.Series, "max_retry_share")
	})
	for _, s := range series {
		labels, usual := otherLabels(s.Series), abate.DefaultPolicy()
		allowance, _ := usual.Allowance()
		of, n := func(name string) (float64, bool) { v, found := numbers[labels+name]; return v, found }, usual.MaxRetries
		allowance.FailingRatio = 0
		if strings.HasPrefix(s.Series, first) {
			if v, found := of("retry_budget_ratio"); found {
				reserve, _ := of("retry_budget_reserve")
				failing, _ := of("retry_budget_failing_ratio")
				perSecond, _ := of("retry_budget_per_second")
				allowance = budget.Allowance{Ratio: v, FailingRatio: failing, PerSecond: perSecond, Reserve: reserve}
			}
			v, _ := of("max_extra_attempts")
			n = int(v)
		} else if _, policy := most[labels]; policy || shown[labels] || !strings.Contains(s.Series, `of="extra_attempts"`) {
			continue
		}
		all = append(all, limitSeries(labels, s.Values, allowance.Limits(n))...)
	}
	return all
}

// limitSeries shows limits where values have something.
func limitSeries(labels, values string, l budget.Limits) (all []inputSeries) {
	for of, v := range map[string]float64{"bank": l.Bank, "allowed_retries": l.Retries, "storm": l.Storm,
		"allowed_extra_attempts": l.Extra, "earned_per_second": l.PerSecond} {
		if l.Storm == 0 && (of == "storm" || of == "allowed_extra_attempts") || v == 0 && of == "earned_per_second" {
			continue
		}
		shown := strings.Fields(values)
		for i := range shown {
			if !strings.HasPrefix(shown[i], "_") && shown[i] != "stale" {
				_, times, repeated := strings.Cut(shown[i], "x")
				if shown[i] = strconv.FormatFloat(v, 'g', -1, 64); repeated {
					shown[i] += "x" + times
				}
			}
		}
		all = append(all, inputSeries{fmt.Sprintf("abate_noticed_policy{%s,of=%q}", labels, of), strings.Join(shown, " ")})
	}
	return all
}

// minus is what values are more than others; what is not there is 0.
func minus(values, others []string) []string {
	out := slices.Clone(values)
	for i, v := range values {
		if i < len(others) {
			all, err1 := strconv.ParseFloat(v, 64)
			some, err2 := strconv.ParseFloat(others[i], 64)
			if err1 == nil && err2 == nil {
				out[i] = strconv.FormatFloat(max(all-some, 0), 'g', -1, 64)
			}
		}
	}
	return out
}

// onlyOnes leaves out what is 0.
func onlyOnes(values []string) string {
	out, before := make([]string, len(values)), "_"
	for i, v := range values {
		switch {
		case v == "0" && before == "1":
			v, before = "stale", "_"
		case v == "0":
			v = "_"
		default:
			before = v
		}
		out[i] = v
	}
	return strings.Join(out, " ")
}

// whileGrowing leaves out what is later than ten minutes after one of the others has grown.
func whileGrowing(values []string, tells [][]string) string {
	out, until, last := make([]string, len(values)), -1, make([]string, len(tells))
	for i, v := range values {
		for k, other := range tells {
			if i < len(other) && other[i] != "_" && other[i] != "stale" && other[i] != "0" && other[i] != last[k] {
				last[k], until = other[i], i+int(10*time.Minute/scraping)
			}
		}
		if i >= until {
			v = "_"
		}
		out[i] = v
	}
	return strings.Join(out, " ")
}

// scraped reads the values of a series as promtool does: a+bxn are n more values than one, _xn are n.
func scraped(t testing.TB, text string) (all []string) {
	t.Helper()
	for _, part := range strings.Fields(text) {
		first, times, repeated := strings.Cut(part, "x")
		n := 0
		if repeated {
			var err error
			if n, err = strconv.Atoi(times); err != nil {
				t.Fatalf("%q: %v", part, err)
			}
		}
		if first == "_" || first == "stale" {
			all = append(all, slices.Repeat([]string{first}, max(n, 1))...)
			continue
		}
		from, step := first, ""
		if i := strings.LastIndex(first, "+"); i > 0 && first[i-1] != 'e' { // 1e+06 is a number
			from, step = first[:i], first[i+1:]
		}
		value, err := strconv.ParseFloat(from, 64)
		if err != nil {
			t.Fatalf("%q: %v", part, err)
		}
		by, _ := strconv.ParseFloat(step, 64)
		for i := range n + 1 {
			all = append(all, strconv.FormatFloat(value+by*float64(i), 'g', -1, 64))
		}
	}
	return all
}
