//go:build !race

package rehearse

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// proxies are what n instances of a proxy show for an hour; of the first bad ones, what they show from a quarter of an
// hour to half an hour.
func proxies(n, bad int, metric, labels, usual, then string) (all []inputSeries) {
	for i := range n {
		of := fmt.Sprintf(`{job="edge", namespace="prod", instance="%d"`, i)
		values := usual + "x240"
		if i < bad {
			values = fmt.Sprintf("%sx59 %sx59 %s", usual, then, again(usual))
		}
		all = append(all, inputSeries{metric + of + labels + "}", values},
			inputSeries{"abate_attempts_running" + of + `, service="payment-service"}`, "0x240"})
	}
	return all
}

// again is a series that is as it was; one that was not there ends.
func again(usual string) string {
	if usual == "_" {
		return "stale"
	}
	return usual + "x120"
}

// told wants an alert with a severity, once for each of the labels that are named, and no other, at a time.
func told(alert, severity, label, value string, at time.Duration) exprTest {
	const firing = `count by (alertname, severity, %s) (ALERTS{alertstate="firing"})`
	return exprTest{At: prometheusTime(at), Expr: fmt.Sprintf(firing, label),
		Samples: []sample{{fmt.Sprintf(
			`{alertname=%q, severity=%q, %s=%q}`, alert, severity, label, value), 1}}}
}

// A proxy goes on with an old list of endpoints, or with none that is well: in a quarter of the instances that is a
// page, in one of ten a ticket, and for a minute nothing.
func TestEndpointsThatAreLostAreTold(t *testing.T) {
	const service = `, service="payment-service"`
	rules := rulesOf(t, everyAlertPolicy)
	var tests []ruleTest
	for what, show := range map[string][3]string{"discovery": {"abate_proxy_discovery_up", "1", "0"},
		"health": {"abate_proxy_endpoints_none_well", "_", "1"}} {
		for bad, severity := range map[int]string{1: warn, 4: pager} {
			tests = append(tests, ruleTest{Name: fmt.Sprintf("%s in %d of 10", what, bad),
				Series: proxies(10, bad, show[0], service, show[1], show[2]), Exprs: []exprTest{
					noAlert(19 * time.Minute), told("EndpointsLost", severity, "lost", what, 22*time.Minute),
					told("EndpointsLost", severity, "lost", what, 29*time.Minute), noAlertBut(time.Hour, "EndpointsLost"),
					notFiring("EndpointsLost", severity, 37*time.Minute)}})
		}
		short := proxies(10, 0, show[0], service, show[1], show[2])
		short[0].Values = fmt.Sprintf("%sx59 %sx7 %s", show[1], show[2], again(show[1]))
		tests = append(tests, ruleTest{Name: what + " for two minutes", Series: short, Exprs: []exprTest{noAlert(40 *
			time.Minute)}})
	}
	rulesHoldHoweverOften(t, 8*scraping, rules, tests...)
}

// certificate is what an instance of a proxy shows of one: when it ends, and since when it is valid.
func certificate(file, instance, ends, begins string) []inputSeries {
	of := fmt.Sprintf(`{job="edge", namespace="prod", instance=%q, file=%q}`, instance, file)
	return []inputSeries{{"abate_proxy_certificate_expiry_timestamp_seconds" + of, ends},
		{"abate_proxy_certificate_start_timestamp_seconds" + of, begins}}
}

// renewals are certificates that live for some minutes and are renewed after fewer.
func renewals(n, lives, after int) (ends, begins string) {
	for i := range n {
		ends += fmt.Sprintf("%dx%d ", (after*i+lives)*60, 4*after-1)
		begins += fmt.Sprintf("%dx%d ", after*i*60, 4*after-1)
	}
	return ends, begins
}

// At a hundredth of all times a week is 100.8 minutes and a day 14.4. A certificate that is renewed in time raises
// nothing, however short it lives; one that is not is a ticket for a week and a page for a day, also to a program that
// is younger than that.
func TestACertificateThatEndsAndIsNotRenewedIsTold(t *testing.T) {
	const ends, begins = "13200x1000", "0x1000" // after 220 minutes
	all := ruleTest{}
	show := func(series ...[]inputSeries) { all.Series = append(all.Series, slices.Concat(series...)...) }
	quiet := func(file string, until int) {
		x := noAlert(time.Duration(until) * time.Minute)
		x.Expr = strings.Replace(x.Expr, "{", fmt.Sprintf("{file=%q, ", file), 1)
		all.Exprs = append(all.Exprs, x)
	}
	is := func(file, severity string, minutes ...int) {
		for _, at := range minutes {
			all.Exprs = append(all.Exprs, exprTest{At: prometheusTime(time.Duration(at) * time.Minute),
				Expr:    fmt.Sprintf(`count by (alertname, severity) (ALERTS{alertstate="firing", file=%q})`, file),
				Samples: []sample{{fmt.Sprintf(`{alertname="CertificateEnds", severity=%q}`, severity), 1}}})
		}
	}
	show(certificate("all", "a", ends, begins), certificate("all", "b", ends, begins))
	quiet("all", 118)
	is("all", warn, 121, 204)
	is("all", pager, 207, 225)

	show(certificate("one of ten did not get the new one", "bad", ends, begins))
	for i := range 9 {
		show(certificate("one of ten did not get the new one", fmt.Sprint(i), "99999x1000", begins))
	}
	quiet("one of ten did not get the new one", 118)
	is("one of ten did not get the new one", warn, 121, 207, 225)

	for file, since := range map[string]int{"of a program younger than a week": 150, "of one younger than a day": 212} {
		away := fmt.Sprintf("_x%d ", 4*since)
		show(certificate(file, "a", away+ends, away+begins))
		quiet(file, since)
	}
	is("of a program younger than a week", warn, 152, 204)
	is("of a program younger than a week", pager, 207)
	is("of one younger than a day", pager, 214)

	for file, c := range map[string][3]int{"renewed in time": {4, 150, 60}, "lives for less than a day": {30, 13, 8}} {
		ends, begins := renewals(c[0], c[1], c[2])
		show(certificate(file, "a", ends, begins))
		quiet(file, 239)
	}
	rulesHold(t, rulesOf(t, everyAlertPolicy, "--scale", "0.01"), all)
}
