package linkerd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

type duration = time.Duration

const (
	retryPrefix   = "retry.linkerd.io/"
	timeoutPrefix = "timeout.linkerd.io/"
	accrual       = "balancer.linkerd.io/failure-accrual"
	oneRetry      = 1 // where retry.linkerd.io/limit is left out
)

var grpcWords = map[string]topology.Outcome{"cancelled": topology.CancelledCode,
	"deadline-exceeded": topology.DeadlineExceeded,
	"internal":          topology.Internal, "resource-exhausted": topology.ResourceExhausted,
	"unavailable": topology.Unavailable}

var (
	retryNames   = []string{"http", "grpc", "limit", "timeout"}
	timeoutNames = []string{"request", "response", "idle"}
)

// retries reads the retry annotations of a Service or a route.
func (r *reader) retries(l *topology.Layer, o source.Resource) {
	if !has(o, isRetry) {
		return
	}
	r.unknown(o, retryPrefix, retryNames)
	at := o.Root.Get("metadata", "annotations").At()
	tries := envoywords.Or(r.limit(o), topology.DefaultOf(1+oneRetry, r.who, at))
	l.PerTry = read(r, o.Annotation(retryPrefix+"timeout"), source.Duration)
	hang := topology.Repeat{On: []topology.Outcome{topology.Hang}, Tries: tries, At: at}
	if on := o.Annotation(retryPrefix + "timeout"); on.Exists() {
		hang.Word, hang.At = on.Text(), on.At()
	}
	http, grpc := o.Annotation(retryPrefix+"http"), o.Annotation(retryPrefix+"grpc")
	for _, wrong := range []struct {
		n    source.Node
		kind string
	}{{http, "GRPCRoute"}, {grpc, "HTTPRoute"}} {
		if wrong.n.Exists() && o.Kind == wrong.kind {
			r.remark("F602", wrong.n.At(), o.String()+" retry", "this annotation does nothing on a "+wrong.kind,
				"write "+retryPrefix+"http on an HTTPRoute, "+retryPrefix+"grpc on a GRPCRoute")
		}
	}
	if o.Kind != "GRPCRoute" {
		r.words(l, o, http, tries, statuses)
	}
	if o.Kind != "HTTPRoute" {
		r.words(l, o, grpc, tries, code)
	}
	l.Repeats = append(l.Repeats, hang) // which without that limit never ends
	if !http.Exists() && !grpc.Exists() {
		r.remark("F602", at, o.String()+" retry",
			"no status is repeated, because neither "+retryPrefix+"http nor "+retryPrefix+
				"grpc says which", "say which, for example "+retryPrefix+"http: gateway-error")
	}
	l.Backoff = r.backoff(at)
}

func (r *reader) backoff(at topology.Position) topology.Backoff {
	return topology.Backoff{First: topology.DefaultOf(25*time.Millisecond, r.who, at),
		Max: topology.DefaultOf(250*time.Millisecond, r.who, at), Multiplier: topology.DefaultOf(2.0, r.who, at),
		Jitter: topology.DefaultOf("±100%", r.who, at), RetryAfter: topology.DefaultOf(false, r.who, at)}
}

// limit reads the number of retries. A written 0 is dropped, and the default takes its place.
func (r *reader) limit(o source.Resource) value[int] {
	n := o.Annotation(retryPrefix + "limit")
	v := read(r, n, source.Int)
	if number, known := v.Get(); known && number == 0 {
		r.remark("F604", n.At(), o.String()+" retry limit", "a limit of 0 counts as none given, so there is 1 retry",
			"remove the retry annotations to switch retries off")
		v = topology.Assume(1+oneRetry, "Linkerd takes a limit of 0 for none given")
		v.At = n.At()
		return v
	}
	return envoywords.PlusOne(v)
}

