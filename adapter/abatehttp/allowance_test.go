package abatehttp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// told sends one request through a guard to a base that answers the n-th attempt, and returns the allowances that it
// was told.
func told(t *testing.T, p abate.Policy, req *http.Request,
	answerTo func(n int, req *http.Request) (*http.Response, error)) (all [][]string) {
	t.Helper()
	transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		all = append(all, slices.Clone(r.Header[hops.Allowance]))
		return answerTo(len(all), r)
	}), guard(t, p))
	resp, err := transport.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	return all
}

func saying(status int, made string) func(int, *http.Request) (*http.Response, error) {
	return func(_ int, r *http.Request) (*http.Response, error) {
		h := http.Header{}
		if made != "" {
			h.Set(hops.Made, made)
		}
		return answer(r, status, h, ""), nil
	}
}

func within(t *testing.T, tree *core.CallTree, headers ...string) *http.Request {
	t.Helper()
	req := newRequest(t, "GET", "http://payments.test/", nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	if tree != nil {
		req = req.WithContext(core.WithCallTree(req.Context(), tree))
	}
	return req
}

func TestEachAttemptTellsWhatIsLeft(t *testing.T) {
	one := func(v string) []string { return []string{v} }
	none := abate.Policy{}
	alone := eager()
	alone.RetryOwner = core.OwnerNone
	for name, c := range map[string]struct {
		policy  abate.Policy
		request *http.Request
		answers func(int, *http.Request) (*http.Response, error)
		want    [][]string
	}{
		"a callee that does not speak": {eager(), within(t, nil), saying(503, ""),
			[][]string{one(`0;owner="payments"`), one(`0;owner="payments"`), one(`0;owner="payments"`),
				one(`0;owner="payments"`)}},
		"a callee that speaks": {eager(), within(t, nil), saying(503, "0"),
			[][]string{one(`0;owner="payments"`), one(`1;owner="payments"`), one(`0;owner="payments"`),
				one(`0;owner="payments"`)}},
		"a callee that has retried": {eager(), within(t, nil), saying(503, "1"),
			[][]string{one(`0;owner="payments"`), one(`0;owner="payments"`)}},
		"a callee that has retried all": {
			eager(), within(t, nil), saying(503, "3"), [][]string{one(`0;owner="payments"`)},
		},
		"a callee that is through": {
			eager(), within(t, nil), saying(503, "0;final"), [][]string{one(`0;owner="payments"`)},
		},
		"in a tree without anything left": {eager(), within(t, core.NewCallTree(core.Allowance{Owner: "shop"})),
			saying(503, "0"), [][]string{one(`0;owner="shop"`)}},
		"in a tree, by one who does not": {none, within(t, core.NewCallTree(core.Allowance{Left: 2, Owner: "shop"})),
			saying(200, "0"), [][]string{one(`0;owner="shop"`)}},
		"a root that repeats nothing": {none, within(t, nil), saying(503, ""), [][]string{nil}},
		"an arriving one is replaced": {eager(), within(t, nil, hops.Allowance, "9", hops.Allowance, "8"),
			saying(200, ""), [][]string{one(`0;owner="payments"`)}},
		"an arriving one, nobody repeats": {
			none, within(t, nil, hops.Allowance, "9"), saying(200, ""), [][]string{one("9")},
		},
		"an arriving one, not believed": {
			none, within(t, core.NewOpenCallTree(), hops.Allowance, "9"), saying(200, ""), [][]string{nil},
		},
		"an arriving one, each for itself": {alone, within(t, nil, hops.Allowance, "9"), saying(200, ""), [][]string{nil}},
		"each for itself says nothing": {
			alone, within(t, core.NewCallTree(core.Allowance{})), saying(503, "0"), [][]string{nil, nil, nil, nil},
		},
		"a success that cannot be repeated": {
			eager(), within(t, nil), saying(404, "7;final"), [][]string{one(`0;owner="payments"`)},
		},
	} {
		if got := told(t, c.policy, c.request, c.answers); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: told %q, want %q", name, got, c.want)
		}
	}
}

func TestOmittedHeadersLeaveTheAllowanceOut(t *testing.T) {
	for policy, want := range map[int][]string{2: nil, 0: nil} {
		var got http.Header
		transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header
			return answer(r, 200, nil, ""), nil
		}), guard(t, abate.Policy{Retry: abate.Retry{MaxRetries: policy}}))
		transport.OmitHeaders = true
		req := within(t, nil, hops.Allowance, "9", "X-Other", "1")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if !slices.Equal(got[hops.Allowance], want) || got.Get("X-Other") != "1" || req.Header.Get(hops.Allowance) != "9" {
			t.Errorf("maxRetries %d: sent %q of %q", policy, got, req.Header)
		}
	}
}

