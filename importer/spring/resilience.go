package spring

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version of resilience4j whose defaults hold when nobody says which it is.
const assumedVersion = "2.3"

func (a *application) product() string { return "resilience4j " + a.version.V }

// resilience reads the instances of resilience4j: each name is one policy, whatever modules it is in.
func (a *application) resilience() {
	r := a.root.get("resilience4j")
	var names []string
	for _, module := range modules {
		a.check(module, r.kid(module))
		for _, i := range a.instances(module) {
			if !slices.Contains(names, i.name) {
				names = append(names, i.name)
			}
		}
	}
	filters := a.breakersOfRoutes()
	for _, name := range names {
		if _, retried := a.find("retry", name); retried || !slices.ContainsFunc(filters, func(f string) bool {
			return same(f) == same(name)
		}) {
			a.instance(name)
		}
	}
	a.feign(names)
}

// instances returns the instances of a module. Where both names have one of the same name, the one under instances
// counts.
func (a *application) instances(module string) []*tree {
	m := a.root.get("resilience4j").kid(module)
	var out []*tree
	if i := m.kid("instances"); i != nil {
		out = i.kids
	}
	if b := m.kid("backends"); b != nil && a.takesBackends(module) {
		out = slices.Clone(out)
		for _, k := range b.kids {
			if m.kid("instances").kid(k.name) == nil {
				out = append(out, k)
			}
		}
	}
	return out
}

func (a *application) takesBackends(module string) bool {
	return a.old() || slices.Contains(backends, module)
}

func (a *application) old() bool { return source.Before(a.version.V, "2.0") }

// check remarks keys that nobody knows.
func (a *application) check(module string, m *tree) {
	if m == nil {
		return
	}
	for _, k := range m.kids {
		if !knows(ofModule, k.name) && !(same(k.name) == "backends" && a.takesBackends(module)) {
			a.dead(module, "", k, ofModule)
		}
	}
	for _, group := range []string{"instances", "backends", "configs"} {
		if m.kid(group) == nil || group == "backends" && !a.takesBackends(module) {
			continue
		}
		for _, i := range m.kid(group).kids {
			for _, k := range i.kids {
				if !knows(known[module], k.name) {
					a.dead(module, "."+group+"."+i.name, k, known[module])
				}
			}
		}
	}
}

func knows(list []string, key string) bool {
	return slices.ContainsFunc(list, func(k string) bool { return same(k) == same(key) })
}

func (a *application) dead(module, under string, k *tree, list []string) {
	now := renamed[same(module)+"."+same(k.name)]
	if under == "" {
		now = renamed[same(k.name)]
	}
	fix := source.Meant(k.name, list)
	switch {
	case now != "" && a.old():
		return
	case now != "":
		fix = "write " + now + ", which is its name since resilience4j 2.0"
	}
	a.remark("F601", k.at, "resilience4j."+module+under+"."+k.name,
		a.product()+" has no key "+k.name+" here, so it does nothing", fix)
}

// setting is where the keys of one instance stand: itself, the configurations that it is based on, the default one.
type setting struct {
	a      *application
	module string
	chain  []*tree
	at     topology.Position
}

// find returns the settings of an instance, and whether the module has it.
func (a *application) find(module, name string) (setting, bool) {
	m := a.root.get("resilience4j").kid(module)
	s := setting{a: a, module: module}
	for _, i := range a.instances(module) {
		if same(i.name) == same(name) {
			s.chain, s.at = []*tree{i}, i.at
		}
	}
	if s.chain == nil {
		return s, false
	}
	s.based(m)
	return s, true
}

// based adds what an instance is based on.
func (s *setting) based(m *tree) {
	configs := m.kid("configs")
	for t := s.chain[0]; t != nil && len(s.chain) < 10; {
		name := t.value("baseConfig")
		if t = configs.kid(name); name == "" || slices.Contains(s.chain, t) {
			break
		}
		if t != nil {
			s.chain = append(s.chain, t)
		}
	}
	if d := configs.kid("default"); d != nil && !slices.Contains(s.chain, d) {
		s.chain = append(s.chain, d)
	}
}

// key returns the subtree of a key, and the configuration that has it; "" for the instance itself.
func (s *setting) key(key string) (*tree, string) {
	names := []string{key}
	if old := former(s.module, key); old != "" && s.a.old() {
		names = append(names, old)
	}
	for i, t := range s.chain {
		for _, name := range names {
			if k := t.kid(name); k != nil {
				if i == 0 {
					return k, ""
				}
				return k, "configs." + t.name
			}
		}
	}
	return nil, ""
}

