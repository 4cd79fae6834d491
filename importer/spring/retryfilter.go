package spring

import (
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

var series = map[string][]topology.Outcome{"SERVER_ERROR": ofServer, "CLIENT_ERROR": ofClient}

var statusNames = map[string]topology.Outcome{"INTERNAL_SERVER_ERROR": topology.S500, "BAD_GATEWAY": topology.S502,
	"SERVICE_UNAVAILABLE": topology.S503, "GATEWAY_TIMEOUT": topology.S504, "TOO_MANY_REQUESTS": topology.S429,
	"REQUEST_TIMEOUT": topology.S408, "CONFLICT": topology.S409, "500": topology.S500, "502": topology.S502,
	"503": topology.S503,
	"504": topology.S504, "429": topology.S429, "408": topology.S408, "409": topology.S409}

var retryArgs = []string{"retries", "statuses", "methods", "series", "exceptions", "backoff", "jitter", "timeout",
	"cacheBody"}

// retryFilter is the layer that one Retry filter makes.
func (a *application) retryFilter(g, r *tree, filters []filter, n int, match topology.Match) topology.Layer {
	f := &filters[n]
	l := a.plain(g, r, match, f.at)
	a.around(filters, n, &l)
	a.fallbacks(filters[n+1:])
	retries := scalar(a.form, f.arg("retries"), source.Int)
	if retries.IsZero() {
		retries = topology.DefaultOf(3, gatewayName, f.at)
	}
	retries.V++
	methods := a.methods(f)
	add := func(word string, at topology.Position, on ...topology.Outcome) {
		if len(on) > 0 {
			l.Repeats = append(l.Repeats, topology.Repeat{On: on, Methods: methods, Tries: retries, Word: word, At: at})
		}
	}
	listed, statuses := f.arg("series"), f.arg("statuses").words()
	if listed == nil {
		add("series SERVER_ERROR", f.at, ofServer...)
		if len(statuses) > 0 {
			a.remark("F605", statuses[0].here, f.of+" Retry statuses",
				"naming statuses does not remove the default series: every 5xx is tried again", "write series: [] beside statuses")
		}
	}
	for _, w := range listed.words() {
		add("series "+w.text, w.here, series[w.text]...)
	}
	for _, w := range statuses {
		if o, ok := statusNames[strings.ToUpper(w.text)]; ok {
			add(w.text, w.here, o)
		} else if code, err := strconv.Atoi(w.text); err == nil && code >= 400 && code < 500 {
			add(w.text, w.here, topology.S4xx)
		}
	}
	a.exceptions(f, &l, add)
	l.Backoff = a.backoff(f)
	if f.args != nil {
		for _, k := range f.args.kids {
			if !knows(retryArgs, k.name) {
				a.remark("F601", k.at, f.of+" Retry "+k.name,
					"the Retry filter has no argument "+k.name+", so it does nothing",
					source.Meant(k.name, retryArgs))
			}
		}
	}
	return l
}

// exceptions adds what the filter's exceptions mean: by default those of I/O, and the time limit of a response.
func (a *application) exceptions(f *filter, l *topology.Layer, add func(string, topology.Position,
	...topology.Outcome)) {
	names := f.arg("exceptions").words()
	if len(names) == 0 {
		names = []*tree{{text: "IOException", here: f.at}, {text: "TimeoutException", here: f.at}}
	}
	for _, w := range names {
		on, _ := meaning(w.text)
		add(w.text, w.here, on...)
	}
}

// methods returns which requests a filter repeats: by default GET.
func (a *application) methods(f *filter) topology.Methods {
	words := f.arg("methods").words()
	if len(words) == 0 {
		return topology.Safe
	}
	m := topology.Methods(0)
	for _, w := range words {
		switch strings.ToUpper(w.text) {
		case "POST", "PATCH":
			m |= topology.Unsafe
		default:
			m |= topology.Safe
		}
	}
	return m
}

func (a *application) backoff(f *filter) topology.Backoff {
	b := topology.Backoff{First: topology.DefaultOf(time.Duration(0), gatewayName, f.at)}
	if f.arg("backoff") != nil || f.arg("backoff.firstBackoff") != nil {
		b.First = scalar(a.form, f.arg("backoff.firstBackoff"), duration)
		if b.First.IsZero() {
			b.First = topology.DefaultOf(5*time.Millisecond, gatewayName, f.at)
		}
		b.Max = scalar(a.form, f.arg("backoff.maxBackoff"), duration)
		b.Multiplier = scalar(a.form, f.arg("backoff.factor"), source.Float)
		if b.Multiplier.IsZero() {
			b.Multiplier = topology.DefaultOf(2.0, gatewayName, f.at)
		}
	}
	b.Jitter = topology.DefaultOf("none", gatewayName, f.at)
	if f.args.kid("jitter") != nil {
		factor := scalar(a.form, f.arg("jitter.randomFactor"), source.Float)
		if factor.IsZero() {
			factor = topology.DefaultOf(0.5, gatewayName, f.at)
		}
		b.Jitter = topology.Value[string]{V: share(factor.V), Origin: factor.Origin, At: factor.At, Why: factor.Why}
	}
	return b
}

// fallbacks remarks circuit breakers behind a Retry filter that answer themselves when a call fails.
func (a *application) fallbacks(behind []filter) {
	for _, f := range behind {
		if to := f.args.value("fallbackUri"); breaks(&f) && to != "" {
			a.remark("F503", f.at, f.of+" CircuitBreaker fallbackUri", "the fallback "+to+
				" answers behind the Retry filter, which then sees no failure to try again", "put CircuitBreaker before Retry")
		}
	}
}

// breakersOfRoutes returns the names of the instances that filters of routes use. Around applies them to the routes;
// they are no calls of their own.
func (a *application) breakersOfRoutes() (names []string) {
	for _, prefix := range prefixes {
		g := a.root.get(prefix)
		lists := []*tree{g.kid("default-filters")}
		for _, r := range g.kid("routes").items() {
			lists = append(lists, r.kid("filters"))
		}
		for _, list := range lists {
			for _, f := range filtersOf(list, "") {
				if breaks(&f) {
					names = append(names, f.instance())
				}
			}
		}
	}
	return names
}

// instance is the name of the resilience4j instance that a circuit breaker filter uses.
func (f *filter) instance() string {
	switch {
	case len(f.words) > 0:
		return f.words[0].text
	case f.args != nil:
		return f.args.value("name")
	}
	return ""
}

func breaks(f *filter) bool {
	return f.name == "CircuitBreaker" || f.name == "SpringCloudCircuitBreaker"
}

// around applies the circuit breaker filter of a route: before the n-th filter its time limit is for all tries, behind
// it for each.
func (a *application) around(filters []filter, n int, l *topology.Layer) {
	for i, f := range filters {
		if !breaks(&f) {
			continue
		}
		name := f.instance()
		limit := topology.DefaultOf(time.Second, "the time limiter of Spring Cloud's circuit breaker", f.at)
		if s, ok := a.find("timelimiter", name); ok {
			limit = of(&s, "timeoutDuration", duration, time.Second)
		}
		if s, ok := a.find("circuitbreaker", name); ok {
			l.Breaker = a.breaker(&s)
			l.Breaker.InsideRetry = topology.DefaultOf(i > n, "the order of the filters", f.at)
		}
		switch one := l.PerTry.Or(0); {
		case i < n:
			l.Overall = limit
		case one == 0 || limit.Or(0) > 0 && limit.V < one:
			l.PerTry = limit
		}
	}
}
