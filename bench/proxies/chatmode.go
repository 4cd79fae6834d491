package main

import (
	"fmt"
	"time"
)

const (
	sentMessages  metric = "messages"
	lost          metric = "lost"
	broken        metric = "broken streams"
	perStream     metric = "KB/stream"
	cpuPerMessage metric = "CPU-s/10k messages"
)

// chatMode keeps n gRPC streams open for a while, a message a second on each and back.
func chatMode(n int, duration time.Duration) mode {
	return mode{
		title: fmt.Sprintf("gRPC, %d streams at once for %v, %d on a connection, h2c on both sides: a message every %v on "+
			"each, which comes back; memory at its peak; direct is the upstream's", n, duration, min(n, streamsEach), chatEvery),
		load:    "this command",
		without: notOverGRPC,
		clients: n + connections,
		grpc:    true,
		chats:   n,
		passes:  1,
		columns: []column{
			median(sentMessages, "%.0f"), worst(lost, "%.0f"), worst(broken, "%.0f"), median(medianMs, "%.2f"),
			median(tailMs, "%.2f"),
			median(cpuPerMessage, "%.3f"), median(before, "%.1f"), worst(peak, "%.1f"), worst(perStream, "%.1f"),
			worst(others, "%.2f"),
		},
		promises: []promise{
			{what: "messages lost on streams", metric: lost, limit: 0},
			{what: "streams that broke", metric: broken, limit: 0},
			{what: "each open stream, KB", metric: perStream, limit: 20},
		},
		run: func(l *lab, m mode, s started) (sample, error) { return runChats(l, m, s, duration) },
	}
}

func runChats(l *lab, m mode, s started, duration time.Duration) (sample, error) {
	if need := m.chats + 8*connections; need > l.files { // whoever cannot multiplex needs a connection for each
		return nil, fmt.Errorf("%d streams may need %d open files and the limit is %d: raise it with ulimit -n", m.chats,
			need, l.files)
	}
	// so that what does not grow with streams is there
	if _, err := unaryShapes[0].drive(l.ctx, s.addr, l.opt.warmUp); err != nil {
		return nil, err
	}
	memory, err := watchMemory(s.measured().PID())
	if err != nil {
		return nil, err
	}
	var r talkResult
	spent, seconds, err := s.watch(func() (err error) {
		r, err = runTalks(l.ctx, s.addr, m.chats, duration)
		return err
	})
	first, most, memErr := memory.end()
	if err != nil {
		return nil, err
	}
	if memErr != nil {
		return nil, memErr
	}
	if r.why != nil {
		l.say("%d streams broke: the first: %v", r.broken, r.why)
	}
	result := sample{
		sentMessages: float64(r.sent),
		lost:         float64(r.sent - r.back),
		broken:       float64(r.broken),
		medianMs:     milliseconds(r.p50),
		tailMs:       milliseconds(r.p99),
		before:       float64(first) * kib / mib,
		peak:         float64(most) * kib / mib,
		perStream:    float64(most-first) / float64(m.chats),
		others:       spent.others(seconds),
	}
	if s.proxy != nil && r.sent > 0 {
		result[cpuPerMessage] = float64(spent.target) / ticksPerSecond / float64(r.sent) * 10000
	}
	return result, nil
}
