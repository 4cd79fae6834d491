//go:build !race

package rehearse

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// stormSeries are the counters of an instance that sends extra extra attempts for each of its ten calls a second. It is
// scraped at every such scrape of the test.
func stormSeries(labels string, extra float64, every int, end time.Duration) (all []inputSeries) {
	counted := func(metric string, perSecond float64) inputSeries {
		var values strings.Builder
		for i := range int(end / scraping) {
			if i%every != 0 {
				values.WriteString("_ ")
				continue
			}
			fmt.Fprintf(&values, "%v ", perSecond*float64(i)*scraping.Seconds())
		}
		return inputSeries{metric + "{" + labels + "}", strings.TrimSpace(values.String())}
	}
	return []inputSeries{counted("abate_first_attempts_total", 10), counted("abate_calls_ended_total", 10),
		counted("abate_extra_attempts_total", 10*extra), counted("abate_retries_total", 10*extra),
		{"abate_attempts_running{" + labels + "}", fmt.Sprintf("1x%d", end/scraping)}}
}

// storms wants a retry storm to be told of these and of no others, by a label.
func storms(by string, of ...string) exprTest {
	x := exprTest{Expr: fmt.Sprintf(`count by (%s) (ALERTS{alertstate="firing", alertname="RequestAmplification"})`, by),
		At: "20m"}
	for _, v := range of {
		x.Samples = append(x.Samples, sample{fmt.Sprintf("{%s=%q}", by, v), 1})
	}
	return x
}

func TestOneNameInTwoNamespacesAndTwoClustersIsFourServices(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const end = 21 * time.Minute
	var series []inputSeries
	for _, place := range []string{`namespace="a", cluster="east"`, `namespace="b", cluster="east"`,
		`namespace="a", cluster="west"`, `namespace="b", cluster="west"`} {
		extra := 0.0
		if place == `namespace="b", cluster="west"` {
			extra = 2
		}
		series = append(series, stormSeries(`service="s", job="shop", instance="1", `+place, extra, 1, end)...)
	}
	rulesHold(t, rulesOf(t, "defaults: {}"), ruleTest{Series: series,
		Exprs: []exprTest{storms("namespace", "b"), storms("cluster", "west")}})
}

// Rules for the slowest scrape see the instances that are scraped more often too.
func TestRulesForTheSlowestScrapeSeeWhateverIsScrapedMoreOften(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	const end = 21 * time.Minute
	series := append(stormSeries(`service="slow", job="shop", instance="1"`, 2, 4, end),
		stormSeries(`service="quick", job="shop", instance="1"`, 2, 1, end)...)
	rulesHold(t, rulesOf(t, "defaults: {}", "--scrape", "1m"), ruleTest{Series: series,
		Exprs: []exprTest{storms("service", "quick", "slow")}})
	rulesHold(t, rulesOf(t, "defaults: {}"), ruleTest{Series: series, Exprs: []exprTest{storms("service", "quick")}})
}
