package abatefile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/topology"
)

// Layer returns what the form says of a service's policy, without the places in its file.
func Layer(name string, p *policyfile.Policy) topology.Layer {
	r := &reader{doc: &source.Document{}, form: &topology.Form{}}
	r.service(&policyfile.Service{Name: name, Policy: *p})
	return r.form.Policies[0].Layer
}

// service makes the policy of one service.
func (r *reader) service(s *policyfile.Service) {
	p := s.Policy.WithDefaults()
	l := topology.Layer{Kind: topology.Client, Product: "abate", Name: "services." + s.Name, At: r.place(s.Name),
		PerTry:  value(r, s.Name, p.AttemptTimeout, "attemptTimeout"),
		Overall: value(r, s.Name, p.Timeout, "timeout"),
		Cancels: topology.DefaultOf(true, "Abate", r.place(s.Name)),
		Owner:   value(r, s.Name, string(p.RetryOwner), "retryOwner"),
	}
	if l.Owner.V == "" {
		l.Owner.V = "nearest"
	}
	if p.MaxRetries > 0 {
		l.Repeats, l.Backoff, l.Budget = r.repeats(s.Name, &p), r.backoff(s.Name, &p), r.budget(s.Name, &p)
	}
	l.Breaker = r.breaker(s.Name, &p)
	if p.Bulkhead.Enabled() && p.Bulkhead.MaxConcurrentCalls > 0 {
		l.Limits.Requests = value(r, s.Name, p.Bulkhead.MaxConcurrentCalls, "bulkhead", "maxConcurrentCalls")
		l.Limits.Pending = value(r, s.Name, p.Bulkhead.MaxQueue, "bulkhead", "maxQueue")
	}
	if p.Hedge.Enabled() {
		l.Hedge = topology.Hedge{Copies: value(r, s.Name, p.Hedge.MaxHedges, "hedge", "maxHedges"),
			Delay: value(r, s.Name, p.Hedge.Delay, "hedge", "delay")}
		if l.Budget == (topology.Budget{}) {
			l.Budget = r.budget(s.Name, &p)
		}
	}
	if o := p.OutlierDetection; len(p.Upstreams) > 1 && !o.Disabled {
		l.Ejection = topology.Ejection{Consecutive: value(r, s.Name, o.ConsecutiveFailures, "outlierDetection",
			"consecutiveFailures"),
			Base:     value(r, s.Name, o.BaseEjectionTime, "outlierDetection", "baseEjectionTime"),
			MaxShare: value(r, s.Name, o.MaxEjectionShare, "outlierDetection", "maxEjectionShare")}
	}
	out := topology.Policy{Callees: []string{s.Name}, Layer: l}
	for _, u := range p.Upstreams {
		if host := source.Callee(u); host != "" && !slices.Contains(out.Callees, host) {
			out.Callees = append(out.Callees, host)
		}
	}
	if r.doc.Owner != "" {
		out.Callers = []string{r.doc.Owner}
	}
	r.form.Policies = append(r.form.Policies, out)
}

var (
	resets  = []topology.Outcome{topology.ResetUnsent, topology.ResetSent}
	gateway = []topology.Outcome{topology.S502, topology.S503, topology.S504}
)

// conditions are the words of retryOn and neverRetryOn, and what each means.
var conditions = map[string][]topology.Outcome{
	"408": {topology.S408}, "409": {topology.S409}, "429": {topology.S429}, "500": {topology.S500}, "502": {topology.S502},
	"503": {topology.S503}, "504": {topology.S504}, "5xx": append([]topology.Outcome{topology.S500}, gateway...),
	"4xx":           {topology.S408, topology.S409, topology.S429, topology.S4xx},
	"gateway-error": gateway, "connect-failure": {topology.Refused}, "reset": resets, "timeout": {topology.Hang},
	"error":       {topology.Refused, topology.ResetUnsent, topology.ResetSent, topology.Hang},
	"UNAVAILABLE": {topology.Unavailable}, "RESOURCE_EXHAUSTED": {topology.ResourceExhausted},
	"INTERNAL": {topology.Internal},
	"UNKNOWN":  {topology.UnknownCode}, "DEADLINE_EXCEEDED": {topology.DeadlineExceeded},
	"CANCELLED": {topology.CancelledCode},
	"ABORTED":   {topology.Aborted},
}

// safeMethods are what may be repeated without a list of methods.
var safeMethods = []string{"GET", "HEAD", "OPTIONS", "TRACE"}

// byDefault are the words that stand for a list that is not written: what hops.JudgeStatus says is worth a retry, and
// errors of the connection. Codes of gRPC count only where they are listed, or where a method is.
var byDefault = []string{"408", "429", "500", "502", "503", "504", "error"}

