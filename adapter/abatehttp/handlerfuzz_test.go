package abatehttp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
)

// FuzzRefusal: whatever the gate is called and whatever goes wrong, the body is JSON and says it.
func FuzzRefusal(f *testing.F) {
	f.Add("payments", "a detail", int64(time.Second), uint8(0))
	f.Add("\"\\\n\x00\x7f\xff\u2028😀", "\r\n\"", int64(-1), uint8(2))
	f.Fuzz(func(t *testing.T, gate, detail string, after int64, n uint8) {
		reasons := []error{abate.ErrRateLimited, abate.ErrOverloaded, abate.ErrDeadline}
		r := &inbound.Refusal{
			Reason: reasons[int(n)%len(reasons)], Shed: shed.Reason(n % 8), RetryAfter: time.Duration(after), NoRetry: n%2 == 0,
		}
		status, code := abatehttp.RefusalStatus(r)
		for _, body := range [][]byte{
			abatehttp.AppendRefusal(nil, gate, r), abatehttp.KeyInvalid.Append(nil, gate, detail, time.Duration(after)),
		} {
			var p struct {
				Status, RetryAfter    int64
				Code, Detail, Service string
			}
			if err := json.Unmarshal(body, &p); err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			if p.Service != strings.ToValidUTF8(gate, "\ufffd") && utf8.ValidString(gate) ||
				p.RetryAfter != abatehttp.WholeSeconds(time.Duration(after)) {
				t.Errorf("%q, of gate %q", body, gate)
			}
			if p.Code == code && p.Status != int64(status) || p.Code != code &&
				(p.Status != 400 || utf8.ValidString(detail) && !strings.HasSuffix(p.Detail, detail)) {
				t.Errorf("%q", body)
			}
		}
	})
}

// FuzzForwardedFor: a client behind a trusted hop cannot make the gate take it for somebody else than the hop has seen.
func FuzzForwardedFor(f *testing.F) {
	for _, text := range []string{"", "192.0.2.9", "10.0.0.1, 192.0.2.9", "unknown,", "[::1]:1", ",,", "10.0.0.1:99999"} {
		f.Add(text)
	}
	p := inbound.Protection{
		TrustedPeers: []string{"10.0.0.0/8"}, RateLimit: inbound.ArrivalLimit{Key: "ip", Config: perMinute(1)},
	}
	f.Fuzz(func(t *testing.T, invented string) {
		h := abatehttp.NewHandler(newGate(t, p), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		var status []int
		for _, forwarded := range []string{
			"198.51.100.1", invented + ",198.51.100.1", invented + ", 198.51.100.1 , 10.1.2.3",
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, from("10.0.0.1:1", "X-Forwarded-For", forwarded))
			status = append(status, w.Code)
		}
		if status[0] != 200 || status[1] != 429 || status[2] != 429 {
			t.Errorf("%q: %v", invented, status)
		}
		if _, err := netip.ParseAddr(invented); err != nil {
			h.ServeHTTP(httptest.NewRecorder(), from("10.0.0.1:1", "X-Forwarded-For", invented)) // must not panic
		}
	})
}

// FuzzKeyedAnswer: however a handler writes its answer, the client gets what it would get without a gate, and the
// repeat gets the same, or 409.
func FuzzKeyedAnswer(f *testing.F) {
	f.Add("wwf", uint16(40))
	f.Add("lhwFwlw", uint16(100))
	f.Add("ffff", uint16(0))
	f.Add("sr9", uint16(30))
	f.Fuzz(func(t *testing.T, script string, size uint16) {
		chunk := strings.Repeat("x", int(size%70))
		handle := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Order", "1")
			for i, step := range script {
				switch step {
				case 'h':
					w.WriteHeader(201 + i%3)
				case 'w':
					io.WriteString(w, chunk)
				case 's':
					w.Write([]byte("s"))
				case 'f':
					w.(http.Flusher).Flush()
				case 'r':
					io.Copy(w, strings.NewReader(chunk))
				case 'l':
					w.Header().Set("X-Late", "1")
				}
			}
		})
		p := inbound.Protection{Idempotency: idempotency.Config{Methods: []string{"POST"}, MaxBody: 100}}
		h := abatehttp.NewHandler(newGate(t, p), handle)
		answer := func(h http.Handler) *http.Response {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/", nil)
			r.Header.Set("Idempotency-Key", "k")
			h.ServeHTTP(w, r)
			return w.Result()
		}
		want, first, second := answer(handle), answer(h), answer(h)
		body, _ := io.ReadAll(want.Body)
		got, _ := io.ReadAll(first.Body)
		if want.StatusCode != first.StatusCode || string(got) != string(body) && want.StatusCode != 204 {
			t.Fatalf("status %d, %q, want %d, %q", first.StatusCode, got, want.StatusCode, body)
		}
		again, _ := io.ReadAll(second.Body)
		switch {
		case second.StatusCode == 409:
			if len(body) <= 100 {
				t.Errorf("%d bytes are not stored", len(body))
			}
		case second.StatusCode != want.StatusCode || string(again) != string(got) || second.Header.Get("X-Order") != "1" ||
			second.Header.Get("X-Late") != first.Header.Get("X-Late"):
			t.Errorf("status %d, %q, header %v", second.StatusCode, again, second.Header)
		}
	})
}

func TestTheProxysPiecesWriteWhatTheyShould(t *testing.T) {
	d := ratelimit.Decision{Limit: 10, Remaining: 3, Reset: 1500 * time.Millisecond}
	if got := string(abatehttp.AppendRateLimit(nil, d)); got != `"default";r=3;t=2` {
		t.Error(got)
	}
	d.Over, d.RetryAfter = true, time.Second
	if got := string(abatehttp.AppendRateLimit(nil, d)); got != `"default";r=3;t=1` {
		t.Error(got)
	}
	for want, c := range map[string]ratelimit.Config{
		`"default";q=10;w=1`: {Limit: ratelimit.Rate{Tokens: 10, Per: time.Second}, Burst: 10},
		`"default";q=5;w=60`: {Limit: ratelimit.Rate{Tokens: 5, Per: time.Minute}, Burst: 5},
		`"default";q=1`:      {Limit: ratelimit.Rate{Per: time.Second}, Burst: 1},
	} {
		if got := string(abatehttp.AppendRateLimitPolicy(nil, c)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for d, want := range map[time.Duration]int64{
		-1: 0, 0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, 1<<63 - 1: 9223372037,
	} {
		if got := abatehttp.WholeSeconds(d); got != want {
			t.Errorf("%v is %d s, want %d", d, got, want)
		}
	}
}
