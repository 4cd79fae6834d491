package exporter

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// Route is one service, where it is, and how its calls are tried.
type Route struct {
	Service string
	URLs    []string // "http://host:port"; none means the service's name is its host, at port 80
	Layer   topology.Layer

	word string // its name as one word that no other route of the file has; see distinct
}

// Format is one format that can be written.
type Format struct {
	Name  string // as "abate export" calls it
	About string
	Write func([]Route) []byte
}

// Formats are all formats, by name.
var Formats = []Format{
	{"envoy", "a bootstrap for Envoy: one listener, a virtual host and a cluster for each service", Envoy},
	{"istio", "a VirtualService and a DestinationRule for each service", Istio},
	{"gateway-api", "an HTTPRoute for each service", GatewayAPI},
	{"linkerd", "a Service with Linkerd's annotations for each service", Linkerd},
	{"grpc", "a gRPC service config, one method config for each service", GRPC},
	{"spring", "resilience4j instances for Spring Boot", Spring},
	{"nginx", "an upstream and a server for each service", Nginx},
	{"haproxy", "a backend for each service", HAProxy},
}

// endpoint is a host and a port.
type endpoint struct {
	host string
	port string
	tls  bool
}

func (r *Route) endpoints() []endpoint {
	var all []endpoint
	for _, text := range r.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			continue
		}
		e := endpoint{u.Hostname(), u.Port(), u.Scheme == "https"}
		if e.port == "" {
			e.port = map[bool]string{true: "443", false: "80"}[e.tls]
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		all = []endpoint{{host: r.Service, port: "80"}}
	}
	return all
}

// host is the service's name in a cluster: the host of its URL, or its own name where that is an address or this
// machine.
func (r *Route) host() string {
	h := r.endpoints()[0].host
	if net.ParseIP(h) != nil || h == "localhost" {
		return r.label()
	}
	return h
}

// asked is the host that requests for the service name: the service's name, where a host can have it.
func (r *Route) asked() string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)
	}
	if strings.ContainsFunc(r.Service, func(c rune) bool { return !plain(c) }) {
		return r.label()
	}
	return r.Service
}

func (e endpoint) String() string { return net.JoinHostPort(e.host, e.port) }

// Names returns the names by which what was written may call the service.
func (r *Route) Names() []string {
	names := []string{r.Service, r.label(), r.host()}
	for _, e := range r.endpoints() {
		names = append(names, e.String(), e.host)
	}
	return names
}

// distinct returns routes whose names as one word differ: "a.b" is the same word as "a-b", so it gets a number. A name
// that is such a word keeps it.
func distinct(routes []Route) []Route {
	out := slices.Clone(routes)
	taken := make(map[string]bool, len(out))
	for i := range out {
		if word := label(out[i].Service); word == out[i].Service {
			out[i].word, taken[word] = word, true
		}
	}
	for i := range out {
		if out[i].word != "" {
			continue
		}
		stem := label(out[i].Service)
		word := stem
		for n := 2; taken[word]; n++ {
			word = fmt.Sprintf("%s-%d", stem, n)
		}
		out[i].word, taken[word] = word, true
	}
	return out
}

// label is the service's name as one word.
func (r *Route) label() string {
	if r.word != "" {
		return r.word
	}
	return label(r.Service)
}

// yamlName is label, quoted where YAML would take it for something else than a text.
func (r *Route) yamlName() string { return yamlWord(r.label()) }

// label makes a name that YAML, DNS and configuration files take as one word. Two names that differ in other signs only
// have the same.
func label(name string) string {
	word := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name), "-")
	if word == "" {
		return "service"
	}
	return word
}

// yamlWord quotes a word where YAML would take it for something else than a text.
func yamlWord(word string) string {
	switch {
	case word[0] >= '0' && word[0] <= '9', slices.Contains([]string{"true", "false", "yes", "no", "on", "off",
		"null", "y",
		"n"}, word):
		return strconv.Quote(word)
	default:
		return word
	}
}

// Tries returns the most tries of any outcome that a layer repeats, and whether it repeats only safe methods once a
// request was sent.
func Tries(l *topology.Layer) (tries int, safeOnly bool) {
	tries, safeOnly = 1, true
	for _, r := range l.Repeats {
		if n, ok := r.Tries.Get(); ok {
			tries = max(tries, n)
		}
		for _, o := range r.On {
			if o != topology.Refused && o != topology.ResetUnsent && repeated(l, o, topology.Unsafe) {
				safeOnly = false
			}
		}
	}
	return tries, safeOnly
}

// sentRepeats reports whether l repeats anything of requests that were sent.
func sentRepeats(l *topology.Layer) bool {
	return slices.ContainsFunc(topology.AllOutcomes(), func(o topology.Outcome) bool { return sent(o) && repeats(l, o) })
}

// repeated reports whether l repeats an outcome, whatever limits of time say.
func repeated(l *topology.Layer, o topology.Outcome, m topology.Methods) bool {
	return slices.ContainsFunc(l.Repeats, func(r topology.Repeat) bool {
		return slices.Contains(r.On, o) && (r.Methods == 0 || r.Methods&m != 0) && r.Tries.Or(1) > 1
	})
}

// repeats reports whether l repeats an outcome of any request. Most formats cannot say of which.
func repeats(l *topology.Layer, o topology.Outcome) bool {
	return repeated(l, o, topology.Safe) || repeated(l, o, topology.Unsafe)
}

// Listed returns the HTTP methods of requests that l repeats once they were sent, where its format lists them, in the
// order of their names.
func Listed(l *topology.Layer) []string {
	var all []string
	for _, r := range l.Repeats {
		if r.Tries.Or(1) > 1 {
			all = append(all, r.Listed...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// statuses returns the status codes that l repeats.
func statuses(l *topology.Layer) []string {
	var all []string
	for _, o := range []topology.Outcome{topology.S408, topology.S409, topology.S429, topology.S500, topology.S502,
		topology.S503, topology.S504} {
		if repeats(l, o) {
			all = append(all, o.String())
		}
	}
	return all
}

// codes returns the gRPC codes that l repeats.
func codes(l *topology.Layer) []string {
	var all []string
	for _, o := range topology.AllOutcomes() {
		if o.GRPC() && repeats(l, o) {
			all = append(all, o.String())
		}
	}
	return all
}

// clientCodes are the codes that a client of gRPC repeats. A connection that fails, and a 503 of a proxy, are
// UNAVAILABLE to it.
func clientCodes(l *topology.Layer) []string {
	all := codes(l)
	if len(all) == 0 && (repeats(l, topology.Refused) || repeats(l, topology.S503)) {
		all = []string{topology.Unavailable.String()}
	}
	return all
}

// seconds writes a duration as Envoy, Istio and gRPC read it: "0.25s".
func seconds(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.9f", d.Seconds()), "0"), ".") + "s"
}

// millis writes a duration in whole milliseconds, at least one.
func millis(d time.Duration) string { return fmt.Sprintf("%dms", max(1, d.Milliseconds())) }

// text is a file as it is written.
type text struct{ strings.Builder }

func (t *text) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// set writes a line if the value is there and is not nothing.
func set[T topology.Scalar](t *text, v topology.Value[T], format string, show func(T) string) {
	var zero T
	if got, ok := v.Get(); ok && got != zero {
		t.line(format, show(got))
	}
}

func show[T any](v T) string { return fmt.Sprint(v) }
