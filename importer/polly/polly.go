// Package polly reads the options of .NET's standard resilience handler (Microsoft.Extensions.Http.Resilience, which is
// built on Polly) in appsettings files. That a client uses such options, and whether unsafe methods were taken out,
// only its code says.
package polly

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

const who = ".NET's standard resilience handler"

// levels are how deep in a file options are looked for.
const levels = 5

// strategies are the sections of the options, with a key by which each is known.
var strategies = map[string][]string{
	"Retry":               {"MaxRetryAttempts", "BackoffType", "UseJitter", "Delay", "MaxDelay", "ShouldRetryAfterHeader"},
	"AttemptTimeout":      {"Timeout"},
	"TotalRequestTimeout": {"Timeout"}, "CircuitBreaker": {"SamplingDuration", "MinimumThroughput", "FailureRatio",
		"BreakDuration"},
}

// isOptions reports whether a section has the options of the handler: two of its strategies, or one in a section that
// is named after it.
func isOptions(name string, n source.Node) bool {
	found := 0
	for strategy, keys := range strategies {
		for _, key := range keys {
			if get(n, strategy, key).Exists() {
				found++
				break
			}
		}
	}
	return found > 1 || found == 1 && strings.Contains(strings.ToLower(name), "resilience")
}

// get finds keys whatever their case: so does .NET.
func get(n source.Node, keys ...string) source.Node {
	for _, key := range keys {
		next := source.Node{}
		for _, p := range n.Pairs() {
			if strings.EqualFold(p.Key, key) {
				next = p.Value
			}
		}
		n = next
	}
	return n
}

// section is one place in a file that has options.
type section struct {
	keys []string
	node source.Node
}

func sections(n source.Node, keys []string) []section {
	if len(keys) > levels || !n.IsMap() {
		return nil
	}
	if len(keys) > 0 && isOptions(keys[len(keys)-1], n) {
		return []section{{keys, n}}
	}
	var all []section
	for _, p := range n.Pairs() {
		all = append(all, sections(p.Value, append(keys[:len(keys):len(keys)], p.Key))...)
	}
	return all
}

// Recognise reports whether a document is JSON with the options of a handler.
func Recognise(d source.Document) bool {
	return !d.Root.Get("apiVersion").Exists() && strings.HasPrefix(strings.TrimSpace(string(d.Data[:min(len(d.Data),
		64)])),
		"{") && len(sections(d.Root, nil)) > 0
}

// Read returns a policy for each section: of the client that it is named after.
func Read(docs []source.Document, _ source.Assume) topology.Form {
	r := &reader{}
	for i := range docs {
		for _, s := range sections(docs[i].Root, nil) {
			r.section(&docs[i], s)
		}
	}
	return r.form
}

type reader struct{ form topology.Form }

func value[T topology.Scalar](r *reader, n source.Node, parse func(string) (T, error), byDefault T,
	at topology.Position,
) topology.Value[T] {
	v, remarks := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, remarks...)
	if v.IsZero() {
		return topology.DefaultOf(byDefault, who, at)
	}
	return v
}

func (r *reader) section(d *source.Document, s section) {
	at := s.node.At()
	retry, breaker := get(s.node, "Retry"), get(s.node, "CircuitBreaker")
	l := topology.Layer{Kind: topology.Client, Product: "polly", At: at, Name: "section " + strings.Join(s.keys, ":"),
		Cancels: topology.DefaultOf(true, who, at),
		PerTry:  value(r, get(s.node, "AttemptTimeout", "Timeout"), timeSpan, 10*time.Second, at),
		Overall: value(r, get(s.node, "TotalRequestTimeout", "Timeout"), timeSpan, 30*time.Second, at),
		Backoff: backoff(r, retry, at),
		Limits: topology.Limits{Requests: value(r, get(s.node, "RateLimiter", "DefaultRateLimiterOptions",
			"PermitLimit"), source.Int, 1000, at)},
		Breaker: topology.Breaker{FailureRatio: value(r, get(breaker, "FailureRatio"), source.Float, 0.1, at),
			MinimumCalls: value(r, get(breaker, "MinimumThroughput"), source.Int, 100, at),
			Window:       value(r, get(breaker, "SamplingDuration"), timeSpan, 30*time.Second, at),
			OpenFor:      value(r, get(breaker, "BreakDuration"), timeSpan, 5*time.Second, at),
			InsideRetry:  topology.DefaultOf(true, who, at)}}
	tries := value(r, get(retry, "MaxRetryAttempts"), source.Int, 3, at)
	if n, ok := tries.Get(); ok {
		if tries.V++; n == 0 {
			r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F606", At: tries.At,
				Subject: l.Name + " Retry MaxRetryAttempts",
				Text:    "MaxRetryAttempts is 0, and must be at least 1: the program does not start",
				Fix:     "switch retries off in code, where the handler is added"})
		}
	}
	l.Repeats = []topology.Repeat{{On: []topology.Outcome{topology.Refused, topology.ResetUnsent, topology.ResetSent,
		topology.Hang, topology.S500, topology.S502, topology.S503, topology.S504, topology.S429, topology.S408},
		Methods: topology.AllMethods, Tries: tries, Word: "Retry", At: retryAt(retry, at)}}
	r.hierarchy(&l, get(breaker, "SamplingDuration"))
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: names(s.keys), Callers: []string{program(d)},
		Layer: l})
}

