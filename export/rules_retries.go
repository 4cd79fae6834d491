package export

import "time"

// degraded fires before callers see failures. It waits some minutes, because short failures are what retries are for.
func degraded() alert {
	return alert{
		name: "DependencyDegraded", severity: warning, lasts: 5 * time.Minute,
		expr: byService(ratios, "retries") + " > ON " + one(services, "allowed_retries") + " / 2\nunless ON " +
			one(ratios, "failed_calls") + " >= 0.02\nand ON " + one(services, "extra_attempts") + " > ON " + one(ratios, "few"),
		summary: "{{ $labels.service }} fails more often, and retries still hide it",
		text: "{{ $value | humanizePercentage }} of all attempts are retries, and most of them succeed: callers see " +
			"less than 2 % failures. If it gets worse, callers will see it.",
	}
}

func highRetryRate() alert {
	return alert{
		name: "HighRetryRate", severity: warning, lasts: 2 * time.Minute,
		expr: byService(ratios, "retries") + " > ON " + one(services, "allowed_retries") + "\nand ON " +
			one(services, "extra_attempts") + " > ON " + one(ratios, "few"),
		summary: "{{ $labels.service }}: {{ $value | humanizePercentage }} of all attempts are retries",
		text: "{{ $value | humanizePercentage }} of the attempts sent to {{ $labels.service }} are retries, which is high " +
			"for its policy. The service fails, or is slower than attemptTimeout.",
	}
}

// amplified alerts on more retries than the budget allows: retries without a budget, or past it. It is a page for a
// storm of all, or of so many instances. Guards cannot send more than maxRetries + 1 attempts for a call, so a storm is
// half-way there. It waits for less time than the warning, because half a window of such traffic is needed for that.
func amplified() alert {
	value := byService(ratios, "amplification")
	storm := "(" + value + " > ON 1 + " + one(services, "storm") + " and ON " + one(services, "extra_attempts") +
		" > ON " +
		one(ratios, "few") + ")"
	page := storm + " or " + instances(value, "storming_instances", ">= PAGE")
	ticket := page + " or (" + value + " and ON min_over_time(" + one(ratios, "excess") + "[M]) > 0 and ON " +
		one(ratios, "excess") + " SINCE) or " +
		instances(value, "storming_instances", "> 0")
	return alert{
		name: "RequestAmplification", lasts: time.Minute, expr: graded(page, ticket),
		summary: isPage("Retry storm: ", "") + "{{ $labels.service }} gets {{ $value | humanize }} attempts for each call",
		text: "{{ $value | humanize }} attempts are sent to {{ $labels.service }} for each call, all instances of " +
			"{{ $labels.job }} together. " + isPage("A service that can handle the calls may not be able to handle so many "+
			"attempts. It may then not recover by itself.", "That is more than the retry budget allows, here or in a few "+
			"instances: there is no budget, something retries outside of it, or there are more instances than its clients "+
			"key says."),
	}
}

func budgetExhausted() alert {
	return alert{
		name: "RetryBudgetExhausted", severity: warning, lasts: 5 * time.Minute,
		expr:    byService(services, "budget_exhausted") + " > 0",
		summary: "{{ $labels.service }} has failed for minutes, and the retry budget holds the storm back",
		text: "{{ $value | humanize }} calls a second to {{ $labels.service }} fail without another attempt, because the " +
			"retry budget is used up. The budget works; the service does not.",
	}
}
