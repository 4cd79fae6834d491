//go:build !race

package rehearse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// telling is a counter under which name the rules read another one, and which counters have to grow for abateprom to
// show it.
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
			extraTells}, "abate_retries_total": {"retries", extraTells},
		"abate_calls_ended_total": {"calls", failureTells}, "abate_calls_failed_total": {"failed_calls", failureTells},
		"abate_call_refusals_total": {"", []string{"abate_call_refusals_total"}}, // of: the reason
		"abate_requests_shed_total": {"shed", shedTells}, "abate_critical_requests_arrived_total": {"critical_arrivals",
			shedTells}, "abate_critical_requests_shed_total": {"critical_shed", shedTells},
	}
)

// noticed adds to series what abateprom shows beside them while there is something to notice; simulated programs have
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
		if of := strings.TrimPrefix(strings.TrimPrefix(name, "abate_policy_"), "retry_"); of != name &&
			(of == "max_extra_attempts" || strings.HasPrefix(of, "budget_")) {
			all = append(all, inputSeries{fmt.Sprintf("abate_noticed_policy{%s, of=%q}", labels, of), s.Values})
		}
		tell, told := tellings[name]
		if shown || !told {
			continue
		}
		var growing [][]string
		for _, other := range tell.tells {
			growing = append(growing, values[other+"{"+labels+"}"])
		}
		if labels += fmt.Sprintf(", of=%q", tell.of); tell.of == "" {
			labels = strings.Replace(strings.TrimSuffix(labels, `, of=""`), "reason=", "of=", 1)
		}
		all = append(all, inputSeries{"abate_noticed_total{" + labels + "}", whileGrowing(values[s.Series], growing)})
	}
	return all
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
