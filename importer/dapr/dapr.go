// Package dapr reads Resiliency resources of Dapr, and what its sidecars do without one.
//
// A retry policy that does not say how often repeats for ever, and one that does not say what repeats every failure.
package dapr

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version whose defaults hold when nobody says which it is.
const assumedVersion = "1.16"

// Recognise reports whether a document is a Resiliency resource, or a Configuration that somebody took for one.
func Recognise(d source.Document) bool {
	if !strings.HasPrefix(d.Root.Get("apiVersion").Text(), "dapr.io/") {
		return false
	}
	return d.Root.Get("kind").Text() == "Resiliency" || isMisnamed(d.Root)
}

func isMisnamed(n source.Node) bool {
	return n.Get("kind").Text() == "Configuration" && n.Get("spec", "policies").Exists() &&
		n.Get("spec", "targets").Exists()
}

// Read returns what the documents say: each target is a policy of the sidecars of the apps in scope.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	var out topology.Form
	for i := range docs {
		r := &resiliency{root: docs[i].Root, form: &out, version: assume.Version("dapr", assumedVersion)}
		r.read()
	}
	return out
}

type resiliency struct {
	root    source.Node
	form    *topology.Form
	version topology.Value[string]
}

func (r *resiliency) product() string { return "Dapr " + r.version.V }

func (r *resiliency) subject(rest string) string {
	return r.root.Get("kind").Text() + " " + r.root.Get("metadata", "name").Text() + " " + rest
}

func (r *resiliency) policies(kind string) source.Node { return r.root.Get("spec", "policies", kind) }

// builtIn is the retry policy of calls between apps for which no other is set.
const builtIn = "DaprBuiltInServiceRetries"

// keys of what is set for an app, an actor, or one direction of a component.
var (
	appKeys  = []string{"timeout", "retry", "circuitBreaker", "circuitBreakerCacheSize"}
	partKeys = []string{"timeout", "retry", "circuitBreaker"}
)

func (r *resiliency) read() {
	if isMisnamed(r.root) {
		r.remark("F602", r.root.Get("kind").At(), "kind", "Dapr takes policies and targets from a Resiliency only, so all "+
			"that this Configuration says of them does nothing", "write kind: Resiliency")
		return
	}
	for _, p := range r.policies("retries").Pairs() {
		r.form.Remarks = append(r.form.Remarks, p.Value.Unknown("Dapr", r.subject("retries."+p.Key), "policy", "duration",
			"maxInterval", "maxRetries", "matching")...)
		r.idle(p.Key, p.Value)
		if n, err := strconv.Atoi(p.Value.Get("maxRetries").Text()); p.Key == builtIn && err == nil && n >= 0 && n < 3 {
			r.remark("F604", p.Value.Get("maxRetries").At(), "retries."+p.Key+" maxRetries",
				fmt.Sprintf("%s with %d retries still makes 3", p.Key, n), "set a retry policy of its own for the target")
		}
	}
	for _, p := range r.policies("circuitBreakers").Pairs() {
		r.form.Remarks = append(r.form.Remarks, p.Value.Unknown("Dapr", r.subject("circuitBreakers."+p.Key), "maxRequests",
			"interval", "timeout", "trip")...)
		r.trip(p.Key, p.Value.Get("trip"))
	}
	for _, t := range r.root.Get("spec", "targets", "apps").Pairs() {
		r.unknown("targets.apps."+t.Key, t.Value, "", appKeys)
		r.target(t.Key, "apps", t.Value, t.Name.At())
	}
	for _, t := range r.root.Get("spec", "targets", "components").Pairs() {
		r.unknown("targets.components."+t.Key, t.Value, "write it below outbound: (or inbound:, for what the component "+
			"delivers)", []string{"outbound", "inbound"})
		for _, direction := range []string{"outbound", "inbound"} {
			r.unknown("targets.components."+t.Key+"."+direction, t.Value.Get(direction), "", partKeys)
		}
		if out := t.Value.Get("outbound"); out.Exists() {
			r.target(t.Key, "components", out, t.Name.At())
		}
	}
}

func (r *resiliency) remark(rule string, at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: r.subject(subject), Text: text,
		Fix: fix})
}

// unknown remarks the keys of a target that Dapr does not have there. fix, if not empty, is what to do about those that
// it has elsewhere.
func (r *resiliency) unknown(subject string, n source.Node, fix string, known []string) {
	for _, remark := range n.Unknown("Dapr", r.subject(subject), known...) {
		if key := remark.Subject[strings.LastIndexByte(remark.Subject, ' ')+1:]; fix != "" && slices.Contains(partKeys, key) {
			remark.Fix = fix
		}
		r.form.Remarks = append(r.form.Remarks, remark)
	}
}