func of[T topology.Scalar](s *setting, key string, parse func(string) (T, error), byDefault T) topology.Value[T] {
	t, from := s.key(key)
	v := scalar(s.a.form, t, parse)
	switch {
	case v.IsZero() && t != nil && len(t.kids) > 0:
		s.a.remark("F601", t.at, "resilience4j."+s.module+" "+key, key+" has keys below it, of which Spring can make no "+
			"value for it", "write the value behind it, as in 2s")
		return topology.NotKnown[T]("keys below "+key, t.at)
	case v.IsZero():
		return topology.DefaultOf(byDefault, s.a.product(), s.at)
	case from != "" && v.Origin == topology.Written:
		return topology.Inherit(v.V, v.At, from)
	}
	return v
}

// instance makes the policy of one name.
func (a *application) instance(name string) {
	l := topology.Layer{Kind: topology.Client, Product: "resilience4j", Version: a.version, Name: "resilience4j " + name,
		Cancels: topology.Assume(false, "a blocking client does not hear that its caller left")}
	if s, ok := a.find("circuitbreaker", name); ok {
		l.At, l.Breaker = s.at, a.breaker(&s)
	}
	if s, ok := a.find("bulkhead", name); ok {
		l.At, l.Limits.Requests = s.at, of(&s, "maxConcurrentCalls", source.Int, 25)
	}
	if s, ok := a.find("thread-pool-bulkhead", name); ok {
		l.At, l.Limits.Pending = s.at, of(&s, "queueCapacity", source.Int, 100)
		if most, _ := s.key("maxThreadPoolSize"); most != nil {
			l.Limits.Requests = of(&s, "maxThreadPoolSize", source.Int, 0)
		}
	}
	limiter, limited := a.find("timelimiter", name)
	if limited {
		l.At = limiter.at
	}
	s, retried := a.find("retry", name)
	if retried {
		l.At = s.at
		a.retry(&s, &l)
		if at, so := s.reactive(); so {
			l.Cancels = topology.NotKnown[bool]("a reactive client stops when its caller leaves, if nobody blocks", at)
		}
	}
	a.limit(&limiter, limited, retried, &l)
	if l.At.IsZero() { // only a rate limiter
		return
	}
	a.policies++
	l.Choice = l.Name + " of " + a.service // a program has one, wherever copies of its configuration lie
	p := topology.Policy{Callees: callees(name, a.service), Callers: []string{a.service}, Layer: l}
	for i := range a.form.Policies {
		if copied := &a.form.Policies[i]; copied.Layer.Choice == l.Choice && mostTries(copied) < mostTries(&p) {
			*copied, p = p, *copied // the first of a choice is what counts
		}
	}
	a.form.Policies = append(a.form.Policies, p)
}

func mostTries(p *topology.Policy) int {
	most := 0
	for _, r := range p.Layer.Repeats {
		most = max(most, r.Tries.Or(topology.Unbounded))
	}
	return most
}

// limit sets the time of a try. A time limiter stands inside the retry, unless the order of the aspects was changed.
func (a *application) limit(limiter *setting, limited, retried bool, l *topology.Layer) {
	switch {
	case limited && retried && a.outside("timelimiter"):
		l.Overall = of(limiter, "timeoutDuration", duration, time.Second)
	case limited:
		l.PerTry = of(limiter, "timeoutDuration", duration, time.Second)
	default:
		l.PerTry = topology.NotKnown[time.Duration]("the time limit of the client is in code", l.At)
	}
}

// orders are the keys that move an aspect, with how far inside each stands by default.
var orders = map[string]struct {
	key    string
	inside int
}{"retry": {"retryAspectOrder", -5}, "circuitbreaker": {"circuitBreakerAspectOrder", -4},
	"timelimiter": {"timeLimiterAspectOrder", -2}}

// outside reports whether a module's aspect was moved outside the retry. The lowest order is outermost; by default all
// are near the greatest number.
func (a *application) outside(module string) bool {
	const lowest = 1<<31 - 1
	order := func(module string) int {
		o := orders[module]
		if n, err := source.Int(a.root.get("resilience4j").kid(module).value(o.key)); err == nil {
			return n
		}
		return lowest + o.inside
	}
	return order(module) < order("retry")
}

