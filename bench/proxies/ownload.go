package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// ownLoad does what wrk does, less well: it is there for machines without wrk.
func ownLoad(ctx context.Context, s shape, addr string, duration time.Duration) (loadResult, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	workers := make([]worker, connections)
	start := time.Now()
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { workers[i].run(ctx, s, addr) })
	}
	all.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return loadResult{}, ctx.Err()
	}
	r := loadResult{took: time.Since(start)}
	var latencies []time.Duration
	for _, w := range workers {
		latencies = append(latencies, w.latencies...)
		r.failed += w.failed
	}
	r.requests = len(latencies) + r.failed
	if len(latencies) > 0 {
		slices.Sort(latencies)
		r.p50, r.p99 = quantile(latencies, 0.50), quantile(latencies, 0.99)
	}
	return r, nil
}

// quantile returns the smallest value that is not below the share q of the sorted, non-empty values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// worker is one connection, opened again when it breaks.
type worker struct {
	latencies []time.Duration
	failed    int
}

func (w *worker) run(ctx context.Context, s shape, addr string) {
	request, buf := s.request(addr), make([]byte, 4*bodySize)
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			w.failed++
			time.Sleep(10 * time.Millisecond) // else a closed port would be asked in a tight loop
			continue
		}
		for err == nil && ctx.Err() == nil {
			start := time.Now()
			if err = exchange(conn, request, buf); err != nil {
				w.failed++
				break
			}
			w.latencies = append(w.latencies, time.Since(start))
			if s.anew {
				break
			}
		}
		conn.Close()
	}
}
