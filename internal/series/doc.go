// Package series counts, and shows what was counted to Prometheus: in its text format 0.0.4, and as OpenMetrics 1.0.
//
//	var calls = series.NewCounters(series.NewDesc("calls_total", "Calls by how they ended.", "outcome"))
//	failed := calls.With("failure") // resolved once
//	failed.Inc()                    // one atomic addition
//
//	var registry series.Registry
//	err := registry.Register(calls)
//	mux.Handle("GET /metrics", series.Handler(&registry))
//
// Counters and histograms count by atomic additions and allocate nothing. What is a number of a moment (the state of a
// circuit, the length of a queue) is read by a Collector when somebody asks, and sent as a Sample.
//
// It has what the metrics of this repository need, and no more: no gauges that are set, no summaries that observe, no
// native histograms, no protobuf. Names and help are ours and are trusted; values of labels are not.
package series