// meaning returns what a word means. A status of 400 to 499 without a row is one of "other 4xx".
func meaning(word string) []topology.Outcome {
	if on, ok := conditions[word]; ok {
		return on
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 400 && n < 500 {
		return []topology.Outcome{topology.S4xx}
	}
	return nil
}

// Apart reports whether a word of retryOn or neverRetryOn is what the form tells apart from other outcomes. A single
// status such as 501 is one of its class there.
func Apart(word string) bool { return conditions[word] != nil }

// repeats returns what a service's calls repeat.
func (r *reader) repeats(service string, p *policyfile.Policy) []topology.Repeat {
	tries := value(r, service, p.MaxRetries+1, "maxRetries")
	listed, methods := repeatable(p.RetryMethods)
	words := p.RetryOn
	if len(words) == 0 {
		words = byDefault
	}
	never := map[topology.Outcome]bool{}
	for _, word := range p.NeverRetryOn {
		for _, o := range meaning(word) {
			never[o] = true
		}
	}
	at := r.place(service)
	list, _ := r.at(service, "retryOn")
	var out []topology.Repeat
	for _, word := range words {
		place := at
		for _, item := range list.Items() {
			if item.Text() == word {
				place = item.At()
			}
		}
		by := map[topology.Methods][]topology.Outcome{}
		for _, o := range meaning(word) {
			m := methods
			if o == topology.Refused || o.GRPC() { // nothing was sent; codes that are listed say that methods may be repeated
				m = topology.AllMethods
			}
			if !never[o] {
				by[m] = append(by[m], o)
			}
		}
		for _, m := range []topology.Methods{topology.AllMethods, topology.Safe, topology.Unsafe} {
			if len(by[m]) == 0 || m == 0 { // of HTTP nothing that was sent is repeated
				continue
			}
			rep := topology.Repeat{On: by[m], Methods: m, Tries: tries, Word: word, At: place}
			if slices.ContainsFunc(by[m], func(o topology.Outcome) bool { return o != topology.Refused && !o.GRPC() }) {
				rep.Listed = listed
			}
			out = append(out, rep)
		}
	}
	return out
}

// repeatable returns the methods of HTTP that may be repeated once they were sent, and their kinds; none where the list
// has methods of gRPC only.
func repeatable(list []string) (methods []string, kinds topology.Methods) {
	if len(list) == 0 {
		return safeMethods, topology.Safe
	}
	for _, m := range list {
		switch {
		case strings.HasPrefix(m, "/"):
			continue
		case m == "POST" || m == "PATCH":
			kinds |= topology.Unsafe
		default:
			kinds |= topology.Safe
		}
		methods = append(methods, m)
	}
	return methods, kinds
}

// budget returns what bounds all retries together.
func (r *reader) budget(service string, p *policyfile.Policy) topology.Budget {
	b := p.RetryBudget
	clients := float64(max(1, b.Clients))
	switch {
	case b.Disabled:
		return topology.Budget{}
	case b.Kind == "adaptive":
		return topology.Budget{Ratio: value(r, service, b.MaxRatio, "retryBudget", "maxRatio"),
			Window: value(r, service, b.Window, "retryBudget", "window")}
	case b.Kind == "tokens":
		cost := b.CostPerRetry
		if cost <= 0 {
			cost = 1
		}
		return topology.Budget{Ratio: value(r, service, b.DepositPerSuccess/cost, "retryBudget", "depositPerSuccess"),
			PerSecond: value(r, service, b.RefillPerSecond/clients/cost, "retryBudget", "refillPerSecond")}
	}
	return topology.Budget{Ratio: value(r, service, b.Ratio, "retryBudget", "ratio"),
		Window: value(r, service, b.Window, "retryBudget", "window")}
}

// breaker returns the thresholds of the circuit breaker. One of kind adaptive has none.
func (r *reader) breaker(service string, p *policyfile.Policy) topology.Breaker {
	c := p.CircuitBreaker
	if !c.Enabled() {
		return topology.Breaker{}
	}
	b := topology.Breaker{InsideRetry: topology.DefaultOf(true, "Abate", r.place(service))}
	if c.FailureThreshold > 0 {
		b.Consecutive = value(r, service, c.FailureThreshold, "circuitBreaker", "failureThreshold")
	}
	if c.FailureRateThreshold > 0 {
		b.FailureRatio = value(r, service, c.FailureRateThreshold, "circuitBreaker", "failureRateThreshold")
		b.MinimumCalls = value(r, service, c.MinimumNumberOfCalls, "circuitBreaker", "minimumNumberOfCalls")
	}
	if b.Consecutive.IsZero() && b.FailureRatio.IsZero() {
		return b
	}
	if c.SlidingWindow.Calls > 0 {
		b.WindowCalls = value(r, service, c.SlidingWindow.Calls, "circuitBreaker", "slidingWindow")
	} else if c.SlidingWindow.Duration > 0 {
		b.Window = value(r, service, c.SlidingWindow.Duration, "circuitBreaker", "slidingWindow")
	}
	b.OpenFor = value(r, service, c.WaitDurationInOpenState, "circuitBreaker", "waitDurationInOpenState")
	if c.SlowCallRateThreshold > 0 {
		b.SlowerThan = value[time.Duration](r, service, c.SlowCallDurationThreshold, "circuitBreaker",
			"slowCallDurationThreshold")
	}
	return b
}

// percent writes a factor of jitter as the form does.
func percent(factor float64) string {
	return "±" + strconv.FormatFloat(factor*100, 'g', 6, 64) + "%"
}
