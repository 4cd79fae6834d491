package main

import (
	"fmt"
	"time"
)

// metric names one measured number.
type metric string

const (
	rate        metric = "req/s"
	medianMs    metric = "p50 ms"
	tailMs      metric = "p99 ms"
	cpu         metric = "CPU-s/10k"
	cpuEach     metric = "CPU µs"
	upstreamCPU metric = "upstream"
	loadCPU     metric = "load"
	memory      metric = "RSS MB"
	others      metric = "others"

	perConnection metric = "KB/conn"
	before        metric = "RSS before MB"
	after         metric = "RSS after MB"

	lengthRate  metric = "GB/s length"
	chunkedRate metric = "GB/s chunked"
	peak        metric = "peak RSS MB"
	growth      metric = "growth MB"
	cpuPerGB    metric = "CPU-s/GB"
)

// sample is what one run measured.
type sample map[metric]float64

// loadMode measures what a request costs.
func loadMode(opt options) mode {
	return mode{
		title: fmt.Sprintf("%d keep-alive connections, %v a run; CPU seconds per 10,000 requests", connections,
			opt.duration),
		clients: connections,
		repeats: 2,
		columns: []column{
			spread(rate, "%.0f"), median(medianMs, "%.2f"), spread(tailMs, "%.2f"), spread(cpu, "%.3f"),
			ratio(cpu, stdlib), ratio(cpu, haproxy), ratio(cpu, envoy),
			median(upstreamCPU, "%.3f"), median(loadCPU, "%.3f"),
			median(memory, "%.0f"), worst(others, "%.2f"),
		},
		promises: []promise{
			{what: "CPU per request, full policy", metric: cpu, peer: stdlib, limit: 0.6},
			{what: "p99, saturated", metric: tailMs, peer: haproxy, limit: 1.5},
			{what: "CPU µs per request, ingress with limit and shed on", metric: cpuEach, of: ingress, peer: ourProxy, limit: 2,
				more: true},
			{what: "CPU per request, one call in 100 traced", metric: cpu, of: traced, peer: ourProxy, limit: 1.05},
		},
		run: runLoad,
	}
}

func runLoad(l *lab, m mode, s started) (sample, error) {
	if _, err := m.drive(l, s.addr, l.opt.warmUp); err != nil {
		return nil, err
	}
	var r loadResult
	spent, seconds, err := s.watch(func() (err error) {
		r, err = m.drive(l, s.addr, l.opt.duration)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	kb, err := residentKB(s.measured().PID())
	perTenThousand := func(ticks int64) float64 { return float64(ticks) / ticksPerSecond / float64(r.requests) * 10000 }
	result := sample{
		rate:        float64(r.requests) / r.took.Seconds(),
		medianMs:    milliseconds(r.p50),
		tailMs:      milliseconds(r.p99),
		upstreamCPU: perTenThousand(spent.upstream),
		loadCPU:     perTenThousand(spent.ours - spent.target - spent.upstream),
		others:      spent.others(seconds),
	}
	if s.proxy != nil {
		result[cpu], result[memory] = perTenThousand(spent.target), float64(kb)*kib/mib
		result[cpuEach] = 100 * result[cpu]
	}
	return result, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