func (a *application) breaker(s *setting) topology.Breaker {
	percent := func(key string) topology.Value[float64] {
		v := of(s, key, source.Float, 50)
		v.V /= 100
		return v
	}
	b := topology.Breaker{FailureRatio: percent("failureRateThreshold"), MinimumCalls: of(s, "minimumNumberOfCalls",
		source.Int, 100),
		OpenFor:     of(s, "waitDurationInOpenState", duration, time.Minute),
		SlowerThan:  of(s, "slowCallDurationThreshold", duration, time.Minute),
		InsideRetry: topology.DefaultOf(!a.outside("circuitbreaker"), a.product(), s.at)}
	size := of(s, "slidingWindowSize", source.Int, 100)
	if kind := of(s, "slidingWindowType", source.Text, "COUNT_BASED"); same(kind.Or("")) == "timebased" {
		b.Window = topology.Value[time.Duration]{V: time.Duration(size.V) * time.Second, Origin: size.Origin, At: size.At,
			Why: size.Why}
	} else {
		b.WindowCalls = size
		if b.MinimumCalls.V > size.V && !size.IsUnknown() { // no more calls are remembered
			b.MinimumCalls = size
		}
	}
	return b
}

// retry reads what is repeated, how often and after which waits.
func (a *application) retry(s *setting, l *topology.Layer) {
	tries := of(s, "maxAttempts", source.Int, 3)
	l.Backoff = topology.Backoff{First: of(s, "waitDuration", duration, 500*time.Millisecond),
		Jitter: topology.DefaultOf("none", a.product(), s.at)}
	waits, _ := s.key("waitDuration")
	grows, drawn := of(s, "enableExponentialBackoff", source.Bool, false), of(s, "enableRandomizedWait", source.Bool,
		false)
	for key, on := range map[string]bool{"enableExponentialBackoff": grows.Or(false),
		"enableRandomizedWait": drawn.Or(false)} {
		if t, _ := s.key(key); on && waits == nil && t != nil {
			a.remark("F602", t.here, "resilience4j.retry."+s.chain[0].name+" "+key, key+" has no effect without waitDuration",
				"set waitDuration")
		}
	}
	if grows.Or(false) && waits != nil {
		l.Backoff.Multiplier = of(s, "exponentialBackoffMultiplier", source.Float, 1.5)
		if most, _ := s.key("exponentialMaxWaitDuration"); most != nil {
			l.Backoff.Max = of(s, "exponentialMaxWaitDuration", duration, 0)
		}
	}
	if drawn.Or(false) && waits != nil {
		factor := of(s, "randomizedWaitFactor", source.Float, 0.5)
		l.Backoff.Jitter = topology.Value[string]{V: share(factor.V), Origin: factor.Origin, At: factor.At, Why: factor.Why}
	}
	word, at := "every exception", s.at
	if t, _ := s.key("maxAttempts"); t != nil {
		at = t.at
	}
	listed, _ := s.key("retryExceptions")
	if classes := listed.words(); len(classes) > 0 {
		for _, c := range classes {
			on, _ := meaning(c.text)
			a.repeat(s, l, on, tries, c.text, c.here)
		}
		return
	}
	a.repeat(s, l, topology.AllOutcomes(), tries, word, at)
}

// reactive reports whether the exceptions of an instance are those of a reactive client, and where.
func (s *setting) reactive() (topology.Position, bool) {
	for _, key := range []string{"retryExceptions", "ignoreExceptions"} {
		t, _ := s.key(key)
		for _, class := range t.words() {
			if strings.Contains(class.text, ".reactive.") || strings.HasPrefix(class.text, "reactor.") {
				return class.here, true
			}
		}
	}
	return topology.Position{}, false
}

// repeat adds a rule without the outcomes whose exceptions are ignored.
func (a *application) repeat(s *setting, l *topology.Layer, on []topology.Outcome, tries topology.Value[int],
	word string,
	at topology.Position) {
	ignored, _ := s.key("ignoreExceptions")
	on = slices.Clone(on)
	for _, c := range ignored.words() {
		if without, certain := meaning(c.text); certain {
			on = slices.DeleteFunc(on, func(o topology.Outcome) bool { return slices.Contains(without, o) })
		}
	}
	if len(on) > 0 {
		l.Repeats = append(l.Repeats, topology.Repeat{On: on, Tries: tries, Word: word, At: at})
	}
}

// share writes a factor of jitter as the form does.
func share(factor float64) string {
	return "±" + strings.TrimSuffix(strings.TrimRight(strings.TrimRight(formatFloat(min(factor, 1)*100), "0"), "."),
		".") + "%"
}