// words adds a rule for each condition of an annotation. One that Linkerd cannot read takes the others with it.
func (r *reader) words(l *topology.Layer, o source.Resource, n source.Node, tries value[int],
	meaning func(string) ([]topology.Outcome, string)) {
	var repeats []topology.Repeat
	for _, part := range n.Parts(",") {
		on, fix := meaning(part.Text)
		switch {
		case source.Template(part.Text) != "":
			repeats = append(repeats, topology.Repeat{On: topology.AllOutcomes(), At: part.At, Word: part.Text,
				Tries: topology.NotKnown[int]("template "+part.Text, part.At)})
		case fix != "":
			r.remark("F601", part.At, o.String()+" retry "+part.Text,
				fmt.Sprintf("Linkerd knows no condition %q, and ignores the whole annotation",
					part.Text), fix)
			repeats = nil
			l.Repeats = append(l.Repeats, topology.Repeat{On: topology.AllOutcomes(), At: part.At, Word: part.Text,
				Tries: topology.NotKnown[int]("Linkerd cannot read "+strconv.Quote(part.Text), part.At)})
			return
		default:
			repeats = append(repeats, topology.Repeat{On: on, Tries: tries, Word: part.Text, At: part.At})
		}
	}
	l.Repeats = append(l.Repeats, repeats...)
}

// statuses reads 5xx, gateway-error, 503 or 500-504; or says what may have been meant.
func statuses(word string) ([]topology.Outcome, string) {
	low, high := 0, 0
	switch from, to, isRange := strings.Cut(word, "-"); {
	case word == "5xx":
		low, high = 500, 599
	case word == "gateway-error":
		low, high = 502, 504
	default:
		if !isRange {
			to = from
		}
		var err, err2 error
		low, err = strconv.Atoi(from)
		high, err2 = strconv.Atoi(to)
		if err != nil || err2 != nil || low < 100 || high > 599 || low > high {
			return nil, source.Meant(word, []string{"5xx", "gateway-error", "503", "500-504"})
		}
	}
	seen := map[topology.Outcome]bool{}
	var on []topology.Outcome
	for status := low; status <= high; status++ {
		if o, failure := envoywords.Status(status); failure && !seen[o] {
			seen[o] = true
			on = append(on, o)
		}
	}
	return on, ""
}

func code(word string) ([]topology.Outcome, string) {
	if o, known := grpcWords[word]; known {
		return []topology.Outcome{o}, ""
	}
	return nil, source.Meant(word, []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted",
		"unavailable"})
}

// timeouts reads the timeout annotations, which end the call and are not repeated.
func (r *reader) timeouts(l *topology.Layer, o source.Resource) {
	r.unknown(o, timeoutPrefix, timeoutNames)
	l.Overall = read(r, o.Annotation(timeoutPrefix+"request"), source.Duration)
	if l.Overall.Or(0) == 0 && !l.Overall.IsUnknown() {
		l.Overall = envoywords.Or(read(r, o.Annotation(timeoutPrefix+"response"), source.Duration), l.Overall)
	}
	if l.Overall.IsZero() {
		l.Overall = topology.DefaultOf(duration(0), r.who, l.At)
	}
}

// breaker reads the failure accrual of a Service, which ejects endpoints.
func (r *reader) breaker(l *topology.Layer, o source.Resource) {
	mode := o.Annotation(accrual)
	if mode.Text() != "consecutive" {
		return
	}
	l.Ejection = topology.Ejection{
		Consecutive: envoywords.Or(read(r, o.Annotation(accrual+"-consecutive-max-failures"), source.Int),
			topology.DefaultOf(7, r.who, mode.At())),
		Base: envoywords.Or(read(r, o.Annotation(accrual+"-consecutive-min-penalty"), source.Duration),
			topology.DefaultOf(time.Second, r.who, mode.At())),
		MaxShare: topology.DefaultOf(1.0, r.who+" (all endpoints may be out)", mode.At()),
	}
}

// unknown remarks annotations of a family that Linkerd does not know.
func (r *reader) unknown(o source.Resource, prefix string, known []string) {
	for _, p := range o.Root.Get("metadata", "annotations").Pairs() {
		name, ours := strings.CutPrefix(p.Key, prefix)
		if !ours {
			continue
		}
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !found {
			r.remark("F601", p.Name.At(), o.String()+" "+p.Key, "Linkerd has no annotation "+p.Key+", so it does nothing",
				source.Meant(name, known))
		}
	}
}
