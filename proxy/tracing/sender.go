package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// sender brings batches of spans to the collector and to the file. One goroutine has it.
type sender struct {
	settings Settings
	client   *http.Client
	file     *os.File
	log      *slog.Logger
	stats    *stats

	failed   int    // batches in a row that the collector did not take
	lost     uint64 // spans of theirs
	fileLost bool
	buf, zip bytes.Buffer
}

func newSender(s Settings, log *slog.Logger) (*sender, error) {
	to := &sender{settings: s, log: log}
	transport, err := s.transport()
	if s.File != "" {
		var unopened error
		to.file, unopened = os.OpenFile(s.File, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err = errors.Join(err, unopened); unopened != nil {
			err = fmt.Errorf("the trace file cannot be written: %w", err)
		}
	}
	if err != nil {
		if to.file != nil {
			to.file.Close()
		}
		return nil, err
	}
	to.client = &http.Client{Transport: transport, Timeout: s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return to, nil
}

func (to *sender) close() {
	to.client.CloseIdleConnections()
	if to.file != nil {
		to.file.Close()
	}
}

// send brings a batch to both. last has it tried only once.
func (to *sender) send(ctx context.Context, spans []*Span, last func() bool) {
	if to.file != nil {
		to.write(spans)
	}
	if to.settings.Endpoint != "" {
		to.deliver(ctx, spans, last)
	}
}

// write appends a line to the file.
func (to *sender) write(spans []*Span) {
	line := append(appendJSON(to.buf.AvailableBuffer(), to.settings.Resource, to.settings.Version, spans), '\n')
	_, err := to.file.Write(line)
	switch {
	case err != nil:
		to.stats.unwritten.Add(uint64(len(spans)))
		if !to.fileLost {
			to.log.Warn("spans are lost: the trace file cannot be written", "file", to.settings.File, "error", err)
		}
	case to.settings.Endpoint == "":
		to.stats.sent.Add(uint64(len(spans)))
	}
	to.fileLost = err != nil
}

const (
	// tries is how often a batch is sent to a collector that took the one before.
	tries = 3
	// pause is the longest before the second of them; it doubles from then on.
	pause = time.Second
	// maxPause is the longest of all, and the most that a collector may ask for.
	maxPause = time.Minute
)

// deliver brings a batch to the collector. One that does not take it gets it again a few times. One that then still
// does not is tried with one batch now and then, ever more seldom: while it is away the queue runs over, which costs
// nobody anything.
func (to *sender) deliver(ctx context.Context, spans []*Span, last func() bool) {
	body := to.encode(spans)
	if to.failed > 0 && !last() {
		wait(ctx, rand.N(min(pause<<min(to.failed, 10), maxPause)), last)
	}
	var err error
	for n := range tries {
		var again bool
		var asked time.Duration
		if again, asked, err = to.post(ctx, body, len(spans)); err == nil {
			to.recovered()
			return
		}
		if !again || to.failed > 0 || n == tries-1 || ctx.Err() != nil || last() {
			break
		}
		wait(ctx, max(rand.N(pause<<n), min(asked, maxPause)), last)
	}
	to.failed++
	to.lost += uint64(len(spans))
	to.stats.refused.Add(uint64(len(spans)))
	if to.failed == 1 {
		to.log.Warn("spans are lost: the collector does not take them; requests are not affected",
			"endpoint", to.settings.Shown(), "error", err)
	}
}

// recovered says once that the collector is there again.
func (to *sender) recovered() {
	if to.failed > 0 {
		to.log.Info("the collector takes spans again", "endpoint", to.settings.Shown(), "lost", to.lost)
	}
	to.failed, to.lost = 0, 0
}

// wait waits, and looks now and then whether the Tracer is about to be closed.
func wait(ctx context.Context, d time.Duration, last func() bool) {
	const glance = 100 * time.Millisecond
	for end := time.Now().Add(d); !last(); {
		left := time.Until(end)
		if left <= 0 {
			return
		}
		timer := time.NewTimer(min(left, glance))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// encode writes the body of a request.
func (to *sender) encode(spans []*Span) []byte {
	s := &to.settings
	to.buf.Reset()
	form := appendRequest
	if s.JSON {
		form = appendJSON
	}
	to.buf.Write(form(to.buf.AvailableBuffer(), s.Resource, s.Version, spans))
	if !s.Gzip {
		return to.buf.Bytes()
	}
	to.zip.Reset()
	z := gzip.NewWriter(&to.zip)
	_, _ = z.Write(to.buf.Bytes()) // into memory
	_ = z.Close()
	return to.zip.Bytes()
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 64 << 10

// post sends a request once. again reports whether to send it again may help, and asked how long to wait before.
func (to *sender) post(ctx context.Context, body []byte, spans int) (again bool, asked time.Duration, err error) {
	s := &to.settings
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	for name, values := range s.Headers {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if s.JSON {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.Gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	req.Header.Set("User-Agent", "abate/"+s.Version)
	resp, err := to.client.Do(req)
	if said := (*url.Error)(nil); errors.As(err, &said) { // its text has the whole URL, which may have secrets
		err = said.Err
	}
	if err != nil {
		return true, 0, err
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what it says besides its status is not needed
	if resp.StatusCode/100 == 2 {
		to.taken(answer, spans)
		return false, 0, nil
	}
	switch resp.StatusCode { // those that OTLP lists
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		asked = time.Duration(min(n, 3600)) * time.Second
	}
	return again, asked, fmt.Errorf("it answered %s", resp.Status)
}

// taken counts the spans of a batch that the collector has taken, with those that it says it has not.
func (to *sender) taken(answer []byte, spans int) {
	read := rejectedIn
	if to.settings.JSON {
		read = rejectedInJSON
	}
	rejected, why := read(answer)
	rejected = min(max(rejected, 0), int64(spans))
	if rejected > 0 {
		to.log.Warn("the collector rejects spans", "endpoint", to.settings.Shown(), "rejected", rejected, "why", Clean(why))
	}
	to.stats.refused.Add(uint64(rejected))
	to.stats.sent.Add(uint64(int64(spans) - rejected))
}
