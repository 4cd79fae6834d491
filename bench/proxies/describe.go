package main

import (
	"fmt"
	"runtime"

	"github.com/abate-go/abate/bench/program"
)

const grpcModule = "google.golang.org/grpc"

// describe says where and with what the numbers were taken.
func (l *lab) describe(m mode) []string {
	load := m.load
	switch {
	case load != "":
	case l.wrk == "":
		load = "this command (wrk is not installed)"
	default:
		load = fmt.Sprintf("wrk %s -t%d -c%d", program.Version(l.ctx, "wrk", "-v"), threads, connections)
	}
	return []string{
		program.Machine(),
		fmt.Sprintf("versions: %s, nginx %s, HAProxy %s, Envoy %s, fasthttp %s, grpc-go %s; 2 processors each",
			runtime.Version(),
			program.Version(l.ctx, "nginx", "-v"), program.Version(l.ctx, "haproxy", "-v"), l.envoyVersion(),
			program.Dependency("github.com/valyala/fasthttp"),
			program.Dependency(grpcModule)),
		fmt.Sprintf("upstream: %s; load: %s; passes: %d, interleaved: medians (min–max)", l.upstream, load,
			m.passesOf(l.opt)),
	}
}

func (l *lab) envoyVersion() string {
	if l.absent[envoy] != nil {
		return "(not installed)"
	}
	return program.EnvoyVersion
}