// TestAReverseProxyDoesNotPassOnWhatItWasTold: one that copies headers writes its own allowance, once.
func TestWhoIsToldNothingHasUsedNothing(t *testing.T) {
	attempts := 0
	transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		if attempts++; attempts == 1 {
			return answer(r, 200, http.Header{hops.Made: {"1000"}}, ""), nil
		}
		return answer(r, 503, nil, ""), nil
	}), guard(t, eager()))
	transport.OmitHeaders = true
	tree := core.NewCallTree(core.Allowance{Left: 3})
	for range 2 {
		if resp, err := transport.RoundTrip(within(t, tree)); err == nil {
			resp.Body.Close()
		}
	}
	if attempts != 1+4 || tree.Report().Made != 3 {
		t.Errorf("%d attempts, report %+v; want 5 and 3 made", attempts, tree.Report())
	}
}

func TestAReverseProxyDoesNotPassOnWhatItWasTold(t *testing.T) {
	var got []string
	behind := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) { got = r.Header.Values(hops.Allowance) })
	target, _ := url.Parse(behind.URL)
	client, transport := newClient(t, guard(t, eager()))
	defer client.CloseIdleConnections()
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	for _, trusted := range [][]string{{"127.0.0.1"}, nil} {
		front, _, _ := protect(t, inbound.Protection{TrustedPeers: trusted}, proxy.ServeHTTP)
		get(t, front.URL, hops.Allowance, `2;owner="shop"`)
		want := `0;owner="shop"`
		if trusted == nil {
			want = `0;owner="payments"`
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("trusting %v: passed on %q, want %q", trusted, got, want)
		}
	}
}

// madeAfter reports what a call of url makes of a tree that has so much left, under a guard whose callee speaks if it
// does at warm.
func madeAfter(t *testing.T, client *http.Client, transport *abatehttp.Transport, warm string, url string,
	left int) core.Below {
	t.Helper()
	if warm != "" { // the guard learns that its callee speaks
		mustDo(t, client, newRequest(t, "GET", warm, nil))
	}
	tree := core.NewCallTree(core.Allowance{Left: left, Owner: "shop"})
	resp, err := transport.RoundTrip(newRequest(t, "GET", url, nil).WithContext(core.WithCallTree(t.Context(), tree)))
	if err == nil {
		resp.Body.Close()
	}
	return tree.Report()
}

func speaking(t *testing.T) *backend {
	return serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.Header().Set(hops.Made, "0") })
}

func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestWhatWasNotSentHasUsedNothing(t *testing.T) {
	speaks, down := speaking(t), closed(t)
	hangs := speak(t, func(_ int, _ net.Conn, r *bufio.Reader) { listen(r) })
	twice := abate.Policy{Retry: abate.Retry{MaxRetries: 2, Backoff: retry.NoBackoff}, AttemptTimeout: 20 * time.Second}
	for name, c := range map[string]struct {
		url  string
		made int
	}{
		"refused connection":      {down, 2},
		"no TLS on the other end": {"https" + speaks.URL[len("http"):], 0}, // not retried, and not sent
		"an answer that is lost":  {hangs, 2},                              // what the callee was told, and one retry
	} {
		client, transport := newClient(t, guard(t, twice))
		if got := madeAfter(t, client, transport, speaks.URL, c.url, 3); got.Made != c.made {
			t.Errorf("%s: %d extra attempts are reported, want %d", name, got.Made, c.made)
		}
		client.CloseIdleConnections()
	}
}

// TestABaseWithoutTraceIsBelievedOnlyItsDialErrors: what does not say that it looks for a connection may have sent it.
func TestABaseWithoutTraceIsBelievedOnlyItsDialErrors(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}
	for err, want := range map[error]int{
		dial: 0, &net.OpError{Op: "read", Net: "tcp", Err: errors.New("reset")}: 1, io.ErrUnexpectedEOF: 1,
	} {
		asked := 0
		g := guard(t, abate.Policy{Retry: abate.Retry{MaxRetries: 2}, NeverRetryOn: []string{"error"}})
		transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			if asked++; asked == 1 {
				return answer(r, 200, http.Header{hops.Made: {"0"}}, ""), nil
			}
			return nil, err
		}), g)
		if got := madeAfter(t, &http.Client{Transport: transport}, transport, "http://x.test", "http://x.test",
			2); got.Made != want {
			t.Errorf("%v: %d extra attempts are reported, want %d", err, got.Made, want)
		}
		if o := abatehttp.ClassifyError(g, err, true); o.Unsent != (want == 0) {
			t.Errorf("%v: %+v", err, o)
		}
	}
}

