package tracing_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/proxy/tracing"
)

// collector is one without a network, which a test says how to answer.
type collector struct {
	mu     sync.Mutex
	answer func(n int) (status int, header http.Header, body string, err error)
	at     []time.Duration // when it was asked
	bodies [][]byte
	header http.Header
	began  time.Time
}

func (c *collector) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.bodies, c.header = append(c.at, time.Since(c.began)), append(c.bodies, body), req.Header
	status, header, text := 200, http.Header{}, ""
	if c.answer != nil {
		var err error
		if status, header, text, err = c.answer(len(c.at)); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header,
		Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
}

// body is what came with the nth request, from 0.
func (c *collector) body(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.bodies[n])
}

func (c *collector) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at)
}

// sending is a tracer that sends to c, and its log.
func sending(t *testing.T, c *collector, change func(*tracing.Settings)) (*tracing.Tracer, *bytes.Buffer) {
	t.Helper()
	c.began = time.Now()
	log := new(bytes.Buffer)
	s := tracing.Settings{Endpoint: "http://user:secret@collector.test/v1/traces?key=secret", JSON: true, Transport: c}
	if change != nil {
		change(&s)
	}
	tr, err := tracing.Start(s, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return tr, log
}

func oneSpan(name string) *tracing.Span {
	s := &tracing.Span{Trace: tracing.TraceID{1}, ID: tracing.NewSpan(), Kind: tracing.Client, Name: name, Begin: 1,
		End: 2}
	s.Say("text", "a\xffb")
	s.Say("nothing", "")
	s.Count("number", 7)
	return s
}

func TestSpansGoInBatchesOrAfterADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(collector)
		tr, _ := sending(t, c, func(s *tracing.Settings) { s.Batch, s.Delay = 2, time.Second })
		tr.Send(oneSpan("a"))
		tr.Send(oneSpan("b"))
		tr.Send(oneSpan("c"))
		synctest.Wait()
		if c.asked() != 1 || strings.Count(c.body(0), `"spanId"`) != 2 {
			t.Fatalf("%d batches at once, want one of 2 spans", c.asked())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if c.asked() != 2 || !strings.Contains(c.body(1), `"name":"c"`) {
			t.Errorf("%d batches after the delay", c.asked())
		}
		tr.Send(oneSpan("d"))
		tr.Close(t.Context())
		tr.Close(t.Context())
		if tr.Send(oneSpan("e")); c.asked() != 3 || tr.Stats() != (tracing.Stats{Sent: 4, Overflowed: 1}) {
			t.Errorf("%d batches after the end, %+v", c.asked(), tr.Stats())
		}
	})
}

func TestASpanThatFindsTheQueueFullIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, free := new(collector), make(chan struct{})
		c.answer = func(int) (int, http.Header, string, error) { <-free; return 200, nil, "", nil }
		tr, _ := sending(t, c, func(s *tracing.Settings) { s.Queue, s.Batch = 4, 2 })
		for range 10 {
			tr.Send(oneSpan("x")) // it would hang here if it waited
			synctest.Wait()
		}
		if got := tr.Stats(); got != (tracing.Stats{Overflowed: 4, Queued: 4}) { // two are on their way
			t.Errorf("%+v", got)
		}
		close(free)
		tr.Close(t.Context())
		if got := tr.Stats(); got != (tracing.Stats{Sent: 6, Overflowed: 4}) {
			t.Errorf("at the end %+v", got)
		}
	})
}

var errAway = errors.New("connection refused")

// A collector that is away is one word in the log, is asked ever more seldom, and once it is back another word.
func TestACollectorThatIsAwayIsToldOnceAndAskedEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, away := new(collector), true
		c.answer = func(int) (int, http.Header, string, error) {
			if away {
				return 0, nil, "", errAway
			}
			return 200, nil, "", nil
		}
		tr, log := sending(t, c, func(s *tracing.Settings) { s.Delay = time.Second })
		for range 3600 {
			tr.Send(oneSpan("x"))
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := c.asked(); n < 60 || n > 200 { // an hour, with pauses of half a minute on the average: 116
			t.Errorf("a collector that is away was asked %d times in an hour", n)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "connection refused") ||
			!strings.Contains(log.String(), "requests are not affected") || strings.Contains(log.String(), "secret") {
			t.Errorf("%d lines:\n%s", n, log)
		}
		c.mu.Lock()
		away = false
		c.mu.Unlock()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		s := tr.Stats()
		if n := strings.Count(log.String(), "\n"); n != 2 || s.Sent == 0 ||
			!strings.Contains(log.String(), "takes spans again") {
			t.Errorf("%d lines, %+v:\n%s", n, s, log)
		}
		if s.Sent+s.Refused+uint64(s.Queued) != 3600 {
			t.Errorf("of 3600 spans: %+v", s)
		}
		tr.Close(t.Context())
	})
}

