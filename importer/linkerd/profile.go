package linkerd

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// What a ServiceProfile says where it leaves a value out.
const (
	profileTimeout = 10 * time.Second
	profileRatio   = 0.2
	profileFloor   = 10.0
	profileWindow  = 10 * time.Second
)

var profileRouteKeys = []string{"name", "condition", "isRetryable", "timeout", "responseClasses"}

// profile reads a ServiceProfile: a layer for each of its routes. Retries have no count, only the budget of all
// together.
func (r *reader) profile(p source.Resource) {
	host := topology.Strip(p.Name)
	for i, n := range p.Spec.Get("routes").Items() {
		l := r.layer(fmt.Sprintf("%s, routes[%d]", p, i), n.At())
		r.form.Remarks = append(r.form.Remarks, n.Unknown("Linkerd", l.Name, profileRouteKeys...)...)
		l.Match = condition(n.Get("condition"))
		l.Overall = envoywords.Or(read(r, n.Get("timeout"), source.Duration), topology.DefaultOf(profileTimeout, r.who,
			n.At()))
		retryable := n.Get("isRetryable")
		switch yes := read(r, retryable, source.Bool); {
		case yes.IsUnknown():
			l.Repeats = []topology.Repeat{{On: topology.AllOutcomes(), Tries: topology.NotKnown[int](yes.Why, yes.At),
				At: yes.At}}
		case yes.Or(false):
			if l.Repeats = r.failures(n.Get("responseClasses"), retryable); isGRPC(n.Get("condition")) {
				l.Speaks = topology.Write(topology.SpeaksGRPC, n.Get("condition").At())
				l.Repeats = r.codes(retryable)
			}
			l.Budget = r.budget(p.Spec.Get("retryBudget"), p.At)
		default:
			at := n.At()
			if retryable.Exists() {
				at = retryable.At()
			}
			l.Repeats = []topology.Repeat{envoywords.Off(topology.DefaultOf(1, r.who, at), "isRetryable", at)}
		}
		r.emit(host, p.Namespace, l)
	}
}

// failures returns what a retryable route repeats: answers that count as failures.
func (r *reader) failures(classes, retryable source.Node) []topology.Repeat {
	tries := r.unbounded(retryable)
	var on []topology.Outcome
	seen := map[topology.Outcome]bool{}
	for status := 400; status <= 599; status++ {
		if o, _ := envoywords.Status(status); !seen[o] && fails(status, classes) {
			seen[o] = true
			on = append(on, o)
		}
	}
	codes := []topology.Outcome{topology.Unavailable, topology.ResourceExhausted, topology.Internal, topology.UnknownCode,
		topology.DeadlineExceeded, topology.CancelledCode, topology.Aborted}
	return []topology.Repeat{{On: on, Tries: tries, Word: "isRetryable", At: retryable.At()}, unsettled(retryable, codes)}
}

// codes returns what a retryable route of gRPC repeats. Its answers have the status 200, whatever became of the call.
func (r *reader) codes(retryable source.Node) []topology.Repeat {
	always := []topology.Outcome{topology.Unavailable, topology.Internal, topology.UnknownCode, topology.DeadlineExceeded}
	return []topology.Repeat{{On: always, Tries: r.unbounded(retryable), Word: "isRetryable", At: retryable.At()},
		unsettled(retryable, []topology.Outcome{topology.ResourceExhausted, topology.CancelledCode, topology.Aborted})}
}

func (r *reader) unbounded(retryable source.Node) value[int] {
	return topology.DefaultOf(topology.Unbounded, r.who+": a ServiceProfile has no count, only its budget", retryable.At())
}

// unsettled is what some versions repeat.
func unsettled(retryable source.Node, codes []topology.Outcome) topology.Repeat {
	return topology.Repeat{On: codes, Tries: topology.NotKnown[int]("which codes count as failures depends on the version",
		retryable.At()), Word: "isRetryable", At: retryable.At()}
}

var pathOfGRPC = regexp.MustCompile(`^\^?/(\w+\\?\.)+\w+/\w+\$?$`)

// isGRPC reports whether a condition is for one method of gRPC: a POST to /package.Service/Method.
func isGRPC(condition source.Node) bool {
	return condition.Get("method").Text() == "POST" && pathOfGRPC.MatchString(condition.Get("pathRegex").Text())
}

// fails reports whether a status counts as a failure: the first class that it belongs to says so, else those from 500
// up do.
func fails(status int, classes source.Node) bool {
	for _, c := range classes.Items() {
		limits := c.Get("condition", "status")
		low, errLow := source.Int(limits.Get("min").Text())
		high, errHigh := source.Int(limits.Get("max").Text())
		if errLow != nil {
			low = high
		}
		if errHigh != nil {
			high = low
		}
		if limits.Exists() && low <= status && status <= high {
			return c.Get("isFailure").Text() == "true"
		}
	}
	return status >= 500
}

func (r *reader) budget(n source.Node, at topology.Position) topology.Budget {
	if n.Exists() {
		at = n.At()
	}
	return topology.Budget{
		Ratio: envoywords.Or(read(r, n.Get("retryRatio"), source.Float), topology.DefaultOf(profileRatio, r.who, at)),
		PerSecond: envoywords.Or(read(r, n.Get("minRetriesPerSecond"), source.Float), topology.DefaultOf(profileFloor, r.who,
			at)),
		Window: envoywords.Or(read(r, n.Get("ttl"), source.Duration), topology.DefaultOf(profileWindow, r.who, at)),
	}
}

// condition returns what a route of a ServiceProfile is for.
func condition(n source.Node) topology.Match {
	var m topology.Match
	if re := n.Get("pathRegex").Text(); re != "" {
		m.Path = "~" + re
	}
	if method := n.Get("method").Text(); method != "" {
		m.Methods = []string{method}
	}
	var other []string
	for _, key := range []string{"all", "any", "not"} {
		if n.Get(key).Exists() {
			other = append(other, key+" of several conditions")
		}
	}
	m.Other = strings.Join(other, ", ")
	return m
}
