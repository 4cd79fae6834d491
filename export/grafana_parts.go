package export

import "slices"

// connectionsRow is how connections come back after an outage.
func connectionsRow() boardRow {
	return boardRow{title: "Connections that come back", folded: true, panels: third([]panel{
		{title: "Pace", unit: "cps", shows: []query{{total("service", "abate_pacing_per_second"), "{{service}}"}},
			help: "Attempts, such as new connections, that all instances together may send in a second now. After an outage " +
				"it grows from rampUpFrom to perSecond; if it stays low, the circuit opens again and again."},
		{title: "Wait for a token", runbook: "ConnectionsHeldBack", unit: "s", bound: bound{guard: waitLimit}, shows: []query{
			{highest("service", "abate_pacing_wait_seconds"), "{{service}}"},
		}, help: "Of whoever asks now, in the worst instance. At maxWait attempts are refused as rate_limited. After an " +
			"outage that ends by itself; on other days perSecond is too low, or connections do not live long."},
		{title: "Refused by a pace or a rate limit", unit: "cps", shows: []query{
			{perSecond("service", "abate_call_refusals_total", `reason="rate_limited"`), "{{service}}"},
		}, help: "Callers that have to take a free connection of the pool or to try again later. A peak after an outage is " +
			"the gentle return at work; no action."},
	})}
}

// messagesRow is consumers of Kafka with retry topics, and replays of dead letters.
func messagesRow() boardRow {
	return boardRow{title: "Messages", folded: true,
		panels: third(slices.Concat(deliveries(), delays(), troubles(), drains()))}
}

// topic is the labels of one topic of a service.
const topic = "service, topic"

// deliveries is how deliveries ended, and what waits.
func deliveries() []panel {
	return []panel{
		{title: "Deliveries by how they ended", unit: "cps", stack: true, shows: []query{
			{perSecond("outcome", "abate_kafka_delivered_total"), "{{outcome}}"},
		}, help: "forwarded: failed, and waits in a retry topic. held: the service is ill and the message waits where it " +
			"is; fix the service. dead-lettered: somebody has to look."},
		{title: "Dead letters", runbook: "DeadLetterArrival", unit: "cps", stack: true, shows: []query{
			{perSecond("reason", "abate_kafka_dead_letters_total"), "{{reason}}"},
		}, help: "'abate dlq ls' groups them. permanent and never-retry: the message or its producer is wrong. exhausted " +
			"and timeout: fix what failed, then 'abate dlq replay'. poison-batch: a batch that nobody can decode."},
		{title: "Dead letters held back", runbook: "DeadLetterFlood", unit: "percentunit",
			shows: []query{{highest("service", "abate_kafka_flood_share"), "{{service}} would be given up"},
				{highest("service", "abate_kafka_flood_holding"), "{{service}} holding (1: yes)"},
				{perSecond("service", "abate_kafka_flood_held_total"), "{{service}} held per second"}},
			help: "While more than kafka.flood.share of the messages would be given up, those wait in the last retry topic. " +
				"Fix the service, or what was deployed last."},
		{title: "Not finished", unit: "none", shows: []query{{total(topic, "abate_kafka_lag"), "{{service}} {{topic}}"}},
			help: "Growing on a main topic: consumers are too few, or the handler too slow. On a retry topic most only wait " +
				"until they are due."},
		{title: "Overdue", unit: "s", bound: bound{fixed: limit{warn: 60, bad: 300}}, shows: []query{
			{highest(topic, "abate_kafka_head_age_seconds"), "{{service}} {{topic}}"},
		}, help: "How long the oldest unfinished message has been due. If it grows, a partition stands still: see " +
			"'Partitions that rest' for why; the log names partition and offset."},
	}
}

// delays is what holds messages back, and for how long.
func delays() []panel {
	return []panel{
		{title: "Partitions that rest", unit: "none", stack: true, shows: []query{
			{total("reason", "abate_kafka_paused_partitions"), "{{reason}}"},
		}, help: "circuit-open: fix the service. forward-failed: a retry or dead-letter topic takes nothing, look at the " +
			"brokers. poison-batch: see poisonBatch. pace: the drain after an outage; no action."},
		{title: "Longest rest", unit: "s", bound: bound{fixed: limit{warn: 60, bad: 300}}, shows: []query{
			{highest(topic, "abate_kafka_paused_seconds"), "{{service}} {{topic}}"},
		}, help: "Of one partition. Above 300 s, what it waits for does not fix itself: go and look."},
		{title: "Late deliveries, 99 of 100", unit: "s", bound: bound{fixed: limit{warn: 5, bad: 30}}, shows: []query{
			{tail(topic, "abate_kafka_lateness_seconds"), "{{service}} {{topic}}"},
		}, help: "How much later than due retry topics deliver. If it grows, consumers are too few or too slow, a drain " +
			"goes slowly on purpose, or partitions rest."},
		{title: "Time in the handler, 99 of 100", unit: "s", shows: []query{
			{tail(topic, "abate_kafka_handler_duration_seconds"), "{{service}} {{topic}}"},
		}, help: "Retries in the process included. If it grows, look at what the handler calls; near handlerTimeout, " +
			"messages fail for that alone."},
		{title: "Longest running handler", unit: "s", bound: bound{guard: handlerLimit}, shows: []query{
			{highest("service", "abate_kafka_oldest_handler_seconds"), "{{service}}"},
		}, help: "Above handlerTimeout it ignores its context and holds its partition: restart the consumer, then fix the " +
			"handler."},
	}
}

