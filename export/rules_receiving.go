package export

import "time"

// arrivingRetries alerts on a storm that others make. A gate that has had fewer than two requests a second asks nobody
// to stop.
func arrivingRetries() alert {
	value := byService(ratios, "arriving_retries")
	return alert{
		name: "ArrivingRetries", severity: warning, lasts: 2 * time.Minute,
		expr:    value + " > ON " + one(services, "max_retry_share") + "\nand ON " + one(services, "arrivals") + " > 2",
		summary: "{{ $labels.service }} gets {{ $value | humanize }} retries for each first attempt",
		text: "Callers of {{ $labels.service }} send {{ $value | humanize }} retries for each first attempt; above " +
			"shed.maxRetryShare answers ask them to stop. The service fails, or something on the way to it does.",
	}
}

// shedRate alerts on what is refused for load: soon if it is critical, and after some minutes otherwise.
func shedRate() alert {
	crucial := byService(ratios, "critical_shed")
	page := "(" + crucial + " > 0.05) or " + instances(crucial, "shedding_instances", ">= PAGE")
	ticket := page + " or (" + byService(ratios, "shed") + " and ON min_over_time(" + one(ratios, "shed") +
		"[3M]) > 0.05 and ON " + one(ratios, "shed") + " SINCE 3M) or " + instances(crucial, "shedding_instances", "> 0")
	return alert{
		name: "ShedRate", lasts: 2 * time.Minute, expr: graded(page, ticket),
		summary: "{{ $labels.service }} refuses {{ $value | humanizePercentage }} of its " + isPage("critical ", "") +
			"requests",
		text: isPage("{{ $labels.service }} is so overloaded that it refuses {{ $value | humanizePercentage }} even of "+
			"the requests with the priorities CRITICAL and CRITICAL_PLUS.", "{{ $labels.service }} cannot handle all "+
			"requests, and refuses {{ $value | humanizePercentage }} of them with 503, the least important first; or a few "+
			"of its instances refuse critical ones."),
	}
}

// keysFull alerts long before the store of idempotency keys is full, and wakes somebody when it is: at the mean rate of
// an hour, it would hold more keys by the end of the retention than there is room for. Each instance has a store of its
// own.
func keysFull() alert {
	full := byService(levels, "full_instances")
	return alert{
		name: "IdempotencyKeysFull", slow: true,
		expr: graded(full+" >= PAGE", full+" or max BY (sum_over_time("+one(levels, "keys")+"[60W:W])) / 60 > 0.8"),
		summary: isPage("There is no room for the idempotency keys of {{ $labels.service }}",
			"{{ $labels.service }} has no room, or will have none, for its idempotency keys"),
		text: isPage("The stores of idempotency keys are full in {{ $value | humanizePercentage }} of the instances of {{ "+
			"$labels.service }}: finished requests were forgotten early, whose repeats would be done again, or new ones "+
			"refused with 503.", "At the rate of the last hour, an instance of {{ $labels.service }} would have to remember "+
			"more idempotency keys than it has room for, or the store of a few instances is full ({{ $value | "+
			"humanizePercentage }}). Then finished requests are forgotten early and their repeats are done again, or new "+
			"requests are refused."),
	}
}

// deadLetters alerts at once: the first dead letter counts, even if a process gave it up before its first scrape, so
// that the series begins with it. The hour keeps a failed scrape from making an old series look new.
func deadLetters() alert {
	const letters = "abate_kafka_dead_letters_total"
	return alert{
		name: "DeadLetterArrival", severity: warning,
		expr: "sum by (cluster, namespace, job, service, topic) (\n  (" + letters + " unless last_over_time(" + letters +
			"[60W] OFFSET))\n  or increase(" + letters + "[5W])\n) > 0",
		summary: "{{ $labels.topic }} has new dead letters",
		text: "About {{ $value | humanize }} messages of {{ $labels.topic }} have been given up and are in its " +
			"dead-letter topic. Somebody has to look at them.",
	}
}

// letterFlood alerts at once, because consumers look at a window before they hold anything.
func letterFlood() alert {
	return alert{
		name: "DeadLetterFlood", severity: warning,
		expr:    "max BY (abate_kafka_flood_share)\nand ON max BY (abate_kafka_flood_holding) > 0",
		summary: "Messages for {{ $labels.service }} are held, because too many would be dead letters",
		text: "{{ $value | humanizePercentage }} of the messages for {{ $labels.service }} would become dead letters, " +
			"so they wait in the last retry topic. Look at the service and at what was deployed last. When the cause is " +
			"fixed, the messages are delivered automatically.",
	}
}