// idle remarks a wait that belongs to the other kind of policy.
func (r *resiliency) idle(name string, policy source.Node) {
	if source.Template(policy.Get("policy").Text()) != "" {
		return
	}
	key, fix := "maxInterval", "write duration, or policy: exponential"
	text := "a constant policy waits for its duration each time, which is " +
		cmp.Or(policy.Get("duration").Text(), "5s here") + ", so maxInterval does nothing"
	if policy.Get("policy").Text() == "exponential" {
		key, fix = "duration", "leave it out, or write policy: constant"
		text = "an exponential policy begins with 500ms and grows to its maxInterval, so duration does nothing"
	}
	if n := policy.Get(key); n.Exists() {
		r.remark("F602", n.At(), "retries."+name+" "+key, text, fix)
	}
}

// counts are what the expression of a breaker can ask.
var counts = []string{"requests", "totalSuccesses", "totalFailures", "consecutiveSuccesses", "consecutiveFailures"}

var identifier = regexp.MustCompile(`"[^"]*"|'[^']*'|\b[A-Za-z_]\w*\b`)

// trip remarks an expression that asks what Dapr does not count. Dapr takes it, but its evaluation fails each time, and
// then the breaker stays closed. Only beside || can it hold all the same.
func (r *resiliency) trip(name string, n source.Node) {
	if source.Template(n.Text()) != "" || strings.Contains(n.Text(), "||") {
		return
	}
	for _, word := range identifier.FindAllString(n.Text(), -1) {
		switch word {
		case "true", "false", "null", "in", "int", "uint", "double", "size":
			continue
		}
		if strings.ContainsAny(word, `"'`) || slices.Contains(counts, word) {
			continue
		}
		r.remark("F501", n.At(), "circuitBreakers."+name+" trip", "the breaker "+name+" never opens: Dapr counts no "+word+
			", so its expression never holds", source.Meant(word, counts))
		return
	}
}

// target makes the policy of one app or component.
func (r *resiliency) target(name, kind string, n source.Node, at topology.Position) {
	l := topology.Layer{Kind: topology.SidecarOut, Product: "dapr", Version: r.version, At: at,
		Name: r.subject("targets." + kind + "." + name), Cancels: topology.DefaultOf(true, r.product(), at)}
	if kind == "components" { // which is asked in the protocol of what it stands for
		l.Speaks = topology.DefaultOf(topology.SpeaksOther, "a component of Dapr", at)
	}
	if t := n.Get("timeout"); t.Exists() {
		named := r.policies("timeouts").Get(t.Text())
		if !named.Exists() {
			named = t
		}
		v, remarks := source.Scalar(named, source.Duration)
		if r.elsewhere() {
			v, remarks = topology.NotKnown[time.Duration]("a policy of another file", t.At()), nil
		}
		l.PerTry, r.form.Remarks = v, append(r.form.Remarks, remarks...)
	}
	switch retry := n.Get("retry"); {
	case retry.Exists():
		if p, ok := r.named("retries", retry); ok {
			r.retry(p, &l)
		}
	case kind == "apps":
		r.byDefault(&l)
	}
	if b := n.Get("circuitBreaker"); b.Exists() {
		if p, ok := r.named("circuitBreakers", b); ok {
			l.Breaker = r.breaker(p)
		}
	}
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{name},
		Callers:   r.root.Get("scopes").Texts(),
		Namespace: r.root.Get("metadata", "namespace").Text(), Layer: l})
}

// elsewhere reports that the document has no policies: it is laid over another one, which has them.
func (r *resiliency) elsewhere() bool { return !r.root.Get("spec", "policies").Exists() }

// named finds a policy by its name.
func (r *resiliency) named(kind string, n source.Node) (source.Node, bool) {
	p := r.policies(kind).Get(n.Text())
	if p.Exists() {
		return p, true
	}
	if r.elsewhere() {
		return p, false
	}
	var known []string
	for _, k := range r.policies(kind).Pairs() {
		known = append(known, k.Key)
	}
	r.remark("F601", n.At(), kind+" "+n.Text(), "there is no policy "+n.Text()+" under "+kind+", so nothing is set",
		source.Meant(n.Text(), known))
	return p, false
}

// byDefault is what a sidecar does for a call to an app without a retry policy.
func (r *resiliency) byDefault(l *topology.Layer) {
	p := r.policies("retries").Get(builtIn)
	if p.Exists() {
		r.retry(p, l)
		for i := range l.Repeats {
			if n, ok := l.Repeats[i].Tries.Get(); ok && n < 4 {
				l.Repeats[i].Tries.V = 4
			}
		}
		return
	}
	l.Repeats = []topology.Repeat{{On: []topology.Outcome{topology.Unavailable, topology.Refused, topology.ResetUnsent},
		Tries: topology.DefaultOf(4, r.product(), l.At), Word: builtIn, At: l.At}}
	l.Backoff.First = topology.DefaultOf(time.Second, r.product(), l.At)
}