func TestABatchIsSentAgainIfThatMayHelp(t *testing.T) {
	wait := http.Header{"Retry-After": {"20"}}
	for _, tt := range []struct {
		name    string
		status  []int // 0 is no answer
		header  http.Header
		asked   int
		sent    uint64
		notSoon time.Duration // before the second
	}{
		{"at once", []int{200}, nil, 1, 1, 0},
		{"it was busy", []int{503, 429, 202}, nil, 3, 1, 0},
		{"no connection", []int{0, 200}, nil, 2, 1, 0},
		{"it asks for time", []int{503, 200}, wait, 2, 1, 20 * time.Second},
		{"three times", []int{503, 502, 504, 200}, nil, 3, 0, 0},
		{"it will never like it", []int{400, 200}, nil, 1, 0, 0},
		{"it is elsewhere", []int{301, 200}, nil, 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := new(collector)
				c.answer = func(n int) (int, http.Header, string, error) {
					if tt.status[n-1] == 0 {
						return 0, nil, "", errAway
					}
					return tt.status[n-1], tt.header, "", nil
				}
				tr, _ := sending(t, c, nil)
				tr.Send(oneSpan("x"))
				time.Sleep(time.Minute)
				if got := tr.Stats(); c.asked() != tt.asked || got.Sent != tt.sent || got.Refused != 1-tt.sent {
					t.Errorf("asked %d times: %+v", c.asked(), got)
				}
				if len(c.at) > 1 && c.at[1]-c.at[0] < tt.notSoon {
					t.Errorf("asked at %v", c.at)
				}
				tr.Close(t.Context())
			})
		})
	}
}

func TestSpansThatTheCollectorRejectsAreCounted(t *testing.T) {
	for body, json := range map[string]bool{
		`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`: true,
		`{"partialSuccess":{"rejectedSpans":2,"errorMessage":"too old"}}`:   true,
		"\x0a\x0b\x08\x02\x12\x07too old":                                   false,
		"\x0a\x0b\x08\x02\x12\x07too old\xff\xff":                           false,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &collector{answer: func(int) (int, http.Header, string, error) { return 200, nil, body, nil }}
			tr, log := sending(t, c, func(s *tracing.Settings) { s.JSON = json })
			for range 3 {
				tr.Send(oneSpan("x"))
			}
			tr.Close(t.Context())
			if got := tr.Stats(); got.Sent != 1 || got.Refused != 2 || !strings.Contains(log.String(), "too old") {
				t.Errorf("%q: %+v\n%s", body, got, log)
			}
		})
	}
}

// A shutdown must not hang on a collector that does.
func TestTheEndDoesNotWaitForACollectorThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		tr, _ := sending(t, new(collector), func(s *tracing.Settings) { s.Transport, s.Timeout = hangs, time.Hour })
		tr.Send(oneSpan("x"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		tr.Close(ctx)
		if took := time.Since(began); took != 2*time.Second || tr.Stats().Refused != 1 {
			t.Errorf("it took %v, %+v", took, tr.Stats())
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheFileHasALineForEachBatch(t *testing.T) {
	file := t.TempDir() + "/spans.jsonl"
	for range 2 { // it is appended to
		whose := []tracing.Attribute{{Key: "service.name", Text: "s"}}
		tr, err := tracing.Start(tracing.Settings{File: file, Resource: whose},
			slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		tr.Send(oneSpan("x"))
		if tr.Close(t.Context()); tr.Stats().Sent != 1 {
			t.Errorf("%+v", tr.Stats())
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Fatalf("%v\n%s", err, text)
	}
	for l := range strings.Lines(string(text)) {
		if !json.Valid([]byte(l)) || !strings.Contains(l, `{"key":"text","value":{"stringValue":"a`+"\uFFFD"+`b"}}`) ||
			strings.Contains(l, "nothing") || !strings.Contains(l, `{"key":"number","value":{"intValue":"7"}}`) {
			t.Error(l)
		}
	}
}

func TestAFileThatCannotBeOpenedIsToldAtTheStart(t *testing.T) {
	for _, s := range []tracing.Settings{
		{File: t.TempDir() + "/none/spans.jsonl"}, {Endpoint: "https://c.test", CA: "/none/ca.pem"},
		{Endpoint: "https://c.test", Certificate: "/none/c.pem"},
	} {
		if tr, err := tracing.Start(s, slog.Default()); tr != nil || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if tr, err := tracing.Start(tracing.Settings{}, slog.Default()); tr != nil || err != nil {
		t.Errorf("without anywhere to send: %v, %v", tr, err)
	}
}

func TestHeadersAndCompressionGoWithEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(collector)
		tr, _ := sending(t, c, func(s *tracing.Settings) {
			s.Gzip, s.Headers, s.Version = true, http.Header{"Authorization": {"Bearer x"}}, "v1"
		})
		tr.Send(oneSpan("x"))
		tr.Close(t.Context())
		z, err := gzip.NewReader(strings.NewReader(c.body(0)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil || !json.Valid(plain) || c.header.Get("Authorization") != "Bearer x" ||
			c.header.Get("Content-Encoding") != "gzip" || c.header.Get("Content-Type") != "application/json" ||
			c.header.Get("User-Agent") != "abate/v1" {
			t.Errorf("%v %v\n%s", err, c.header, plain)
		}
	})
}
