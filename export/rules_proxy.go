package export

import (
	"fmt"
	"time"
)

// endpointsLost alerts on a proxy that does not know where a service is: discovery gets no answers and goes on with the
// last one, or no endpoint is left that is neither ejected nor unhealthy.
func endpointsLost() alert {
	share := "((label_replace(count BY (abate_proxy_discovery_up == 0), \"lost\", \"discovery\", \"\", \"\") or " +
		"label_replace(count BY (abate_proxy_endpoints_none_well), \"lost\", \"health\", \"\", \"\")) / ON group_left () " +
		one(levels, "instances") + ")"
	isHealth := func(yes, no string) string {
		return `{{ if eq $labels.lost "health" }}` + yes + "{{ else }}" + no + "{{ end }}"
	}
	return alert{
		name: "EndpointsLost", lasts: 5 * time.Minute, slow: true, expr: graded(share+" >= PAGE", share),
		summary: isHealth("No endpoint of {{ $labels.service }} is well", "{{ $labels.job }} goes on with an old list of "+
			"the endpoints of {{ $labels.service }}"),
		text: "In {{ $value | humanizePercentage }} of the instances of {{ $labels.job }} " + isHealth("all endpoints of "+
			"{{ $labels.service }} are ejected or fail their health check, or there are none.", "discovery has had no answer "+
			"about {{ $labels.service }} for minutes. The list of the last answer is kept: calls go on until the endpoints on "+
			"it are replaced."),
	}
}

// certificateEnds alerts a week before the end of a certificate, and wakes somebody on its last day. Those that live
// for a day are renewed all the time, and end within a day always: only one that is as old as it has left at most is
// not renewed as it should be, or one that has minutes left. Its age is that of the certificate, not for how long it
// was seen: a program may be younger.
func certificateEnds(t clockwork) alert {
	const labels = "(cluster, namespace, job, file)"
	const expiry, start = "abate_proxy_certificate_expiry_timestamp_seconds",
		"abate_proxy_certificate_start_timestamp_seconds"
	const left, age = expiry + " - time()", "time() - " + start
	const day = 24 * time.Hour
	within := func(d time.Duration) string {
		return fmt.Sprintf("%s < %s and %s > %[2]s", left, number(d.Seconds()*t.scale), age)
	}
	ending := within(day) + " or " + left + " < " + number(t.scale*5*time.Minute.Seconds())
	soon := "min by " + labels + " (" + ending + ")"
	page := "(" + soon + " and on " + labels + " count by " + labels + " (" + ending + ") / on " + labels + " count by " +
		labels + " (" + expiry + ") >= PAGE)"
	return alert{
		name: "CertificateEnds", lasts: time.Minute, slow: true,
		expr: gradedOn("on "+labels, page, "min by "+labels+" ("+ending+" or "+within(7*day)+")"),
		summary: "The certificate in {{ $labels.file }} of {{ $labels.job }} ends " + isPage("within a day, or has ended",
			"within a week"),
		text: "The certificate in force from {{ $labels.file }} in {{ $labels.job }} has {{ $value | humanizeDuration }} " +
			"left, in the instance where that is least, and was not renewed. After its end connections fail. A new file is " +
			"read when it is there, without a restart.",
	}
}

// policyNotInForce alerts on a policy file that was changed and not taken, and on instances that are not under the
// policy of the others. Who writes one with mistakes sees that at once, so it waits for a second try; a roll-out takes
// half an hour.
func policyNotInForce() alert {
	const by = "by (cluster, namespace, job) "
	policies := one(levels, "policies")
	isDiffer := func(yes, no string) string {
		return `{{ if eq $labels.why "differ" }}` + yes + "{{ else }}" + no + "{{ end }}"
	}
	return alert{
		name: "PolicyNotInForce", severity: warning, lasts: 5 * time.Minute, slow: true,
		expr: "label_replace(count " + by + "(abate_config_last_reload_successful == 0), \"why\", \"mistakes\", \"\", " +
			"\"\")\nor label_replace(max " + by + "(min_over_time(" + policies + "[25M]) and " + policies + " SINCE 25M) > 1, " +
			"\"why\", \"differ\", \"\", \"\")",
		summary: isDiffer("{{ $value | humanize }} policies are in force among the instances of {{ $labels.job }}",
			"{{ $labels.job }} runs under an old policy: the new file has mistakes"),
		text: isDiffer("For half an hour the instances of {{ $labels.job }} have been under {{ $value | humanize }} "+
			"different policy files. A roll-out has stopped half-way, or some did not get the new file.", "{{ $value | "+
			"humanize }} "+
			"instances of {{ $labels.job }} could not load their policy file the last time it changed, and go on with the one "+
			"before it. Their log says what to fix. When one is restarted it does not start."),
	}
}
