package export

import (
	"fmt"
	"strings"
)

// chosen selects the services, the programs and the instances that the viewer has chosen.
const chosen = `service=~"$service",job=~"$job",instance=~"$instance"`

// of is a metric of the chosen services; where narrows it down.
func of(metric string, where ...string) string {
	return metric + "{" + strings.Join(append([]string{chosen}, where...), ",") + "}"
}

// perSecond is how fast a counter grows, by the labels; all instances together.
func perSecond(by, metric string, where ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, of(metric, where...))
}

// total, highest and lowest are gauges of all instances together, or of the one that has most or least.
func total(by, metric string, where ...string) string {
	return fmt.Sprintf("sum by (%s) (%s)", by, of(metric, where...))
}

func highest(by, metric string, where ...string) string {
	return fmt.Sprintf("max by (%s) (%s)", by, of(metric, where...))
}

func lowest(by, metric string, where ...string) string {
	return fmt.Sprintf("min by (%s) (%s)", by, of(metric, where...))
}

// share is part of whole. While there is no whole there is no share, rather than none.
func share(part, whole string) string { return fmt.Sprintf("%s / (%s > 0)", part, whole) }

// tail is what 99 in 100 of a histogram's values are below, by the labels.
func tail(by, metric string) string {
	return "histogram_quantile(0.99, " + perSecond("le, "+by, metric+"_bucket") + ")"
}

// buckets is a histogram over time.
func buckets(metric string) query {
	return query{fmt.Sprintf("sum by (le) (increase(%s[$__rate_interval]))", of(metric+"_bucket")), "{{le}}"}
}

// count is how many series are left of a comparison: 0 when there are none.
func count(series string) string { return "count(" + series + ") or vector(0)" }

// What several panels ask, by service. Attempts are counted when they end and the others when they begin, so that first
// is cut at 0.
var (
	allCalls   = perSecond("service", "abate_calls_total", `outcome!="ignored"`)
	attempts   = perSecond("service", "abate_attempts_total")
	retries    = perSecond("service", "abate_retries_total")
	sent       = attempts + " + " + perSecond("service", "abate_hidden_retries_total")
	first      = fmt.Sprintf("clamp_min(%s - %s - %s, 0)", attempts, retries, perSecond("service", "abate_hedges_total"))
	retryShare = share(retries, "("+sent+")")
	timesSent  = share("("+sent+")", first)
	success    = share(perSecond("service", "abate_calls_total", `outcome="success"`), allCalls)
)

// busy keeps the services with an attempt every two seconds or more: with fewer, one retry is a large share.
func busy(series string) string { return fmt.Sprintf("(%s) and %s > 0.5", series, attempts) }
