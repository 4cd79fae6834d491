package abatehttp_test

import (
	"errors"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/loopback"
)

func TestStatusesAreClassified(t *testing.T) {
	for _, c := range []struct {
		status   int
		class    abate.Class
		attempts int
	}{
		{200, abate.Success, 1}, {204, abate.Success, 1}, {302, abate.Success, 1}, {304, abate.Success, 1},
		{400, abate.Success, 1}, {401, abate.Success, 1}, {404, abate.Success, 1}, {409, abate.Success, 1},
		{425, abate.Success, 1},
		{408, abate.Failure, 4}, {429, abate.Overload, 4},
		{500, abate.Failure, 4}, {502, abate.Failure, 4}, {503, abate.Overload, 4}, {504, abate.Failure, 4},
		{501, abate.Failure, 1}, {505, abate.Failure, 1}, {599, abate.Failure, 1},
	} {
		status, class, attempts := judge(t, eager(), answering(c.status, nil))
		if status != c.status || class != c.class || attempts != c.attempts {
			t.Errorf("%d: status %d, %v, %d attempts, want %v and %d", c.status, status, class, attempts, c.class, c.attempts)
		}
	}
}

func TestPolicySaysWhichStatusesAreRetried(t *testing.T) {
	for _, c := range []struct {
		name      string
		on, never []string
		status    int
		class     abate.Class
		attempts  int
	}{
		{"listed", []string{"404"}, nil, 404, abate.Failure, 4},
		{"not listed", []string{"gateway-error"}, nil, 500, abate.Failure, 1},
		{"group", []string{"gateway-error"}, nil, 502, abate.Failure, 4},
		{"class", []string{"5xx"}, nil, 501, abate.Failure, 4},
		{"never", nil, []string{"503"}, 503, abate.Overload, 1},
		{"never over listed", []string{"5xx"}, []string{"500"}, 500, abate.Failure, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := eager()
			p.RetryOn, p.NeverRetryOn = c.on, c.never
			if _, class, attempts := judge(t, p, answering(c.status, nil)); class != c.class || attempts != c.attempts {
				t.Errorf("%v, %d attempts, want %v and %d", class, attempts, c.class, c.attempts)
			}
		})
	}
}

func TestServerCanForbidTheRetry(t *testing.T) {
	for header, value := range map[string]string{
		"X-Envoy-Ratelimited": "true", "Finagle-Http-Nonretryable-Nack": "true", "X-Should-Retry": "False",
	} {
		if _, _, attempts := judge(t, eager(), answering(503, http.Header{header: {value}})); attempts != 1 {
			t.Errorf("%s: %s: %d attempts", header, value, attempts)
		}
	}
	if _, _, attempts := judge(t, eager(), answering(503, http.Header{"X-Should-Retry": {"true"}})); attempts != 4 {
		t.Errorf("X-Should-Retry: true: %d attempts", attempts)
	}
}

// answering is a base that always gives the same answer.
func answering(status int, header http.Header) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) { return answer(req, status, header, "body"), nil })
}

// judge sends a GET and returns the answer's status, how the last attempt was classified, and how many there were.
func judge(t *testing.T, p abate.Policy, base http.RoundTripper) (status int, class abate.Class, attempts int) {
	t.Helper()
	p, events := watched(p)
	resp, err := abatehttp.NewTransport(base, guard(t, p)).RoundTrip(newRequest(t, "GET", "http://payments.test", nil))
	if err == nil {
		status = resp.StatusCode
		resp.Body.Close()
	}
	ended := events.all(core.AttemptEnded)
	return status, ended[len(ended)-1].Class, len(ended)
}