func TestHiddenRetriesAreTakenFromTheTree(t *testing.T) {
	url := dying(t)
	client, transport := newClient(t, guard(t, abate.Policy{Retry: abate.Retry{MaxRetries: 1}}))
	for again := false; !again; { // until a connection is used again, which the first call cannot do
		tree := core.NewCallTree(core.Allowance{Left: 3, Owner: "shop"})
		req, reused := reuses(newRequest(t, "GET", url, nil).WithContext(core.WithCallTree(t.Context(), tree)))
		mustDo(t, client, req)
		again = *reused
		want := 0
		if again {
			want = 1
		}
		if got := tree.Report(); got.Made != want || transport.HiddenRetries() != uint64(want) {
			t.Errorf("%+v after %d hidden retries, want %d", got, transport.HiddenRetries(), want)
		}
	}
	client.CloseIdleConnections()
}

func TestUnsentErrorsReachTheCallerAsTheyAre(t *testing.T) {
	client, transport := newClient(t, guard(t, abate.Policy{}))
	_, err := transport.RoundTrip(newRequest(t, "GET", closed(t), nil))
	if _, ok := err.(*net.OpError); !ok {
		t.Errorf("%T: %v", err, err)
	}
	client.CloseIdleConnections()
}

func TestACallerWhoLeavesBeforeThereIsAConnectionGetsTheErrorAsItIs(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	base := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		leave()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	_, err := abatehttp.NewTransport(base, guard(t, eager())).RoundTrip(
		newRequest(t, "GET", "http://payments.test", nil).WithContext(ctx))
	if err != context.Canceled {
		t.Errorf("%T: %v", err, err)
	}
}

func TestAServerThatAsksNotToBeAskedIsFinalForAll(t *testing.T) {
	for _, name := range []string{"X-Should-Retry", "X-Envoy-Ratelimited", "Finagle-Http-Nonretryable-Nack"} {
		g := guard(t, eager())
		for status, final := range map[int]bool{503: true, 404: false, 200: false} {
			o := abatehttp.ClassifyStatus(g, status, http.Header{name: {"false"}}, true)
			if o.Below.Final != final || o.Below.Said {
				t.Errorf("%s on %d: %+v", name, status, o.Below)
			}
		}
	}
}

func TestEveryAnswerSaysWhatWasMade(t *testing.T) {
	g := guard(t, eager())
	for status, final := range map[int]bool{
		200: false, 204: false, 302: false, 404: false, 408: true, 429: true, 501: true, 503: true,
	} {
		o := abatehttp.ClassifyStatus(g, status, http.Header{hops.Made: {"2", "1;final"}}, true)
		if want := (core.Below{Said: true, Made: 2, Final: final}); o.Below != want {
			t.Errorf("%d: %+v, want %+v", status, o.Below, want)
		}
	}
}

func TestHedgesTellAndTakeFromTheTree(t *testing.T) {
	var allowances [2][]string
	slow := make(chan struct{})
	b := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n <= 2 {
			allowances[n-1] = r.Header[hops.Allowance]
		}
		w.Header().Set(hops.Made, "0")
		if n == 1 {
			<-slow
		}
	})
	client, transport := newClient(t, guard(t, abate.Policy{Hedge: hedge.Config{Delay: time.Millisecond}}))
	tree := core.NewCallTree(core.Allowance{Left: 1, Owner: "shop"})
	resp, err := transport.RoundTrip(newRequest(t, "GET", b.URL, nil).WithContext(core.WithCallTree(t.Context(), tree)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	close(slow)
	client.CloseIdleConnections()
	b.Close() // waits for its handlers
	if a, _ := tree.Allowance(); a.Left != 0 || tree.Report().Made != 1 {
		t.Errorf("%+v is left, %+v", a, tree.Report())
	}
	for n, got := range allowances {
		if !slices.Equal(got, []string{`0;owner="shop"`}) {
			t.Errorf("copy %d was told %q", n+1, got)
		}
	}
}

func TestTheAllowanceCostsNoAllocation(t *testing.T) {
	made := []string{"0"}
	count := func(p abate.Policy, omit bool) float64 {
		transport := abatehttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{hops.Made: made}, Body: http.NoBody, Request: r}, nil
		}), guard(t, p))
		transport.OmitHeaders = omit
		req := httptest.NewRequest("GET", "http://payments.test/", nil)
		return testing.AllocsPerRun(1000, func() { transport.RoundTrip(req) })
	}
	without := abate.DefaultPolicy()
	without.RetryOwner = core.OwnerNone
	with, bare := count(abate.DefaultPolicy(), false), count(without, false)
	if raceDetector { // its pools lose what is put back, at random
		bare++
	}
	if with > bare {
		t.Errorf("%v allocations, %v without telling", with, bare)
	}
}