// troubles is what goes wrong, and what is passed over.
func troubles() []panel {
	return []panel{
		{title: "What goes wrong in consumers", unit: "cps", shows: []query{
			{perSecond(topic, "abate_kafka_forward_failures_total"), "{{service}} {{topic}} not forwarded"},
			{perSecond(topic, "abate_kafka_stuck_handlers_total"), "{{service}} {{topic}} stuck"}},
			help: "Not forwarded: a retry or dead-letter topic did not take a message; nothing is lost, the log says why. " +
				"Stuck: a handler runs on after its context has ended; restart the consumer, then fix it."},
		{title: "Passed over", unit: "cps", shows: []query{
			{perSecond(topic, "abate_kafka_duplicates_total"), "{{service}} {{topic}} twice"},
			{perSecond(topic, "abate_kafka_foreign_total"), "{{service}} {{topic}} another group's"},
			{perSecond(topic, "abate_kafka_parked_total"), "{{service}} {{topic}} parked"}},
			help: "Twice all the time: a producer or a replay sends twice. Another group's: if no such group runs any more, " +
				"set groupInNames. Parked is the order of keys at work; no action."},
		{title: "Keys that wait", unit: "none", shows: []query{{total("service", "abate_kafka_parked_keys"), "{{service}}"}},
			help: "Keys whose messages wait behind one that is being retried. It is the order park-key at work; no action, " +
				"unless it grows for hours: then look at 'Overdue'."},
		{title: "Rests begun", unit: "cps", stack: true, shows: []query{
			{perSecond("reason", "abate_kafka_pauses_total"), "{{reason}}"},
		}, help: "Times that a partition stopped. Many short ones of window-full mean that one slow message holds the " +
			"others: raise window, or look at the handler."},
	}
}

// drains is how fast backlogs and replays come to their end.
func drains() []panel {
	return []panel{
		{title: "Drain, time left", unit: "s", shows: []query{
			{highest("service", "abate_kafka_drain_eta_seconds"), "{{service}}"},
			{"max by (topic) (abate_dlq_replay_eta_seconds)", "replay of {{topic}}"},
		}, help: "About. Shown while a backlog drains or a replay waits for its consumers; with neither line, nobody knows " +
			"how long it takes, or nothing waits."},
		{title: "Drain after an outage", unit: "cps", shows: []query{
			{total("service", "abate_kafka_drain_limit"), "{{service}} allowed"},
			{total("service", "abate_kafka_normal_rate"), "{{service}} before the trouble"},
			{highest("service", "abate_kafka_draining"), "{{service}} draining (1: yes)"}},
			help: "While it drains, deliveries per second stay at what is allowed. It ends by itself; if it is too slow for " +
				"the backlog, raise drain.factor while the service can take it."},
		{title: "Partitions", unit: "none", shows: []query{{total(topic, "abate_kafka_partitions"), "{{service}} {{topic}}"}},
			help: "That the processes have. At 0 nobody reads the topic: start a consumer, or see in its log why it is not in " +
				"the group."},
		{title: "Replays of dead letters", unit: "none", shows: []query{
			{"max by (topic, result) (abate_dlq_replay_messages)", "{{topic}} {{result}}"},
			{"max by (topic) (abate_dlq_replay_batch)", "{{topic}} batch"},
			{"max by (topic) (abate_dlq_replay_running)", "{{topic}} running (1: yes)"}},
			help: "If many come back, what made them fail is not fixed: the replay stops by itself, and 'abate dlq cancel' " +
				"stops it sooner."},
	}
}

func sharedRow() boardRow {
	return boardRow{title: "Shared through Redis", folded: true, panels: third([]panel{
		{title: "Time of Redis, 99 of 100", unit: "s", shows: []query{
			{"histogram_quantile(0.99, sum by (le, op) (rate(abate_redis_duration_seconds_bucket[$__rate_interval])))",
				"{{op}}"},
		}, help: "Failures included. If it comes near the timeout, requests wait for it: look at Redis, or the network to " +
			"it."},
		{title: "Commands that failed", unit: "cps", shows: []query{
			{"sum by (op) (rate(abate_redis_errors_total[$__rate_interval]))", "{{op}}"},
		}, help: "Redis did not answer, or refused. If it grows, limits and budgets are no longer shared: fix Redis."},
		{title: "Decisions without Redis", unit: "cps", shows: []query{
			{"sum by (what) (rate(abate_redis_fallback_total[$__rate_interval]))", "{{what}}"},
		}, help: "As whenAway says. They are safe for a while; fix Redis."},
	})}
}

// handRow is what people did.
func handRow() boardRow {
	return boardRow{title: "By hand", panels: half([]panel{
		{title: "Overrides in force", runbook: "OverrideInForce", kind: timeline, unit: "none", shows: []query{
			{highest("service, override", "abate_override") + " == 1", "{{service}} {{override}}"},
		},
			words: []word{{1, "in force", "orange"}},
			help: "What somebody has put above the policy of a circuit breaker. Empty is as it should be. One that nobody " +
				"remembers is taken back on the guard's page, or by POST to it."},
		{title: "Policy changes", unit: "none", shows: []query{
			{"sum by (service) (increase(" + of("abate_policy_changes_total") + "[$__rate_interval]))", "{{service}}"},
		}, help: "Reloads and overrides. If trouble began with one, go back to the policy before it."},
	})}
}
