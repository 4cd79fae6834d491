package main

import (
	"fmt"
	"time"
)

// unaryShapes are the loads of gRPC calls: connections without and with much at once on each.
var unaryShapes = []unaryLoad{{32, 1}, {4, 64}}

// notOverGRPC are the targets that take no part in gRPC: the first speaks no HTTP/2, the others are abate once more.
var notOverGRPC = []string{fast, ingress, traced}

// unaryMode measures what a gRPC call costs.
func unaryMode(opt options, u unaryLoad) mode {
	return mode{
		title: fmt.Sprintf("gRPC, unary, h2c on both sides: %v, %v a run, %d bytes there and back; CPU seconds per "+
			"10,000 calls", u, opt.duration, bodySize),
		load:    "this command",
		without: notOverGRPC,
		clients: u.conns * u.streams,
		grpc:    true,
		repeats: 2,
		columns: []column{
			spread(rate, "%.0f"), median(medianMs, "%.2f"), spread(tailMs, "%.2f"), spread(cpu, "%.3f"),
			ratio(cpu, nginx), ratio(cpu, haproxy), ratio(cpu, envoy), median(upstreamCPU, "%.3f"), median(loadCPU, "%.3f"),
			median(memory, "%.0f"), worst(others, "%.2f"),
		},
		promises: []promise{
			{what: fmt.Sprintf("CPU per gRPC call, full policy, %d × %d", u.conns, u.streams), metric: cpu,
				peer: nginx, limit: 1},
			{what: fmt.Sprintf("CPU per gRPC call, full policy, %d × %d (aim)", u.conns, u.streams), metric: cpu, peer: haproxy,
				limit: 1.3},
			{what: "the same", metric: cpu, peer: envoy, limit: 0.5},
		},
		run: runLoad,
		drive: func(l *lab, addr string, duration time.Duration) (loadResult, error) {
			return u.drive(l.ctx, addr, duration)
		},
	}
}