// retry reads a retry policy.
func (r *resiliency) retry(p source.Node, l *topology.Layer) {
	at := p.At()
	tries := topology.DefaultOf(topology.Unbounded, r.product()+", which repeats for ever", at)
	if n := p.Get("maxRetries"); n.Exists() {
		v, remarks := source.Scalar(n, func(word string) (int, error) {
			if word == "-1" {
				return topology.Unbounded, nil
			}
			n, err := source.Int(word)
			return n + 1, err
		})
		tries, r.form.Remarks = v, append(r.form.Remarks, remarks...)
	}
	scalar := func(key string, byDefault time.Duration) topology.Value[time.Duration] {
		v, remarks := source.Scalar(p.Get(key), source.Duration)
		r.form.Remarks = append(r.form.Remarks, remarks...)
		if v.IsZero() {
			return topology.DefaultOf(byDefault, r.product(), at)
		}
		return v
	}
	if p.Get("policy").Text() == "exponential" {
		l.Backoff = topology.Backoff{First: topology.DefaultOf(500*time.Millisecond, r.product(), at),
			Max:        scalar("maxInterval", time.Minute),
			Multiplier: topology.DefaultOf(1.5, r.product(), at), Jitter: topology.DefaultOf("±50%", r.product(), at)}
		// It forbids a further try to begin, and ends none that runs.
		l.Overall, l.StartsOnly = topology.DefaultOf(15*time.Minute, r.product(), at), true
	} else {
		l.Backoff.First = scalar("duration", 5*time.Second)
	}
	word, on := "every failure", topology.AllOutcomes()
	if m := p.Get("matching"); m.Exists() {
		word, on = "matching", matching(m)
		at = m.At()
	}
	l.Repeats = []topology.Repeat{{On: on, Tries: tries, Word: word, At: at}}
}

var statuses = []struct {
	code int
	o    topology.Outcome
}{{500, topology.S500}, {502, topology.S502}, {503, topology.S503}, {504, topology.S504}, {429, topology.S429},
	{408, topology.S408}, {409, topology.S409}, {404, topology.S4xx}}

var codes = []struct {
	code int
	o    topology.Outcome
}{{1, topology.CancelledCode}, {2, topology.UnknownCode}, {4, topology.DeadlineExceeded}, {8,
	topology.ResourceExhausted},
	{10, topology.Aborted}, {13, topology.Internal}, {14, topology.Unavailable}}

// matching returns the outcomes that a policy names: "429,500-599". What brings no answer is always repeated.
func matching(m source.Node) []topology.Outcome {
	on := []topology.Outcome{topology.Refused, topology.ResetUnsent, topology.ResetSent, topology.Hang}
	for _, s := range statuses {
		if within(m.Get("httpStatusCodes").Text(), s.code) {
			on = append(on, s.o)
		}
	}
	for _, c := range codes {
		if within(m.Get("gRPCStatusCodes").Text(), c.code) {
			on = append(on, c.o)
		}
	}
	return on
}

// within reports whether a list of numbers and ranges has a number.
func within(list string, n int) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(part string) bool {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(strings.TrimSpace(low))
		if err != nil || !isRange {
			return err == nil && a == n
		}
		b, err := strconv.Atoi(strings.TrimSpace(high))
		return err == nil && a <= n && n <= b
	})
}

var inARow = regexp.MustCompile(`^\s*consecutiveFailures\s*(>=?)\s*(\d{1,6})\s*$`)

// breaker reads a circuit breaker, whose trip is an expression.
func (r *resiliency) breaker(p source.Node) topology.Breaker {
	at := p.At()
	b := topology.Breaker{Consecutive: topology.DefaultOf(6, r.product(), at),
		InsideRetry: topology.DefaultOf(true, r.product(), at)}
	if trip := p.Get("trip"); trip.Exists() {
		b.Consecutive = topology.NotKnown[int]("the expression "+trip.Text(), trip.At())
		if m := inARow.FindStringSubmatch(trip.Text()); m != nil {
			n, _ := strconv.Atoi(m[2])
			if m[1] == ">" {
				n++
			}
			b.Consecutive = topology.Write(n, trip.At())
		}
	}
	v, remarks := source.Scalar(p.Get("timeout"), source.Duration)
	if b.OpenFor = v; v.IsZero() {
		b.OpenFor = topology.DefaultOf(time.Minute, r.product(), at)
	}
	r.form.Remarks = append(r.form.Remarks, remarks...)
	return b
}
