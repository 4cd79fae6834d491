package bench_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"
)

// BenchmarkHTTPStub is one GET through an http.Client over a transport that
// answers 200 at once without a socket. impl=floor is the plain client: subtract
// it to get what a wrapper adds. impl=abate has timeouts, as failsafe-five has.
func BenchmarkHTTPStub(b *testing.B) {
	run(b, "impl=abate", get(abatehttp.NewTransport(stub{}, guard(b, abateStack("timeout")))))
	run(b, "impl=abate-four", get(abatehttp.NewTransport(stub{}, guard(b, abateStack("four")))))
	run(b, "impl=floor", get(stub{}))

	rc := retryablehttp.NewClient()
	rc.HTTPClient = &http.Client{Transport: stub{}}
	rc.Logger = nil
	run(b, "impl=retryablehttp", get(rc.StandardClient().Transport))

	run(b, "impl=failsafe-retry", get(failsafehttp.NewRoundTripper(stub{}, failsafehttp.NewRetryPolicyBuilder().Build())))
	run(b, "impl=failsafe-five", get(failsafehttp.NewRoundTripper(stub{}, failsafeStack[*http.Response]("five")...)))
}

// get makes an operation that sends one request and reads the answer to its end,
// so that wrappers which hold something until the body is closed let go of it.
func get(rt http.RoundTripper) maker {
	client := &http.Client{Transport: rt}
	return func() func() error {
		req, err := http.NewRequest(http.MethodGet, "http://payment.test/charge", nil)
		if err != nil {
			panic(err) // a constant URL
		}
		return func() error {
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}
	}
}

// stub answers every request with 200 and two bytes.
type stub struct{}

var stubHeader = http.Header{"Content-Type": {"text/plain"}}

func (stub) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: stubHeader, ContentLength: 2, Request: req,
		Body: io.NopCloser(strings.NewReader("ok")),
	}, nil
}