// program is the service that an appsettings file belongs to: that of its folder.
func program(d *source.Document) string {
	named := source.Document{File: path.Dir(d.File) + "/config", Owner: d.Owner}
	return named.Service("dotnet")
}

func retryAt(retry source.Node, at topology.Position) topology.Position {
	if retry.Exists() {
		return retry.At()
	}
	return at
}

// hierarchy remarks limits with which the program does not start: .NET checks them.
func (r *reader) hierarchy(l *topology.Layer, sampling source.Node) {
	one, ok := l.PerTry.Get()
	all, known := l.Overall.Get()
	if ok && known && all < one {
		r.remark(l.Overall.At, l.Name+" TotalRequestTimeout", fmt.Sprintf(
			"the limit of all tries (%s) is below that of one (%s): "+
				"the program does not start", all, one), "make it at least as long as one try")
	}
	if window, told := l.Breaker.Window.Get(); ok && told && window < 2*one {
		at := l.PerTry.At
		if sampling.Exists() {
			at = sampling.At()
		}
		r.remark(at, l.Name+" SamplingDuration", fmt.Sprintf(
			"the breaker's window (%s) is below twice the limit of a try (%s): "+
				"the program does not start", window, one), "make it at least twice as long")
	}
}

func (r *reader) remark(at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: "F606", At: at, Subject: subject, Text: text, Fix: fix})
}

func backoff(r *reader, retry source.Node, at topology.Position) topology.Backoff {
	b := topology.Backoff{First: value(r, get(retry, "Delay"), timeSpan, 2*time.Second, at),
		RetryAfter: value(r, get(retry, "ShouldRetryAfterHeader"), source.Bool, true, at),
		Jitter:     topology.DefaultOf("full", who, at)}
	if most := get(retry, "MaxDelay"); most.Exists() {
		b.Max = value(r, most, timeSpan, 0, at)
	}
	if jitter := get(retry, "UseJitter"); strings.EqualFold(jitter.Text(), "false") {
		b.Jitter = topology.Write("none", jitter.At())
	}
	switch kind := get(retry, "BackoffType"); {
	case !kind.Exists():
		b.Multiplier = topology.DefaultOf(2.0, who, at)
	case strings.EqualFold(kind.Text(), "Constant"):
		b.Multiplier = topology.Write(1.0, kind.At())
	case strings.EqualFold(kind.Text(), "Exponential"):
		b.Multiplier = topology.Write(2.0, kind.At())
	default: // linear grows less than that
		b.Multiplier = topology.NotKnown[float64]("waits of kind "+kind.Text(), kind.At())
	}
	return b
}

var span = regexp.MustCompile(`^(?:(\d{1,8})\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d{1,7})?)?$`)

// timeSpan reads a duration as .NET writes it: "00:00:10", "1.02:00:00", "7" for days.
func timeSpan(word string) (time.Duration, error) {
	word = strings.TrimSpace(word)
	if days, err := strconv.Atoi(word); err == nil && days >= 0 && days < 100_000 {
		return time.Duration(days) * 24 * time.Hour, nil
	}
	m := span.FindStringSubmatch(word)
	if m == nil {
		return 0, fmt.Errorf("%q is no time span such as 00:00:10 (hours, minutes, seconds)", word)
	}
	var total time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(m[i+1])
		if i == 0 && n > 100_000 {
			return 0, fmt.Errorf("%q is longer than any program runs", word)
		}
		total += time.Duration(n) * unit
	}
	if m[5] != "" {
		f, _ := strconv.ParseFloat("0"+m[5], 64)
		total += time.Duration(f * float64(time.Second))
	}
	return total, nil
}

// ends are words that the names of sections have behind the name of the service.
var ends = []string{"Options", "Resilience", "HttpStandard", "Http", "Client", "Api", "Standard", "Service"}

// names returns the names of the service that a section is for: of HttpClients:OrdersClient:Resilience it is orders.
func names(keys []string) []string {
	for i := len(keys) - 1; i >= 0; i-- {
		stem := keys[i]
		for again := true; again; {
			again = false
			for _, end := range ends {
				if cut, ok := strings.CutSuffix(stem, end); ok {
					stem, again = cut, true
				}
			}
		}
		if stem = strings.Trim(stem, "-_.: "); stem != "" && !strings.HasSuffix(stem, "Clients") {
			return []string{kebab(stem)}
		}
	}
	return []string{"http-client"}
}

// kebab writes OrderItems as order-items.
func kebab(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && unicode.IsUpper(c) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
