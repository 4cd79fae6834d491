package abateotel

import (
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
)

// knownMethods are those that spans may be named after: the ones of the conventions, unless the environment has others.
func knownMethods() map[string]struct{} {
	list := "CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,QUERY,TRACE"
	if given := os.Getenv("OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS"); given != "" {
		list = given
	}
	known := make(map[string]struct{})
	for method := range strings.SplitSeq(list, ",") {
		known[strings.TrimSpace(method)] = struct{}{}
	}
	return known
}

// method returns a request's method, and whether it is a known one.
func (t *Telemetry) method(of string) (string, bool) {
	if of == "" {
		of = http.MethodGet
	}
	_, known := t.methods[of]
	return of, known
}

// spanName is that of an attempt. There is no route that it could have besides the method.
func (t *Telemetry) spanName(method string) string {
	if name, known := t.method(method); known {
		return name
	}
	return "HTTP"
}

// describe returns what is known of a request before it is sent, but for its URL: whom it is for.
func (t *Telemetry) describe(req *http.Request) []attribute.KeyValue {
	what := make([]attribute.KeyValue, 0, 6) // with the URL and how often it was sent
	if method, known := t.method(req.Method); known {
		what = append(what, semconv.HTTPRequestMethodKey.String(method))
	} else {
		what = append(what, semconv.HTTPRequestMethodOther, semconv.HTTPRequestMethodOriginal(method))
	}
	what = append(what, semconv.ServerAddress(req.URL.Hostname()))
	if port, ok := portOf(req.URL); ok {
		what = append(what, semconv.ServerPort(port))
	}
	return what
}

func portOf(u *url.URL) (int, bool) {
	switch port, err := strconv.ParseUint(u.Port(), 10, 16); {
	case err == nil:
		return int(port), true
	case u.Port() != "":
	case u.Scheme == "http":
		return 80, true
	case u.Scheme == "https":
		return 443, true
	}
	return 0, false
}

// hidden takes the place of what must not be written down.
const hidden = "REDACTED"

// signatures are the query parameters that let whoever knows them in: those that the conventions list, and those of the
// current signatures of AWS and Google.
var signatures = []string{"AWSAccessKeyId", "Signature", "sig", "X-Goog-Signature", "X-Goog-Credential",
	"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token"}

// redacted writes a URL without what lets others in: user and password, and the values of signatures.
func redacted(u *url.URL) string {
	query := redactedQuery(u.RawQuery)
	if u.User == nil && query == u.RawQuery {
		return u.String()
	}
	shown := *u
	shown.RawQuery = query
	if u.User != nil {
		shown.User = url.User(hidden)
		if _, has := u.User.Password(); has {
			shown.User = url.UserPassword(hidden, hidden)
		}
	}
	return shown.String()
}

// redactedQuery hides the values of signatures. A value ends at "&" only, although some servers end it at ";" too: then
// more is hidden.
func redactedQuery(query string) string {
	if query == "" {
		return ""
	}
	pairs := strings.Split(query, "&")
	found := false
	for i, pair := range pairs {
		if at := signatureIn(pair); at >= 0 {
			pairs[i], found = pair[:at]+hidden, true
		}
	}
	if !found { // nearly always
		return query
	}
	return strings.Join(pairs, "&")
}

// signatureIn returns where the value of the first signature in a pair begins, -1 if there is none.
func signatureIn(pair string) int {
	at := 0
	for part := range strings.SplitSeq(pair, ";") {
		name, _, has := strings.Cut(part, "=")
		if has && isSignature(name) {
			return at + len(name) + 1
		}
		at += len(part) + 1
	}
	return -1
}

func isSignature(name string) bool {
	if strings.ContainsAny(name, "%+") {
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
	}
	return slices.ContainsFunc(signatures[:], func(s string) bool { return strings.EqualFold(name, s) })
}

// protocolVersion is that of an answer, as "1.1" or "2"; empty if it does not say.
func protocolVersion(resp *http.Response) string {
	switch {
	case resp.ProtoMajor == 0:
		return ""
	case resp.ProtoMajor == 1:
		return "1." + strconv.Itoa(resp.ProtoMinor)
	}
	return strconv.Itoa(resp.ProtoMajor)
}
