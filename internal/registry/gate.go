package registry

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/inbound"
)

type gateGauges = []Gauge[inbound.Protection, inbound.GateState]

// Gate are the policies of a gate that can be switched on and off.
var Gate = [...]Policy[inbound.Protection, inbound.GateState]{
	{
		Key:     "shed",
		Needs:   "concurrency or cpu",
		Page:    "shedding",
		Enabled: func(p *inbound.Protection) bool { return p.Shed.Enabled() },
		Gauges: gateGauges{
			{Name: "abate_concurrency_limit",
				Help: "How many requests the service may do at once. An adaptive limit that sinks and stays low says that the " +
					"service, or what it calls, has become slow.",
				Shown: limitsConcurrency,
				Read:  func(_ *inbound.Protection, s *inbound.GateState) float64 { return float64(s.Shed.Limit) }},
			{Name: "abate_concurrency_running",
				Help: "Admitted requests that the service is doing now. At abate_concurrency_limit, see " +
					"abate_concurrency_queued.",
				Shown: limitsConcurrency,
				Read:  func(_ *inbound.Protection, s *inbound.GateState) float64 { return float64(s.Shed.InFlight) }},
			{Name: "abate_concurrency_queued",
				Help: "Arriving requests that wait for a place. Above 0 for long means that the service cannot keep up: see " +
					"abate_shed_total.",
				Shown: limitsConcurrency,
				Read:  func(_ *inbound.Protection, s *inbound.GateState) float64 { return float64(s.Shed.Queued) }},
			{Name: "abate_shed_cpu_ratio",
				Help: "Share of the processor time in use, as shedding sees it. Above the protection's cpu requests are " +
					"refused.",
				Shown: func(p *inbound.Protection) bool { return p.Shed.CPU > 0 },
				Read:  func(_ *inbound.Protection, s *inbound.GateState) float64 { return s.Shed.CPU }},
			{Name: "abate_arriving_retry_ratio",
				Help: "Retries among arriving requests to first attempts. Above maxRetryShare, from 20 requests in ten seconds " +
					"on, answers say not to retry: a storm is under way, whatever its cause.",
				Read: func(_ *inbound.Protection, s *inbound.GateState) float64 { return s.Shed.RetryShare }},
		},
		Facts:   shedFacts,
		Learned: shedLearned,
	},
	{
		Key:     "rateLimit",
		Needs:   "limit",
		Page:    "rate-limit",
		Enabled: func(p *inbound.Protection) bool { return p.RateLimit.Enabled() },
		Gauges: gateGauges{
			{Name: "abate_rate_limit_keys",
				Help: "Buckets that the rate limit keeps now. At maxKeys new keys share one bucket: raise it, or choose a " +
					"coarser key.",
				Shown: keepsBuckets,
				Read:  func(_ *inbound.Protection, s *inbound.GateState) float64 { return float64(s.RateLimit.Keys) }},
			{Name: "abate_rate_limit_shared_total", Grows: true,
				Help: "Requests that found no place for a bucket of their own and shared one. If it grows, raise maxKeys or " +
					"choose a coarser key.",
				Shown: keepsBuckets,
				Read:  func(_ *inbound.Protection, s *inbound.GateState) float64 { return float64(s.RateLimit.Shared) }},
		},
		Facts: func(p *inbound.Protection, s *inbound.GateState, say Say) {
			if p.RateLimit.Enabled() {
				say("Rate limit", fmt.Sprintf("burst %d", p.RateLimit.Burst), "%s", p.RateLimit.Limit.String())
				say("Buckets", "callers with a bucket of their own", "%d", s.RateLimit.Keys)
			}
		},
		Learned: func(p *inbound.Protection, s *inbound.GateState) string {
			if !keepsBuckets(p) {
				return ""
			}
			return fmt.Sprintf("%d callers have a bucket of their own.", s.RateLimit.Keys)
		},
	},
	{ // its gauges are read from the store of the keys, not from the gate
		Key:     "idempotency",
		Needs:   "methods",
		Page:    "idempotency",
		Enabled: func(p *inbound.Protection) bool { return p.Idempotency.Enabled() },
	},
}

func limitsConcurrency(p *inbound.Protection) bool { return p.Shed.Concurrency != "" }

// keepsBuckets reports whether the buckets of the rate limit are in this process.
func keepsBuckets(p *inbound.Protection) bool { return p.Fleet == nil }

func shedFacts(p *inbound.Protection, s *inbound.GateState, say Say) {
	if !p.Shed.Enabled() {
		return
	}
	limit := "no limit"
	if s.Shed.Limit > 0 {
		limit = fmt.Sprintf("of %d", s.Shed.Limit)
	}
	say("Handled at once", strconv.Itoa(s.Shed.Queued)+" queued", "%d, %s", s.Shed.InFlight, limit)
	say("Queue delay", "of the last that left the queue", "%v", s.Shed.QueueDelay.Round(10*time.Microsecond))
	say("Retries arriving", "for each first attempt, last 10 s", "%.2f", s.Shed.RetryShare)
	if s.Shed.CPU > 0 {
		say("Processor", fmt.Sprintf("%.0f %% refused for it", 100*s.Shed.CPURefused), "%.0f %%", 100*s.Shed.CPU)
	}
	if s.Shed.Latency > 0 {
		say("Latency without load", "", "%v", s.Shed.Latency.Round(10*time.Microsecond))
	}
	if p.Shed.Shadow {
		say("Shadow", "", "sheds nothing, only says so")
	}
}

func shedLearned(p *inbound.Protection, s *inbound.GateState) string {
	var all []string
	if s.Shed.Limit > 0 {
		all = append(all, fmt.Sprintf("%d of %d places are taken, and %d requests wait for one.", s.Shed.InFlight,
			s.Shed.Limit, s.Shed.Queued))
	}
	if s.Shed.Latency > 0 {
		all = append(all, fmt.Sprintf("A request takes %v without load.", s.Shed.Latency.Round(10*time.Microsecond)))
	}
	if p.Shed.CPU > 0 {
		all = append(all, fmt.Sprintf("The processor is at %.0f %%, so %.0f %% of requests are refused.", 100*s.Shed.CPU,
			100*s.Shed.CPURefused))
	}
	return strings.Join(all, " ")
}