// asked returns the pause that a transport reads from an answer.
func asked(t testing.TB, status int, header http.Header) time.Duration {
	var got time.Duration
	p := abate.Policy{Observer: abate.ObserverFunc(func(e abate.Event) {
		var s *abatehttp.StatusError
		if e.Kind == core.AttemptEnded && errors.As(e.Err, &s) {
			got = s.RetryAfter
		}
	})}
	resp, err := abatehttp.NewTransport(answering(status, header), guard(t, p)).RoundTrip(
		httptest.NewRequest("GET", "http://payments.test", nil))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return got
}

func TestRetryAfterIsRead(t *testing.T) {
	const date = "Fri, 20 Nov 2026 08:00:00 GMT"
	for _, c := range []struct {
		values []string
		want   time.Duration
	}{
		{[]string{"1"}, time.Second},
		{[]string{" 120 "}, 2 * time.Minute},
		{[]string{"0"}, 0},
		{[]string{"-1"}, 0},
		{[]string{"+1"}, 0},
		{[]string{"1.5"}, 0},
		{[]string{"soon"}, 0},
		{[]string{""}, 0},
		{[]string{"1e18"}, 0},
		{[]string{"1000000000000000000"}, math.MaxInt64},
		{[]string{"9223372036"}, 9223372036 * time.Second},
		{[]string{"9223372037"}, math.MaxInt64},
		{[]string{strings.Repeat("9", 1000)}, math.MaxInt64},
		{[]string{"Fri, 20 Nov 2026 08:00:30 GMT"}, 30 * time.Second},
		{[]string{"Friday, 20-Nov-26 08:00:30 GMT"}, 30 * time.Second},
		{[]string{"Fri Nov 20 08:00:30 2026"}, 30 * time.Second},
		{[]string{"Fri, 20 Nov 2026 07:59:00 GMT"}, 0},
		{[]string{"Fri, 31 Dec 9999 23:59:59 GMT"}, math.MaxInt64},
		{[]string{"Fri, 32 Nov 2026 08:00:00 GMT"}, 0},
		{[]string{"2", "7", "soon", "3"}, 7 * time.Second},
		{nil, 0},
	} {
		if got := asked(t, 503, http.Header{"Date": {date}, "Retry-After": c.values}); got != c.want {
			t.Errorf("%q: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRetryAfterCountsOnlyWhereItMeansAPause(t *testing.T) {
	for status, want := range map[int]time.Duration{429: time.Second, 503: time.Second, 500: 0, 413: 0, 301: 0, 200: 0} {
		if got := asked(t, status, http.Header{"Retry-After": {"1"}}); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}

func TestRetryAfterDateIsReadOnTheServersClock(t *testing.T) {
	// The server's clock is an hour behind ours.
	synctest.Test(t, func(t *testing.T) {
		server := time.Now().Add(-time.Hour).UTC()
		header := http.Header{
			"Date": {server.Format(http.TimeFormat)}, "Retry-After": {server.Add(20 * time.Second).Format(http.TimeFormat)},
		}
		if got := asked(t, 503, header); got != 20*time.Second {
			t.Errorf("with a Date: %v", got)
		}
		header = http.Header{"Retry-After": {time.Now().UTC().Add(20 * time.Second).Format(http.TimeFormat)}}
		if got := asked(t, 503, header); got != 20*time.Second {
			t.Errorf("without one: %v", got)
		}
	})
}

func TestRetryAfterIsWaitedForAndNeverLess(t *testing.T) {
	for _, header := range []http.Header{
		{"Retry-After": {"5"}},
		{"Date": {"Fri, 20 Nov 2026 08:00:00 GMT"}, "Retry-After": {"Fri, 20 Nov 2026 08:00:05 GMT"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var sent []time.Duration
			base := roundTrip(func(req *http.Request) (*http.Response, error) {
				if sent = append(sent, time.Since(begin)); len(sent) == 1 {
					return answer(req, 503, header, ""), nil
				}
				return answer(req, 200, nil, ""), nil
			})
			resp, err := abatehttp.NewTransport(base, guard(t, eager())).RoundTrip(
				newRequest(t, "GET", "http://payments.test", nil))
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			if len(sent) != 2 || sent[1] < 5*time.Second || sent[1] > 6250*time.Millisecond {
				t.Errorf("attempts at %v", sent)
			}
		})
	}
}

func TestRetryAfterThatIsTooLongEndsTheCallAtOnce(t *testing.T) {
	soon := eager()
	soon.Timeout = 700 * time.Millisecond
	for _, c := range []struct {
		policy abate.Policy
		value  string
		reason error
	}{
		{eager(), "3600", abate.ErrOverloaded},
		{eager(), "1000000000000000000", abate.ErrOverloaded},
		{eager(), "Fri, 31 Dec 9999 23:59:59 GMT", abate.ErrOverloaded},
		{soon, "1", abate.ErrDeadline},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			p, events := watched(c.policy)
			transport := abatehttp.NewTransport(answering(503, http.Header{"Retry-After": {c.value}}), guard(t, p))
			resp, err := transport.RoundTrip(newRequest(t, "GET", "http://payments.test", nil))
			if err != nil || resp.StatusCode != 503 {
				t.Fatal(resp, err)
			}
			end := events.all(core.CallEnded)[0]
			if end.Attempt != 1 || end.Reason != c.reason || time.Since(begin) != 0 {
				t.Errorf("%s: %d attempts, reason %v, after %v", c.value, end.Attempt, end.Reason, time.Since(begin))
			}
			resp.Body.Close()
		})
	}
}

func TestCertificateErrorsAreNotRetried(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	p, events := watched(eager())
	client, _ := newClient(t, guard(t, p))
	if _, err := client.Get(server.URL); err == nil {
		t.Error("no error")
	}
	if ended := events.all(core.AttemptEnded); len(ended) != 1 || ended[0].Class != abate.Failure {
		t.Errorf("attempts: %+v", ended)
	}
}

func TestPlainAnswerToATLSClientIsNotRetried(t *testing.T) {
	b := serve(t, always(200))
	p, events := watched(eager())
	client, _ := newClient(t, guard(t, p))
	_, err := client.Get(strings.Replace(b.URL, "http:", "https:", 1))
	if !errors.Is(err, http.ErrSchemeMismatch) {
		t.Errorf("error %v", err)
	}
	if ended := events.all(core.AttemptEnded); len(ended) != 1 {
		t.Errorf("attempts: %+v", ended)
	}
}

func TestRequestsThatCannotBeSentAreNobodysFailure(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"scheme":  func(r *http.Request) { r.URL.Scheme = "gopher" },
		"host":    func(r *http.Request) { r.URL.Host = "" },
		"header":  func(r *http.Request) { r.Header["A b"] = []string{"c"} },
		"value":   func(r *http.Request) { r.Header.Set("A", "b\nc") },
		"method":  func(r *http.Request) { r.Method = "G T" },
		"trailer": func(r *http.Request) { r.Trailer = http.Header{"A b": {"c"}} },
	} {
		t.Run(name, func(t *testing.T) {
			p, events := watched(eager())
			p.RetryMethods = []string{"GET"}
			p.Fallback = core.Fallback{Status: 200}
			_, transport := newClient(t, guard(t, p))
			req := newRequest(t, "GET", "http://payments.test", nil)
			change(req)
			if _, err := transport.RoundTrip(req); err == nil {
				t.Error("no error: a fallback hides the mistake")
			}
			if ended := events.all(core.AttemptEnded); len(ended) != 1 || ended[0].Class != abate.Ignored {
				t.Errorf("attempts: %+v", ended)
			}
		})
	}
}

func TestRefusedConnectionsAreRetried(t *testing.T) {
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	client, _ := newClient(t, guard(t, eager()))
	_, err = client.Get("http://" + l.Addr().String())
	var end *abate.Error
	if !errors.Is(err, abate.ErrAttemptsExhausted) || !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &end) ||
		end.Attempts != 4 {
		t.Errorf("error %v", err)
	}
}
