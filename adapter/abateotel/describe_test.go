package abateotel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/abate-go/abate/adapter/abateotel"
)

// attempt sends one request through Attempts and returns its span.
func (f fixture) attempt(t testing.TB, method string, u *url.URL, err error) span {
	t.Helper()
	f.spans.Reset()
	req := (&http.Request{Method: method, URL: u, Header: http.Header{}}).WithContext(t.Context())
	_, _ = f.Attempts(stub(func(*http.Request) (*http.Response, error) { return nil, err })).RoundTrip(req)
	started := f.spans.Started()
	return f.named(t, started[0].Name(), 1)[0]
}

func TestWhatLetsOthersInIsNotWrittenDown(t *testing.T) {
	f := telemetry(t, nil)
	for from, want := range map[string]string{
		"http://a/":                              "http://a/",
		"http://a:81/b?c=d&e#f":                  "http://a:81/b?c=d&e#f",
		"http://joe@a/":                          "http://REDACTED@a/",
		"http://joe:secret@a/":                   "http://REDACTED:REDACTED@a/",
		"http://a/?sig=secret":                   "http://a/?sig=REDACTED",
		"http://a/?a=1&Signature=secret&b=2":     "http://a/?a=1&Signature=REDACTED&b=2",
		"http://a/?sig=secret&sig=secret":        "http://a/?sig=REDACTED&sig=REDACTED",
		"http://a/?s%69g=secret":                 "http://a/?s%69g=REDACTED",
		"http://a/?SIG=secret":                   "http://a/?SIG=REDACTED",
		"http://a/?a=1;sig=secret;b=2&c=3":       "http://a/?a=1;sig=REDACTED&c=3",
		"http://a/?X-Amz-Security-Token=secret":  "http://a/?X-Amz-Security-Token=REDACTED",
		"http://a/?X-Goog-Signature=secret==&&":  "http://a/?X-Goog-Signature=REDACTED&&",
		"http://a/?sig":                          "http://a/?sig",
		"http://a/?design=blue&signal=1&sig%zz=": "http://a/?design=blue&signal=1&sig%zz=",
		"http://a/?":                             "http://a/?",
	} {
		u, err := url.Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		before := u.String()
		if got := f.attempt(t, "GET", u, errDown).attributes["url.full"]; got != want {
			t.Errorf("%s became %s, want %s", from, got, want)
		}
		if u.String() != before {
			t.Errorf("the request's URL became %s", u)
		}
	}
}

func FuzzWhatLetsOthersInIsNotWrittenDown(f *testing.F) {
	f.Add("joe", "secret", "a=1&sig=secret&b=2")
	f.Add("", "", "sig=a;b=c&&=&%=%&AWSAccessKeyId")
	f.Add("", "", "SIG=%zz&s%69g=1;2&sig")
	f.Fuzz(func(t *testing.T, user, password, query string) {
		u := &url.URL{Scheme: "http", Host: "a", Path: "/", RawQuery: query, User: url.UserPassword(user, password)}
		got := abateotel.Redacted(u)
		_, shown, _ := strings.Cut(got, "?")
		if !strings.HasPrefix(got, "http://REDACTED:REDACTED@a/") || strings.Count(shown, "&") != strings.Count(query, "&") {
			t.Fatalf("%q became %q", query, got)
		}
		u.RawQuery = shown
		if again := abateotel.Redacted(u); again != got {
			t.Fatalf("%q became %q, and that %q", query, got, again)
		}
		values, _ := url.ParseQuery(shown)
		for name, all := range values {
			switch strings.ToLower(name) {
			case "awsaccesskeyid", "signature", "sig", "x-goog-signature", "x-amz-signature":
				for _, v := range all {
					if v != "REDACTED" && v != "" {
						t.Fatalf("%q shows %s=%q", got, name, v)
					}
				}
			}
		}
	})
}

func TestWhereAnAttemptGoesIsOnItsSpan(t *testing.T) {
	f := telemetry(t, nil)
	for target, want := range map[string][2]string{
		"http://a/": {"a", "80"}, "https://a/": {"a", "443"}, "http://[::1]:8080/": {"::1", "8080"}, "unix://a/": {"a", ""},
		"http://a:/": {"a", "80"},
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		f.attempt(t, "GET", u, errDown).want(t, map[string]string{"server.address": want[0], "server.port": want[1]})
	}
	f.attempt(t, "GET", &url.URL{Scheme: "http", Host: "a:99999"}, errDown).want(t, map[string]string{"server.port": ""})
}

func TestSpansAreNamedAfterKnownMethodsOnly(t *testing.T) {
	u := &url.URL{Scheme: "http", Host: "a"}
	check := func(f fixture, method, name, attribute, original string) {
		t.Helper()
		s := f.attempt(t, method, u, errDown)
		if s.Name() != name {
			t.Errorf("the span of %q is called %q, want %q", method, s.Name(), name)
		}
		s.want(t, map[string]string{"http.request.method": attribute, "http.request.method_original": original})
	}
	f := telemetry(t, nil)
	check(f, "", "GET", "GET", "")
	check(f, "QUERY", "QUERY", "QUERY", "")
	check(f, "PROPFIND", "HTTP", "_OTHER", "PROPFIND")
	check(f, "get", "HTTP", "_OTHER", "get")
	t.Setenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS", "GET, PROPFIND")
	f = telemetry(t, nil)
	check(f, "PROPFIND", "PROPFIND", "PROPFIND", "")
	check(f, "POST", "HTTP", "_OTHER", "POST")
}

type ownType struct{ error }

func (ownType) ErrorType() string { return "card_declined" }

func TestErrorsHaveFewTypes(t *testing.T) {
	f := telemetry(t, nil)
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)}
	}
	for want, err := range map[string]error{
		"canceled":              fmt.Errorf("x: %w", context.Canceled),
		"timeout":               &url.Error{Op: "Get", Err: context.DeadlineExceeded},
		"timeout ":              dial(syscall.ETIMEDOUT),
		"connection_refused":    dial(syscall.ECONNREFUSED),
		"connection_reset":      dial(syscall.ECONNRESET),
		"connection_reset ":     dial(syscall.EPIPE),
		"connection_closed":     io.EOF,
		"connection_closed ":    fmt.Errorf("x: %w", io.ErrUnexpectedEOF),
		"name_resolution_error": &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}},
		"card_declined":         fmt.Errorf("x: %w", ownType{errDown}),
		"*net.OpError":          fmt.Errorf("x: %w", fmt.Errorf("y: %w", dial(errors.New("no route")))),
		"*fmt.wrapErrors":       fmt.Errorf("%w, %w", errDown, errDown),
	} {
		f.attempt(t, "GET", &url.URL{Scheme: "http", Host: "a"}, err).want(t, map[string]string{
			"error.type": strings.TrimSpace(want),
		})
	}
}
