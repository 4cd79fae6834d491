package proxy

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/tracing"
)

// The metrics of the proxy itself. Those of services and gates are in internal/metrics.
var (
	clientsDesc = series.NewDesc("abate_proxy_connections", "Clients that are connected and have a slot.")
	mostDesc    = series.NewDesc("abate_proxy_connections_limit",
		"How many clients may have one at once: --max-connections, "+
			"or what follows from the number of files that the process may have open. Not shown without a limit.")
	waitingDesc = series.NewDesc("abate_proxy_connections_waiting",
		"Clients that wait for a slot, those in the queue of the kernel included where it tells (Linux).")
	waitedDesc = series.NewDesc("abate_proxy_connections_waited_total",
		"Clients that had to wait for a slot before they were served.")
	upstreamSlotsDesc = series.NewDesc("abate_proxy_upstream_waiting",
		"Attempts that wait for a connection to a service, "+
			"because one client has taken what there is for more than one request of a client at a time.")
	buildDesc = series.NewDesc("abate_build_info", "Always 1: the labels say which program this is. Two versions for "+
		"long mean that a roll-out has stopped half-way.", "version", "revision", "goversion")
	policyDesc = series.NewDesc("abate_policy_info", "Always 1: the label is the SHA-256 of the policy file. "+
		"Instances of one fleet that differ for long do not act alike: one has not got the new file, or refuses it, see "+
		"abate_config_last_reload_successful.", "hash")
	reloadedDesc = series.NewDesc("abate_config_last_reload_successful", "1 if the policy file was loaded the last "+
		"time it changed, 0 if it has mistakes: then the policy before it is in force, and the log says what to fix.")
	reloadedAtDesc = series.NewDesc("abate_config_last_reload_success_timestamp_seconds", "When the policy file in "+
		"force was loaded. Next to the time of an incident it says whether a change came before.")
	spansDesc = series.NewDesc("abate_trace_spans_exported_total", "Spans that the collector has taken, or that were "+
		"written to the trace file. Not shown while no traces are recorded.")
	lostSpansDesc = series.NewDesc("abate_trace_spans_dropped_total", "Spans that are lost; requests are not. "+
		"queue_full: more are recorded than the collector takes, record a smaller share; collector: it is away or refuses "+
		"them, the log says why; file: the trace file cannot be written.", "reason")
	queuedSpansDesc = series.NewDesc("abate_trace_spans_queued", "Spans that wait to be sent.")
	expiryDesc      = series.NewDesc("abate_proxy_certificate_expiry_timestamp_seconds",
		"When the certificate in force of a file ends, or of its authorities the one that is valid for longest, "+
			"as a Unix time.", "file")
	startDesc = series.NewDesc("abate_proxy_certificate_start_timestamp_seconds",
		"Since when the certificate of abate_proxy_certificate_expiry_timestamp_seconds is valid, as a Unix time. Its age, "+
			"beside what it has left, says whether it should have been renewed.", "file")
)

// ownMetrics reports how much room there is for clients, which program and which policy this is, and what becomes of
// spans.
type ownMetrics struct {
	lobby   *lobby
	plane   *plane
	secrets *secrets
	build   [3]string
}

// buildOf is the labels of abate_build_info: of a version that nobody has given, what the Go command knows.
func buildOf(version string) [3]string {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return [3]string{cmp.Or(version, "unknown"), revision, runtime.Version()}
}

func (m ownMetrics) Describe(send func(*series.Desc)) {
	for _, d := range []*series.Desc{clientsDesc, mostDesc, waitingDesc, waitedDesc, upstreamSlotsDesc, expiryDesc,
		startDesc, buildDesc, policyDesc, reloadedDesc, reloadedAtDesc, spansDesc, lostSpansDesc, queuedSpansDesc} {
		send(d)
	}
}

func (m ownMetrics) Collect(send func(series.Sample)) {
	p := m.lobby
	p.mu.Lock()
	connected, waiting, waited := p.connected, int(p.plane.crowd.Load()), p.stood
	for d := range p.doors {
		waiting += backlog(d.l)
	}
	p.mu.Unlock()
	gauge := func(d *series.Desc, n int) {
		send(series.Gauge(d, float64(n)))
	}
	gauge(clientsDesc, connected)
	gauge(waitingDesc, waiting)
	gauge(upstreamSlotsDesc, int(m.plane.out.upstreamSlots.waiting.Load()))
	for file, paper := range m.secrets.papers() {
		send(series.Gauge(expiryDesc, float64(paper.until.Unix()), file))
		send(series.Gauge(startDesc, float64(paper.from.Unix()), file))
	}
	if most := p.plane.config.MaxConnections; most > 0 {
		gauge(mostDesc, most)
	}
	send(series.Count(waitedDesc, float64(waited)))
	send(series.Gauge(buildDesc, 1, m.build[:]...))
	collectPolicy(send, m.plane.policies.Status())
	if t := m.plane.tracer; t != nil {
		collectSpans(send, t.Stats())
	}
}

// collectPolicy says which policy is in force.
func collectPolicy(send func(series.Sample), s policyfile.Status) {
	good := 1.0
	if s.Err != nil {
		good = 0
	}
	send(series.Gauge(policyDesc, 1, s.Hash))
	send(series.Gauge(reloadedDesc, good))
	send(series.Gauge(reloadedAtDesc, float64(s.Loaded.UnixMilli())/1000))
}

// collectSpans says what became of the spans.
func collectSpans(send func(series.Sample), s tracing.Stats) {
	lost := func(reason string, n uint64) {
		send(series.Count(lostSpansDesc, float64(n), reason))
	}
	send(series.Count(spansDesc, float64(s.Sent)))
	send(series.Gauge(queuedSpansDesc, float64(s.Queued)))
	lost("queue_full", s.Overflowed)
	lost("collector", s.Refused)
	lost("file", s.Unwritten)
}
