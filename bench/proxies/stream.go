package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// flat is how many MB a proxy may grow while a long body flows: far more than any buffer, far less than the body.
const flat = 16

// warmUpBytes flow before memory is looked at first.
const warmUpBytes = 64 * mib

// sampleEvery is how often memory is looked at while a body flows.
const sampleEvery = 100 * time.Millisecond

// streamMode measures one long answer: with a Content-Length, then chunked.
func streamMode(size byteSize) mode {
	return mode{
		title: fmt.Sprintf("one answer of %v through each, with a Content-Length and then chunked; memory every %v, growth "+
			"since the first %d MiB",
			&size, sampleEvery, warmUpBytes/mib),
		load: "this command, with net/http",
		// the first reads the whole body before it passes it on, the others move it as abate does
		without: []string{fast, ingress, traced},
		clients: connections,
		stream:  int64(size),
		repeats: 2,
		columns: []column{
			spread(lengthRate, "%.2f"), ratio(lengthRate, nginx), spread(chunkedRate, "%.2f"), ratio(chunkedRate, nginx),
			spread(cpuPerGB, "%.3f"), worst(peak, "%.1f"), worst(growth, "%.1f"), worst(others, "%.2f"),
		},
		promises: []promise{
			{what: "throughput, Content-Length", metric: lengthRate, peer: nginx, limit: 0.8, atLeast: true},
			{what: "throughput, chunked", metric: chunkedRate, peer: nginx, limit: 0.8, atLeast: true},
			{what: "memory flat: growth, MB", metric: growth, limit: flat},
		},
		run: runStream,
	}
}

func runStream(l *lab, m mode, s started) (sample, error) {
	for _, chunked := range []bool{false, true} {
		if _, err := download(l.ctx, s.addr, min(warmUpBytes, m.stream), chunked); err != nil {
			return nil, err
		}
	}
	memory, err := watchMemory(s.measured().PID())
	if err != nil {
		return nil, err
	}
	var byLength, chunked time.Duration
	spent, seconds, err := s.watch(func() (err error) {
		if byLength, err = download(l.ctx, s.addr, m.stream, false); err == nil {
			chunked, err = download(l.ctx, s.addr, m.stream, true)
		}
		return err
	})
	first, most, memErr := memory.end()
	if err = errors.Join(err, memErr); err != nil {
		return nil, err
	}
	gigabytes := float64(m.stream) / 1e9
	result := sample{
		lengthRate:  gigabytes / byLength.Seconds(),
		chunkedRate: gigabytes / chunked.Seconds(),
		others:      spent.others(seconds),
	}
	if s.proxy != nil {
		result[cpuPerGB] = float64(spent.target) / ticksPerSecond / (2 * gigabytes)
		result[peak], result[growth] = float64(most)*kib/mib, float64(most-first)*kib/mib
	}
	return result, nil
}

// download reads one long answer and throws it away. All of it must come, framed as asked for.
func download(ctx context.Context, addr string, size int64, chunked bool) (time.Duration, error) {
	url := fmt.Sprintf("http://%s/?bytes=%d", addr, size)
	if chunked {
		url += "&chunked"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ReadBufferSize: 64 * kib}
	start := time.Now()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the answer is %s", answer.Status)
	}
	if known := answer.ContentLength >= 0; known == chunked {
		return 0, fmt.Errorf("asked for chunked=%t, got a Content-Length of %d", chunked, answer.ContentLength)
	}
	got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, make([]byte, 256*kib))
	if err == nil && got != size {
		err = fmt.Errorf("got %d of %d bytes", got, size)
	}
	return time.Since(start), err
}

// memoryWatch follows the memory of a process and its children until it is ended.
type memoryWatch struct {
	pids        []int
	first, most int64 // KB
	err         error
	quit        chan struct{}
	done        sync.WaitGroup
}

func watchMemory(pid int) (*memoryWatch, error) {
	all, err := readTable()
	if err != nil {
		return nil, err
	}
	w := &memoryWatch{pids: all.tree(pid), quit: make(chan struct{})}
	if w.first, err = residentOf(w.pids); err != nil {
		return nil, err
	}
	w.done.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			now, err := residentOf(w.pids)
			if w.most = max(w.most, now); err != nil {
				w.err = err
				return
			}
			select {
			case <-w.quit:
				return
			case <-tick.C:
			}
		}
	})
	return w, nil
}

func (w *memoryWatch) end() (first, most int64, err error) {
	close(w.quit)
	w.done.Wait()
	return w.first, w.most, w.err
}
