// Written by "abate export mixin". The same for every policy: the thresholds are metrics of the policy that
// is in force (abate_policy_...), so that this file does not change when the policy does.
// A monitoring mixin. The dashboard is what "abate export grafana" writes: put it beside this file.
{
  _config+:: {
    // from which share of its instances on a program's trouble wakes somebody; that of fewer is a ticket
    pageShare: 0.25,
    // the folder of the runbook pages
    runbookURL: "https://github.com/abate-go/abate/blob/main/docs/runbooks",
    // how often Prometheus scrapes: the windows of the rules have four of these
    interval: "15s",
    // how often what changes slowly is looked at
    slowInterval: "1m",
  },
  grafanaDashboards+:: {
    'abate.json': import 'abate.json',
  },
  prometheusRules+:: {
    groups+: [{
      name: "abate-recording",
      interval: $._config.interval,
      rules: [
        {
          "record": "abate:service",
          "expr": "((label_replace(sum by (cluster, namespace, job, service) (rate(abate_first_attempts_total[1m])), \"of\", \"first_attempts\", \"\", \"\")\nor (sum by (cluster, namespace, job, service, of) (rate(abate_noticed_total{of=~\"extra_attempts|extra_but_retries|failed_calls|unsent_calls|budget_exhausted|shed|critical_shed\"}[1m]))\nor label_replace(sum by (cluster, namespace, job, service) (max_over_time(abate_noticed_circuit_open[1m]) * ignoring(of) (rate(abate_noticed_total{of=\"calls\"}[1m]) > bool 0)), \"of\", \"circuits_open\", \"\", \"\")))\nor ((max by (cluster, namespace, job, service, of) (abate_noticed_policy)\nor label_replace(max by (cluster, namespace, job, service) (abate_policy_fallback), \"of\", \"fallback\", \"\", \"\"))\nor (label_replace(sum by (cluster, namespace, job, service) (rate(abate_requests_arrived_total[1m])), \"of\", \"arrivals\", \"\", \"\")\nor label_replace(sum by (cluster, namespace, job, service) (abate_noticed_arriving_retry_ratio * ignoring(of) rate(abate_noticed_total{of=\"arrivals\"}[1m])), \"of\", \"arriving_retries\", \"\", \"\"))))"
        },
        {
          "record": "abate:ratio",
          "expr": "(((label_replace(abate:service{of=\"bank\"} / 60 + on (cluster, namespace, job, service) abate:service{of=\"earned_per_second\"} or on (cluster, namespace, job, service) abate:service{of=\"bank\"} / 60, \"of\", \"few\", \"\", \"\")\nor (label_replace(1 + abate:service{of=\"extra_attempts\"} / on (cluster, namespace, job, service) abate:service{of=\"first_attempts\"}, \"of\", \"amplification\", \"\", \"\")\nor label_replace((abate:service{of=\"extra_attempts\"} - on (cluster, namespace, job, service) abate:service{of=\"extra_but_retries\"} or on (cluster, namespace, job, service) abate:service{of=\"extra_attempts\"}) / on (cluster, namespace, job, service) (abate:service{of=\"extra_attempts\"} + on (cluster, namespace, job, service) abate:service{of=\"first_attempts\"}), \"of\", \"retries\", \"\", \"\")))\nor (label_replace(abate:service{of=\"extra_attempts\"} - on (cluster, namespace, job, service) abate:service{of=\"allowed_extra_attempts\"} * on (cluster, namespace, job, service) abate:service{of=\"first_attempts\"} - on (cluster, namespace, job, service) (abate:service{of=\"bank\"} / 60 + on (cluster, namespace, job, service) abate:service{of=\"earned_per_second\"} or on (cluster, namespace, job, service) abate:service{of=\"bank\"} / 60), \"of\", \"excess\", \"\", \"\")\nor (label_replace(clamp_max(abate:service{of=\"failed_calls\"} / on (cluster, namespace, job, service) (abate:service{of=\"first_attempts\"} + on (cluster, namespace, job, service) abate:service{of=\"unsent_calls\"}), 1), \"of\", \"failed_calls\", \"\", \"\")\nor label_replace(abate:service{of=\"shed\"} / on (cluster, namespace, job, service) abate:service{of=\"arrivals\"}, \"of\", \"shed\", \"\", \"\"))))\nor ((label_replace(abate:service{of=\"critical_shed\"} / on (cluster, namespace, job, service) abate:service{of=\"arrivals\"} / on (cluster, namespace, job, service) abate:level{of=\"critical_share\"}, \"of\", \"critical_shed\", \"\", \"\")\nor (label_replace(abate:service{of=\"arriving_retries\"} / on (cluster, namespace, job, service) abate:service{of=\"arrivals\"}, \"of\", \"arriving_retries\", \"\", \"\")\nor label_replace(count by (cluster, namespace, job, service) (rate(abate_noticed_total{of=\"critical_shed\"}[1m]) > ignoring(of) 0.05 * (rate(abate_noticed_total{of=\"critical_arrivals\"}[1m]) > 0.167)) / on (cluster, namespace, job, service) abate:level{of=\"gates\"}, \"of\", \"shedding_instances\", \"\", \"\")))\nor (label_replace((max by (cluster, namespace, job, service) (abate:ratio{of=\"circuit_due\"}) or on (cluster, namespace, job, service) time() + -75 + 1 * clamp(2 * max by (cluster, namespace, job, service) (abate:service{of=\"circuit_wait\"} or on (cluster, namespace, job, service) 0 * abate:service{of=\"circuits_open\"}), 60, 600)) and on (cluster, namespace, job, service) abate:service{of=\"circuits_open\"} > 0, \"of\", \"circuit_due\", \"\", \"\")\nor (label_replace(max by (cluster, namespace, job, service) (abate_policy_circuit_breaker_forced_open) and on (cluster, namespace, job, service) abate:service{of=\"unsent_calls\"}, \"of\", \"forced_open_and_called\", \"\", \"\")\nor (label_replace(abate:service{of=\"circuits_open\"}, \"of\", \"open_instances\", \"\", \"\") or label_replace(count by (cluster, namespace, job, service) ((rate(abate_noticed_total{of=\"many_extra_attempts\"}[1m]) > on (cluster, namespace, job, service) group_left () (abate:service{of=\"bank\"} / 60 + on (cluster, namespace, job, service) abate:service{of=\"earned_per_second\"} or on (cluster, namespace, job, service) abate:service{of=\"bank\"} / 60)) > ignoring(of) rate(abate_noticed_total{of=\"first_attempts\"}[1m]) * on (cluster, namespace, job, service) group_left () abate:service{of=\"storm\"}), \"of\", \"storming_instances\", \"\", \"\") or label_replace(count by (cluster, namespace, job, service) (rate(abate_noticed_total{of=\"many_failed_calls\"}[1m]) > ignoring(of) 0.5 * (rate(abate_noticed_total{of=\"calls\"}[1m]) > 0.167)), \"of\", \"failing_instances\", \"\", \"\")) / on (cluster, namespace, job, service) group_left () abate:level{of=\"instances\"}))))"
        },
      ],
    }, {
      name: "abate-slow-recording",
      interval: $._config.slowInterval,
      rules: [
        {
          "record": "abate:level",
          "expr": "((label_replace(sum by (cluster, namespace, job, service) (abate_attempts_running), \"of\", \"attempts_running\", \"\", \"\")\nor (label_replace(count by (cluster, namespace, job, service) (abate_attempts_running), \"of\", \"instances\", \"\", \"\")\nor label_replace(count by (cluster, namespace, job, service) (abate_requests_arrived_total), \"of\", \"gates\", \"\", \"\")))\nor ((label_replace(sum by (cluster, namespace, job, service) (rate(abate_critical_requests_arrived_total[1m])) / sum by (cluster, namespace, job, service) (rate(abate_requests_arrived_total[1m])), \"of\", \"critical_share\", \"\", \"\")\nor label_replace(count by (cluster, namespace, job) (count by (cluster, namespace, job, hash) (abate_policy_info)), \"of\", \"policies\", \"\", \"\"))\nor (label_replace(max by (cluster, namespace, job, service) (sum without (result) (rate(abate_idempotency_total{result=\"run\"}[5m])) * abate_idempotency_retention_seconds / abate_idempotency_max_keys), \"of\", \"keys\", \"\", \"\")\nor label_replace(count by (cluster, namespace, job, service) (increase(abate_idempotency_forgotten_total[5m]) > 0 or sum without (result) (increase(abate_idempotency_total{result=\"full\"}[5m])) > 0) / on (cluster, namespace, job, service) count by (cluster, namespace, job, service) (abate_idempotency_max_keys), \"of\", \"full_instances\", \"\", \"\"))))"
        },
      ],
    }, ],
  },
  prometheusAlerts+:: {
    groups+: [{
      name: "abate-alerts",
      interval: $._config.interval,
      rules: [
        {
          "alert": "DependencyDegraded",
          "expr": "max by (cluster, namespace, job, service) (abate:ratio{of=\"retries\"}) > on (cluster, namespace, job, service) abate:service{of=\"allowed_retries\"} / 2\nunless on (cluster, namespace, job, service) abate:ratio{of=\"failed_calls\"} >= 0.02\nand on (cluster, namespace, job, service) abate:service{of=\"extra_attempts\"} > on (cluster, namespace, job, service) abate:ratio{of=\"few\"}",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ $labels.service }} fails more often, and retries still hide it",
            "description": "{{ $value | humanizePercentage }} of all attempts are retries, and most of them succeed: callers see less than 2 % failures. If it gets worse, callers will see it.",
            "runbook_url": $._config.runbookURL + "/DependencyDegraded.md"
          }
        },
        {
          "alert": "HighRetryRate",
          "expr": "max by (cluster, namespace, job, service) (abate:ratio{of=\"retries\"}) > on (cluster, namespace, job, service) abate:service{of=\"allowed_retries\"}\nand on (cluster, namespace, job, service) abate:service{of=\"extra_attempts\"} > on (cluster, namespace, job, service) abate:ratio{of=\"few\"}",
          "for": "2m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ $labels.service }}: {{ $value | humanizePercentage }} of all attempts are retries",
            "description": "{{ $value | humanizePercentage }} of the attempts sent to {{ $labels.service }} are retries, which is high for its policy. The service fails, or is slower than attemptTimeout.",
            "runbook_url": $._config.runbookURL + "/HighRetryRate.md"
          }
        },
        {
          "alert": "RequestAmplification",
          "expr": "label_replace((max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) > on (cluster, namespace, job, service) 1 + abate:service{of=\"storm\"} and on (cluster, namespace, job, service) abate:service{of=\"extra_attempts\"} > on (cluster, namespace, job, service) abate:ratio{of=\"few\"}) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"storming_instances\"} >= " + $._config.pageShare + "), \"severity\", \"critical\", \"\", \"\")\nor label_replace(((max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) > on (cluster, namespace, job, service) 1 + abate:service{of=\"storm\"} and on (cluster, namespace, job, service) abate:service{of=\"extra_attempts\"} > on (cluster, namespace, job, service) abate:ratio{of=\"few\"}) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"storming_instances\"} >= " + $._config.pageShare + ") or (max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) and on (cluster, namespace, job, service) min_over_time(abate:ratio{of=\"excess\"}[1m]) > 0 and on (cluster, namespace, job, service) abate:ratio{of=\"excess\"} offset 1m) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"storming_instances\"} > 0)) unless on (cluster, namespace, job, service) ((max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) > on (cluster, namespace, job, service) 1 + abate:service{of=\"storm\"} and on (cluster, namespace, job, service) abate:service{of=\"extra_attempts\"} > on (cluster, namespace, job, service) abate:ratio{of=\"few\"}) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"amplification\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"storming_instances\"} >= " + $._config.pageShare + ")), \"severity\", \"warning\", \"\", \"\")",
          "for": "1m",
          "annotations": {
            "summary": "{{ if eq $labels.severity \"critical\" }}Retry storm: {{ else }}{{ end }}{{ $labels.service }} gets {{ $value | humanize }} attempts for each call",
            "description": "{{ $value | humanize }} attempts are sent to {{ $labels.service }} for each call, all instances of {{ $labels.job }} together. {{ if eq $labels.severity \"critical\" }}A service that can handle the calls may not be able to handle so many attempts. It may then not recover by itself.{{ else }}That is more than the retry budget allows, here or in a few instances: there is no budget, something retries outside of it, or there are more instances than its clients key says.{{ end }}",
            "runbook_url": $._config.runbookURL + "/RequestAmplification.md"
          }
        },
        {
          "alert": "RetryBudgetExhausted",
          "expr": "max by (cluster, namespace, job, service) (abate:service{of=\"budget_exhausted\"}) > 0",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ $labels.service }} has failed for minutes, and the retry budget holds the storm back",
            "description": "{{ $value | humanize }} calls a second to {{ $labels.service }} fail without another attempt, because the retry budget is used up. The budget works; the service does not.",
            "runbook_url": $._config.runbookURL + "/RetryBudgetExhausted.md"
          }
        },
        {
          "alert": "CircuitBreakerOpen",
          "expr": "label_replace(((((max by (cluster, namespace, job, service) (abate:service{of=\"circuits_open\"}) > 0 and on (cluster, namespace, job, service) abate:ratio{of=\"circuit_due\"} <= time()) and on (cluster, namespace, job, service) abate:ratio{of=\"open_instances\"} >= " + $._config.pageShare + ")) unless on (cluster, namespace, job, service) abate:service{of=\"fallback\"}), \"severity\", \"critical\", \"\", \"\")\nor label_replace(((max by (cluster, namespace, job, service) (abate:service{of=\"circuits_open\"}) > 0 and on (cluster, namespace, job, service) abate:ratio{of=\"circuit_due\"} <= time())) unless on (cluster, namespace, job, service) (((((max by (cluster, namespace, job, service) (abate:service{of=\"circuits_open\"}) > 0 and on (cluster, namespace, job, service) abate:ratio{of=\"circuit_due\"} <= time()) and on (cluster, namespace, job, service) abate:ratio{of=\"open_instances\"} >= " + $._config.pageShare + ")) unless on (cluster, namespace, job, service) abate:service{of=\"fallback\"})), \"severity\", \"warning\", \"\", \"\")",
          "for": "2m",
          "annotations": {
            "summary": "{{ $labels.service }} does not answer: its circuit stays open in {{ $value | humanize }} instances",
            "description": "In {{ $value | humanize }} instances of {{ $labels.job }} the circuit of {{ $labels.service }} opens again and again, and calls are refused without being sent. It closes by itself when the service answers. {{ if eq $labels.severity \"critical\" }}{{ else }}Callers get the fallback, or it is a few instances of many: then look at those, not at the service.{{ end }}",
            "runbook_url": $._config.runbookURL + "/CircuitBreakerOpen.md"
          }
        },
        {
          "alert": "DependencyFailing",
          "expr": "(label_replace((((max by (cluster, namespace, job, service) (abate:ratio{of=\"failed_calls\"}) > 0.5 and on (cluster, namespace, job, service) avg_over_time(abate:service{of=\"failed_calls\"}[5m]) > 0.0333) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"failed_calls\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"failing_instances\"} >= " + $._config.pageShare + ")) unless on (cluster, namespace, job, service) abate:service{of=\"fallback\"}), \"severity\", \"critical\", \"\", \"\")\nor label_replace(((max by (cluster, namespace, job, service) (abate:ratio{of=\"failed_calls\"}) > 0.5 and on (cluster, namespace, job, service) avg_over_time(abate:service{of=\"failed_calls\"}[5m]) > 0.0333) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"failed_calls\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"failing_instances\"} >= " + $._config.pageShare + ") or (max by (cluster, namespace, job, service) (abate:ratio{of=\"failed_calls\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"failing_instances\"} > 0)) unless on (cluster, namespace, job, service) ((((max by (cluster, namespace, job, service) (abate:ratio{of=\"failed_calls\"}) > 0.5 and on (cluster, namespace, job, service) avg_over_time(abate:service{of=\"failed_calls\"}[5m]) > 0.0333) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"failed_calls\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"failing_instances\"} >= " + $._config.pageShare + ")) unless on (cluster, namespace, job, service) abate:service{of=\"fallback\"})), \"severity\", \"warning\", \"\", \"\"))\nunless on (cluster, namespace, job, service) abate_noticed_override{override=\"forcedOpen\"}\nunless on (cluster, namespace, job, service) abate:ratio{of=\"forced_open_and_called\"}\nunless on (cluster, namespace, job, service) ALERTS{alertname=\"CircuitBreakerOpen\", alertstate=\"firing\", severity=\"critical\"}\nunless on (cluster, namespace, job, service, severity) ALERTS{alertname=\"CircuitBreakerOpen\", alertstate=\"firing\"}",
          "for": "2m",
          "annotations": {
            "summary": "{{ $value | humanizePercentage }} of the calls to {{ $labels.service }} fail",
            "description": "{{ $value | humanizePercentage }} of the calls of {{ $labels.job }} to {{ $labels.service }} fail, retries included, and no circuit stays open. {{ if eq $labels.severity \"critical\" }}{{ else }}Callers get the fallback, or most fail in a few instances of many: then look at those, not at the service. {{ end }}What the attempts come to says whether the service fails or the policy refuses.",
            "runbook_url": $._config.runbookURL + "/DependencyFailing.md"
          }
        },
        {
          "alert": "OverrideInForce",
          "expr": "sum by (cluster, namespace, job, service, override) (abate_noticed_override)\nor label_replace(label_replace(max by (cluster, namespace, job, service) (max_over_time(abate:ratio{of=\"forced_open_and_called\"}[1h]) and max_over_time(abate:ratio{of=\"forced_open_and_called\"}[1h] offset 1h) and max_over_time(abate:ratio{of=\"forced_open_and_called\"}[1h] offset 2h) and max_over_time(abate:ratio{of=\"forced_open_and_called\"}[1h] offset 3h) and max_over_time(abate:ratio{of=\"forced_open_and_called\"}[1h] offset 225m)) > 0, \"override\", \"forcedOpen\", \"\", \"\"), \"by\", \"policy\", \"\", \"\")",
          "for": "15m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ if eq $labels.by \"policy\" }}{{ $labels.service }} is still switched off by the policy, and still called{{ else }}The circuit of {{ $labels.service }} is {{ $labels.override }} by hand{{ end }}",
            "description": "{{ if eq $labels.by \"policy\" }}The policy file says circuitBreaker.mode: forcedOpen for {{ $labels.service }}: {{ $labels.job }} refuses every call, and for four hours there have been calls. It stays until the file is changed.{{ else }}Somebody has overridden the circuit of {{ $labels.service }} with {{ $labels.override }} in {{ $value | humanize }} instances. The override stays until somebody removes it; a reload of the policy does not.{{ end }}",
            "runbook_url": $._config.runbookURL + "/OverrideInForce.md"
          }
        },
        {
          "alert": "ConnectionsHeldBack",
          "expr": "max by (cluster, namespace, job, service) (abate_pacing_wait_seconds) > 0\nunless on (cluster, namespace, job, service) max by (cluster, namespace, job, service) (abate_pacing_wait_seconds) <= on (cluster, namespace, job, service) 0.9 * max by (cluster, namespace, job, service) (abate_policy_pacing_max_wait_seconds)\nand on (cluster, namespace, job, service) sum by (cluster, namespace, job, service) (rate(abate_noticed_total{of=\"rate_limited\"}[1m])) > 0",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Connections to {{ $labels.service }} wait {{ $value | humanizeDuration }} for their token",
            "description": "A new connection to {{ $labels.service }} waits {{ $value | humanizeDuration }} for its token, and some are refused because they would wait longer than pacing.maxWait. The pace is too slow for the load; or it is adaptive, and connections have failed, or were refused for load.",
            "runbook_url": $._config.runbookURL + "/ConnectionsHeldBack.md"
          }
        },
        {
          "alert": "ArrivingRetries",
          "expr": "max by (cluster, namespace, job, service) (abate:ratio{of=\"arriving_retries\"}) > on (cluster, namespace, job, service) abate:service{of=\"max_retry_share\"}\nand on (cluster, namespace, job, service) abate:service{of=\"arrivals\"} > 2",
          "for": "2m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ $labels.service }} gets {{ $value | humanize }} retries for each first attempt",
            "description": "Callers of {{ $labels.service }} send {{ $value | humanize }} retries for each first attempt; above shed.maxRetryShare answers ask them to stop. The service fails, or something on the way to it does.",
            "runbook_url": $._config.runbookURL + "/ArrivingRetries.md"
          }
        },
        {
          "alert": "ShedRate",
          "expr": "label_replace((max by (cluster, namespace, job, service) (abate:ratio{of=\"critical_shed\"}) > 0.05) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"critical_shed\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"shedding_instances\"} >= " + $._config.pageShare + "), \"severity\", \"critical\", \"\", \"\")\nor label_replace(((max by (cluster, namespace, job, service) (abate:ratio{of=\"critical_shed\"}) > 0.05) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"critical_shed\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"shedding_instances\"} >= " + $._config.pageShare + ") or (max by (cluster, namespace, job, service) (abate:ratio{of=\"shed\"}) and on (cluster, namespace, job, service) min_over_time(abate:ratio{of=\"shed\"}[3m]) > 0.05 and on (cluster, namespace, job, service) abate:ratio{of=\"shed\"} offset 3m) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"critical_shed\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"shedding_instances\"} > 0)) unless on (cluster, namespace, job, service) ((max by (cluster, namespace, job, service) (abate:ratio{of=\"critical_shed\"}) > 0.05) or (max by (cluster, namespace, job, service) (abate:ratio{of=\"critical_shed\"}) and on (cluster, namespace, job, service) abate:ratio{of=\"shedding_instances\"} >= " + $._config.pageShare + ")), \"severity\", \"warning\", \"\", \"\")",
          "for": "2m",
          "annotations": {
            "summary": "{{ $labels.service }} refuses {{ $value | humanizePercentage }} of its {{ if eq $labels.severity \"critical\" }}critical {{ else }}{{ end }}requests",
            "description": "{{ if eq $labels.severity \"critical\" }}{{ $labels.service }} is so overloaded that it refuses {{ $value | humanizePercentage }} even of the requests with the priorities CRITICAL and CRITICAL_PLUS.{{ else }}{{ $labels.service }} cannot handle all requests, and refuses {{ $value | humanizePercentage }} of them with 503, the least important first; or a few of its instances refuse critical ones.{{ end }}",
            "runbook_url": $._config.runbookURL + "/ShedRate.md"
          }
        },
        {
          "alert": "DeadLetterArrival",
          "expr": "sum by (cluster, namespace, job, service, topic) (\n  (abate_kafka_dead_letters_total unless last_over_time(abate_kafka_dead_letters_total[1h] offset 5m))\n  or increase(abate_kafka_dead_letters_total[5m])\n) > 0",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ $labels.topic }} has new dead letters",
            "description": "About {{ $value | humanize }} messages of {{ $labels.topic }} have been given up and are in its dead-letter topic. Somebody has to look at them.",
            "runbook_url": $._config.runbookURL + "/DeadLetterArrival.md"
          }
        },
        {
          "alert": "DeadLetterFlood",
          "expr": "max by (cluster, namespace, job, service) (abate_kafka_flood_share)\nand on (cluster, namespace, job, service) max by (cluster, namespace, job, service) (abate_kafka_flood_holding) > 0",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "Messages for {{ $labels.service }} are held, because too many would be dead letters",
            "description": "{{ $value | humanizePercentage }} of the messages for {{ $labels.service }} would become dead letters, so they wait in the last retry topic. Look at the service and at what was deployed last. When the cause is fixed, the messages are delivered automatically.",
            "runbook_url": $._config.runbookURL + "/DeadLetterFlood.md"
          }
        },
      ],
    }, {
      name: "abate-slow-alerts",
      interval: $._config.slowInterval,
      rules: [
        {
          "alert": "ConcurrencySpike",
          "expr": "label_replace(count by (cluster, namespace, job, service) (min_over_time(abate_bulkhead_running[1m]) / abate_bulkhead_limit > 0.9), \"limit\", \"bulkhead\", \"\", \"\")\nor (min by (cluster, namespace, job, service) (min_over_time(abate:level{of=\"attempts_running\"}[1m])) > on (cluster, namespace, job, service) 4 * avg_over_time(abate:level{of=\"attempts_running\"}[1h] offset 5m) and on (cluster, namespace, job, service) abate:level{of=\"attempts_running\"} > 20 and on (cluster, namespace, job, service) count_over_time(abate:level{of=\"attempts_running\"}[1h:1m] offset 5m) > 30\nunless on (cluster, namespace, job, service) max by (cluster, namespace, job, service) (abate_bulkhead_limit))",
          "for": "1m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ if eq $labels.limit \"bulkhead\" }}The bulkhead of {{ $labels.service }} is full in {{ $value | humanize }} instances{{ else }}{{ $labels.service }} has {{ $value | humanize }} attempts in flight{{ end }}",
            "description": "{{ if eq $labels.limit \"bulkhead\" }}In {{ $value | humanize }} instances of the caller, calls to {{ $labels.service }} hold more than 90 % of the permits of the bulkhead. At 100 % further calls wait, and those that wait too long are refused.{{ else }}{{ $value | humanize }} attempts wait for {{ $labels.service }} to answer, more than four times the mean of the last hour. It has become slow, or it has more callers.{{ end }}",
            "runbook_url": $._config.runbookURL + "/ConcurrencySpike.md"
          }
        },
        {
          "alert": "IdempotencyKeysFull",
          "expr": "label_replace(max by (cluster, namespace, job, service) (abate:level{of=\"full_instances\"}) >= " + $._config.pageShare + ", \"severity\", \"critical\", \"\", \"\")\nor label_replace((max by (cluster, namespace, job, service) (abate:level{of=\"full_instances\"}) or max by (cluster, namespace, job, service) (sum_over_time(abate:level{of=\"keys\"}[1h:1m])) / 60 > 0.8) unless on (cluster, namespace, job, service) (max by (cluster, namespace, job, service) (abate:level{of=\"full_instances\"}) >= " + $._config.pageShare + "), \"severity\", \"warning\", \"\", \"\")",
          "annotations": {
            "summary": "{{ if eq $labels.severity \"critical\" }}There is no room for the idempotency keys of {{ $labels.service }}{{ else }}{{ $labels.service }} has no room, or will have none, for its idempotency keys{{ end }}",
            "description": "{{ if eq $labels.severity \"critical\" }}The stores of idempotency keys are full in {{ $value | humanizePercentage }} of the instances of {{ $labels.service }}: finished requests were forgotten early, whose repeats would be done again, or new ones refused with 503.{{ else }}At the rate of the last hour, an instance of {{ $labels.service }} would have to remember more idempotency keys than it has room for, or the store of a few instances is full ({{ $value | humanizePercentage }}). Then finished requests are forgotten early and their repeats are done again, or new requests are refused.{{ end }}",
            "runbook_url": $._config.runbookURL + "/IdempotencyKeysFull.md"
          }
        },
        {
          "alert": "EndpointsLost",
          "expr": "label_replace(((label_replace(count by (cluster, namespace, job, service) (abate_proxy_discovery_up == 0), \"lost\", \"discovery\", \"\", \"\") or label_replace(count by (cluster, namespace, job, service) (abate_proxy_endpoints_none_well), \"lost\", \"health\", \"\", \"\")) / on (cluster, namespace, job, service) group_left () abate:level{of=\"instances\"}) >= " + $._config.pageShare + ", \"severity\", \"critical\", \"\", \"\")\nor label_replace((((label_replace(count by (cluster, namespace, job, service) (abate_proxy_discovery_up == 0), \"lost\", \"discovery\", \"\", \"\") or label_replace(count by (cluster, namespace, job, service) (abate_proxy_endpoints_none_well), \"lost\", \"health\", \"\", \"\")) / on (cluster, namespace, job, service) group_left () abate:level{of=\"instances\"})) unless on (cluster, namespace, job, service) (((label_replace(count by (cluster, namespace, job, service) (abate_proxy_discovery_up == 0), \"lost\", \"discovery\", \"\", \"\") or label_replace(count by (cluster, namespace, job, service) (abate_proxy_endpoints_none_well), \"lost\", \"health\", \"\", \"\")) / on (cluster, namespace, job, service) group_left () abate:level{of=\"instances\"}) >= " + $._config.pageShare + "), \"severity\", \"warning\", \"\", \"\")",
          "for": "5m",
          "annotations": {
            "summary": "{{ if eq $labels.lost \"health\" }}No endpoint of {{ $labels.service }} is well{{ else }}{{ $labels.job }} goes on with an old list of the endpoints of {{ $labels.service }}{{ end }}",
            "description": "In {{ $value | humanizePercentage }} of the instances of {{ $labels.job }} {{ if eq $labels.lost \"health\" }}all endpoints of {{ $labels.service }} are ejected or fail their health check, or there are none.{{ else }}discovery has had no answer about {{ $labels.service }} for minutes. The list of the last answer is kept: calls go on until the endpoints on it are replaced.{{ end }}",
            "runbook_url": $._config.runbookURL + "/EndpointsLost.md"
          }
        },
        {
          "alert": "PolicyNotInForce",
          "expr": "label_replace(count by (cluster, namespace, job) (abate_config_last_reload_successful == 0), \"why\", \"mistakes\", \"\", \"\")\nor label_replace(max by (cluster, namespace, job) (min_over_time(abate:level{of=\"policies\"}[25m]) and abate:level{of=\"policies\"} offset 25m) > 1, \"why\", \"differ\", \"\", \"\")",
          "for": "5m",
          "labels": {
            "severity": "warning"
          },
          "annotations": {
            "summary": "{{ if eq $labels.why \"differ\" }}{{ $value | humanize }} policies are in force among the instances of {{ $labels.job }}{{ else }}{{ $labels.job }} runs under an old policy: the new file has mistakes{{ end }}",
            "description": "{{ if eq $labels.why \"differ\" }}For half an hour the instances of {{ $labels.job }} have been under {{ $value | humanize }} different policy files. A roll-out has stopped half-way, or some did not get the new file.{{ else }}{{ $value | humanize }} instances of {{ $labels.job }} could not load their policy file the last time it changed, and go on with the one before it. Their log says what to fix. When one is restarted it does not start.{{ end }}",
            "runbook_url": $._config.runbookURL + "/PolicyNotInForce.md"
          }
        },
        {
          "alert": "CertificateEnds",
          "expr": "label_replace((min by (cluster, namespace, job, file) (abate_proxy_certificate_expiry_timestamp_seconds - time() < 86400 and time() - abate_proxy_certificate_start_timestamp_seconds > 86400 or abate_proxy_certificate_expiry_timestamp_seconds - time() < 300) and on (cluster, namespace, job, file) count by (cluster, namespace, job, file) (abate_proxy_certificate_expiry_timestamp_seconds - time() < 86400 and time() - abate_proxy_certificate_start_timestamp_seconds > 86400 or abate_proxy_certificate_expiry_timestamp_seconds - time() < 300) / on (cluster, namespace, job, file) count by (cluster, namespace, job, file) (abate_proxy_certificate_expiry_timestamp_seconds) >= " + $._config.pageShare + "), \"severity\", \"critical\", \"\", \"\")\nor label_replace((min by (cluster, namespace, job, file) (abate_proxy_certificate_expiry_timestamp_seconds - time() < 86400 and time() - abate_proxy_certificate_start_timestamp_seconds > 86400 or abate_proxy_certificate_expiry_timestamp_seconds - time() < 300 or abate_proxy_certificate_expiry_timestamp_seconds - time() < 605000 and time() - abate_proxy_certificate_start_timestamp_seconds > 605000)) unless on (cluster, namespace, job, file) ((min by (cluster, namespace, job, file) (abate_proxy_certificate_expiry_timestamp_seconds - time() < 86400 and time() - abate_proxy_certificate_start_timestamp_seconds > 86400 or abate_proxy_certificate_expiry_timestamp_seconds - time() < 300) and on (cluster, namespace, job, file) count by (cluster, namespace, job, file) (abate_proxy_certificate_expiry_timestamp_seconds - time() < 86400 and time() - abate_proxy_certificate_start_timestamp_seconds > 86400 or abate_proxy_certificate_expiry_timestamp_seconds - time() < 300) / on (cluster, namespace, job, file) count by (cluster, namespace, job, file) (abate_proxy_certificate_expiry_timestamp_seconds) >= " + $._config.pageShare + ")), \"severity\", \"warning\", \"\", \"\")",
          "for": "1m",
          "annotations": {
            "summary": "The certificate in {{ $labels.file }} of {{ $labels.job }} ends {{ if eq $labels.severity \"critical\" }}within a day, or has ended{{ else }}within a week{{ end }}",
            "description": "The certificate in force from {{ $labels.file }} in {{ $labels.job }} has {{ $value | humanizeDuration }} left, in the instance where that is least, and was not renewed. After its end connections fail. A new file is read when it is there, without a restart.",
            "runbook_url": $._config.runbookURL + "/CertificateEnds.md"
          }
        },
      ],
    }, ],
  },
}
