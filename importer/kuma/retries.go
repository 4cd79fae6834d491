package kuma

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// What Kuma repeats in every mesh.
const (
	meshRetries = 5
	meshPerTry  = 16 * time.Second
	meshBase    = 25 * time.Millisecond
	meshMax     = 250 * time.Millisecond
)

// Kuma's words, as Envoy's. Canceled is one that it spells in a way that Envoy does not know.
var (
	httpWords = map[string]string{"5xx": "5xx", "5XX": "5xx", "GatewayError": "gateway-error", "Reset": "reset",
		"Retriable4xx": "retriable-4xx", "ConnectFailure": "connect-failure", "EnvoyRatelimited": "envoy-ratelimited",
		"RefusedStream": "refused-stream", "Http3PostConnectFailure": "http3-post-connect-failure"}
	grpcWords = map[string]string{"Canceled": "canceled", "DeadlineExceeded": "deadline-exceeded", "Internal": "internal",
		"ResourceExhausted": "resource-exhausted", "Unavailable": "unavailable"}
	httpDefault = []string{"GatewayError", "ConnectFailure", "RefusedStream"}
	grpcDefault = []string{"cancelled", "resource-exhausted", "unavailable"}
	methodWord  = "HttpMethod"
	safeMethods = []string{"Delete", "Get", "Head", "Options", "Put", "Trace", "Connect"}
	httpKeys    = []string{"numRetries", "perTryTimeout", "backOff", "rateLimitedBackOff", "retryOn",
		"retriableResponseHeaders",
		"retriableRequestHeaders", "hostSelection", "hostSelectionMaxAttempts"}
	grpcKeys = []string{"numRetries", "perTryTimeout", "backOff", "rateLimitedBackOff", "retryOn"}
)

// retries adds what MeshRetry says. Which of its three protocols a service speaks no policy says: the rules for HTTP
// hold for all requests, those for gRPC for gRPC codes only, those for TCP for connections of other protocols, which
// are none of a layer that reads requests.
func (r *reader) retries(l *topology.Layer, c conf) {
	for _, n := range c {
		r.form.Remarks = append(r.form.Remarks, n.Unknown("Kuma", l.Name, "http", "grpc", "tcp")...)
		r.form.Remarks = append(r.form.Remarks, n.Get("http").Unknown("Kuma", l.Name+" http", httpKeys...)...)
		r.form.Remarks = append(r.form.Remarks, n.Get("grpc").Unknown("Kuma", l.Name+" grpc", grpcKeys...)...)
	}
	r.protocol(l, c, "http")
	r.protocol(l, c, "grpc")
	l.PerTry = envoywords.Or(read(r, c.get("http", "perTryTimeout"), source.Duration), initial(r, "MeshRetry", meshPerTry))
	l.Backoff = envoywords.Backoff(
		envoywords.Or(read(r, c.get("http", "backOff", "baseInterval"), source.Duration), initial(r, "MeshRetry", meshBase)),
		envoywords.Or(read(r, c.get("http", "backOff", "maxInterval"), source.Duration), initial(r, "MeshRetry", meshMax)),
		r.who, l.At)
	if c.get("http", "rateLimitedBackOff", "resetHeaders").Exists() {
		l.Backoff.RetryAfter = topology.Write(true, c.get("http", "rateLimitedBackOff").At())
	}
}

// protocol adds the rules of one protocol.
func (r *reader) protocol(l *topology.Layer, c conf, name string) {
	number := c.get(name, "numRetries")
	tries := envoywords.Or(envoywords.PlusOne(read(r, number, source.Int)), initial(r, "MeshRetry", 1+meshRetries))
	if tries.IsZero() {
		if !c.get(name).Written() {
			return
		}
		tries = topology.DefaultOf(1+envoywords.Retries, r.who, l.At)
	}
	if block := c.get(name); tries.Origin == topology.Default && block.Written() {
		tries.At = block.At() // where the number belongs
	}
	if tries.Or(2) == 1 {
		off := envoywords.Off(tries, "numRetries: 0", tries.At)
		if off.On = slices.DeleteFunc(off.On,
			func(o topology.Outcome) bool { return o.GRPC() != (name == "grpc") }); len(off.On) > 0 {
			l.Repeats = append(l.Repeats, off)
		}
		return
	}
	p := r.words(c.get(name, "retryOn"), name, l)
	p.Product, p.Subject, p.Tries = "Kuma", l.Name+" "+name, tries
	for _, predicate := range c.get(name, "hostSelection").Items() {
		p.Elsewhere = p.Elsewhere || predicate.Get("predicate").Text() == "OmitPreviousHosts"
	}
	repeats, more := p.Repeats()
	l.Repeats, r.form.Remarks = append(l.Repeats, repeats...), append(r.form.Remarks, more...)
}

// words translates retryOn.
func (r *reader) words(n source.Node, name string, l *topology.Layer) (p envoywords.Policy) {
	known := httpWords
	parts := n.Parts(",")
	if name == "grpc" {
		known = grpcWords
		if len(parts) == 0 {
			for _, w := range grpcDefault {
				p.Words = append(p.Words, source.Part{Text: w, At: l.At})
			}
			return p
		}
	}
	var conditions []source.Part
	for _, part := range parts {
		method, isMethod := strings.CutPrefix(part.Text, methodWord)
		switch status, err := strconv.Atoi(part.Text); {
		case err == nil && http.StatusText(status) != "":
			p.Codes = append(p.Codes, part)
		case name == "http" && isMethod:
			if slices.Contains(safeMethods, method) {
				p.Methods |= topology.Safe
			} else {
				p.Methods |= topology.Unsafe
			}
		case part.Text == "Canceled" && name == "grpc":
			r.remark("F601", part.At, l.Name+" grpc Canceled",
				"Kuma gives Envoy the word canceled, which Envoy spells cancelled, so it does nothing",
				"leave it out: nothing is repeated for it")
		case known[part.Text] != "":
			conditions = append(conditions, source.Part{Text: known[part.Text], At: part.At})
		case source.Template(part.Text) != "":
			conditions = append(conditions, part)
		default:
			r.remark("F601", part.At, l.Name+" "+part.Text,
				"Kuma knows no condition "+strconv.Quote(part.Text)+" here, so it repeats nothing",
				source.Meant(part.Text, sorted(known)))
		}
	}
	if len(conditions) == 0 && name == "http" {
		for _, w := range httpDefault {
			conditions = append(conditions, source.Part{Text: httpWords[w], At: l.At})
		}
	}
	p.Words = conditions
	if len(p.Codes) > 0 {
		p.Words = append(p.Words, source.Part{Text: "retriable-status-codes", At: p.Codes[0].At})
	}
	return p
}

func sorted(words map[string]string) []string {
	var out []string
	for w := range words {
		out = append(out, w)
	}
	slices.Sort(out)
	return out
}
