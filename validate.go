package abate

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/ratelimit"
)

// FieldError is one thing wrong with a Policy or a Protection. Path names the field as the policy file does ("circuitBreaker.rampUp").
type FieldError struct {
	Path    string
	Problem string // what is wrong, with the value: "0.2 is out of range"
	Mend    string // what is allowed, with an example
}

// Error reads, for instance, "multiplier: 0.5 is out of range; allowed: 1 to 100".
func (e *FieldError) Error() string { return e.Path + ": " + e.Problem + "; " + e.Mend }

// Validate returns everything that is wrong with the policy, joined: each part is a *FieldError. The limits of single
// fields stand in their `range` and `enum` tags, where the JSON Schema reads them too; rules between fields stand here.
// A zero field is always valid: it means the default, or off.
func (p Policy) Validate() error {
	var v validator
	v.walk("", reflect.ValueOf(p))
	v.betweenFields(p, p.WithDefaults())
	v.rate("rateLimit.limit", p.RateLimit.Limit)
	v.lists(p)
	v.kafka(p.Kafka)
	v.upstreams(p.Upstreams)
	v.routes(p.Routes)
	for i, name := range p.Fallback.Identity {
		if !isToken(name) {
			v.add(fmt.Sprintf("fallback.identity[%d]", i), strconv.Quote(name)+" is not the name of a header", "for example X-Tenant")
		}
	}
	return errors.Join(v.found...)
}

type validator struct{ found []error }

func (v *validator) add(path, problem, mend string) {
	v.found = append(v.found, &FieldError{Path: path, Problem: problem, Mend: mend})
}

func (v *validator) walk(prefix string, s reflect.Value) {
	for i := range s.NumField() {
		f, value := s.Type().Field(i), s.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Anonymous:
			v.walk(prefix, value)
		case key == "" || key == "-":
		case value.Kind() == reflect.Struct:
			v.walk(prefix+key+".", value)
		default:
			v.field(prefix+key, f.Tag, value)
		}
	}
}

func (v *validator) field(path string, tag reflect.StructTag, value reflect.Value) {
	if value.IsZero() {
		return
	}
	if value.Kind() == reflect.Slice { // the tags are those of its members, of which a zero has no other meaning
		for i := range value.Len() {
			v.scalar(fmt.Sprintf("%s[%d]", path, i), tag, value.Index(i))
		}
		return
	}
	v.scalar(path, tag, value)
}

func (v *validator) scalar(path string, tag reflect.StructTag, value reflect.Value) {
	if limits := tag.Get("range"); limits != "" {
		if low, high := ParseRange(limits); !inRange(value, low, high) {
			v.add(path, show(value)+" is out of range", "allowed: "+DescribeRange(limits))
		}
	}
	if words := tag.Get("enum"); words != "" && !slices.Contains(strings.Split(words, "|"), value.String()) {
		v.add(path, strconv.Quote(value.String())+" is not known", "allowed: "+strings.ReplaceAll(words, "|", ", "))
	}
}

// betweenFields checks what no single field can tell. p is the policy as written, full the same with its defaults.
func (v *validator) betweenFields(p, full Policy) {
	v.below("initialDelay", full.InitialDelay, "maxDelay", full.MaxDelay, "lower it or raise maxDelay")
	v.below("attemptTimeout", p.AttemptTimeout, "timeout", p.Timeout, "an attempt cannot last longer than its call: lower it or raise timeout")
	if b := full.RetryBudget; b.Kind == budget.Adaptive && b.MinRatio > b.MaxRatio {
		v.add("retryBudget.minRatio", fmt.Sprintf("%v is above maxRatio %v", b.MinRatio, b.MaxRatio), "lower it or raise maxRatio")
	}
	c := p.CircuitBreaker
	v.below("circuitBreaker.waitDurationInOpenState", c.WaitDurationInOpenState, "maxWaitDurationInOpenState", c.MaxWaitDurationInOpenState, "lower it or raise the maximum")
	if s := full.CircuitBreaker; s.SlowCallRateThreshold > 0 {
		v.below("circuitBreaker.slowCallDurationThreshold", s.SlowCallDurationThreshold, "attemptTimeout", p.AttemptTimeout, "no attempt can be that slow: lower it or raise attemptTimeout")
	}
	if w := c.SlidingWindow; w.Calls < 0 || w.Calls > 1_000_000 || w.Duration < 0 || w.Duration > 24*time.Hour || w.Duration > 0 && w.Duration < 10*time.Millisecond {
		v.add("circuitBreaker.slidingWindow", w.String()+" is out of range", "allowed: 1 to 1000000 calls, or 10ms to 24h")
	}
	if n := c.SlidingWindow.Calls; n > 0 && n < c.MinimumNumberOfCalls {
		v.add("circuitBreaker.slidingWindow", fmt.Sprintf("holds %d calls, fewer than minimumNumberOfCalls %d", n, c.MinimumNumberOfCalls), "raise it or lower the minimum")
	}
	o := p.OutlierDetection
	v.below("outlierDetection.baseEjectionTime", o.BaseEjectionTime, "maxEjectionTime", o.MaxEjectionTime, "lower it or raise maxEjectionTime")
	if p.Hedge.Enabled() {
		v.below("hedge.delay", p.Hedge.Delay, "attemptTimeout", p.AttemptTimeout, "the hedge would never be sent: lower it or raise attemptTimeout")
	}
}

// Ineffective returns the settings that do nothing because what they belong to is off, joined like Validate's mistakes.
// They do no harm, but whoever wrote them for this very policy believes otherwise; in defaults for others they may be meant.
func (p Policy) Ineffective() error {
	var v validator
	b, h, f := p.Bulkhead, p.Hedge, p.Fallback
	if !b.Disabled && b.MaxConcurrentCalls == 0 {
		v.idle("bulkhead.maxQueue", b.MaxQueue != 0, "set maxConcurrentCalls, for example 100")
		v.idle("bulkhead.maxWait", b.MaxWait != 0, "set maxConcurrentCalls, for example 100")
		v.idle("bulkhead.order", b.Order != "", "set maxConcurrentCalls, for example 100")
	}
	v.idle("retryBudget.fleet", p.RetryBudget.Fleet && p.RetryBudget.Kind == budget.Tokens, "remove it, or choose the kind ratio or adaptive: a bucket of tokens is each instance's own")
	r := p.RateLimit
	v.idle("rateLimit.maxKeys", r.MaxKeys != 0, "remove it: all attempts share one bucket")
	if !r.Disabled && r.Limit.IsZero() {
		v.idle("rateLimit.burst", r.Burst != 0, "set limit, for example limit: 1000/s")
		v.idle("rateLimit.shadow", r.Shadow, "set limit, for example limit: 1000/s")
		v.idle("rateLimit.maxWait", r.MaxWait != 0, "set limit, for example limit: 1000/s")
	}
	v.idlePacing(p.Pacing)
	if t := p.Throttle; !t.Disabled && t.K == 0 {
		v.idle("throttle.shadow", t.Shadow, "set k, for example k: 2")
		v.idle("throttle.window", t.Window != 0, "set k, for example k: 2")
		v.idle("throttle.maxRejection", t.MaxRejection != 0, "set k, for example k: 2")
		v.idle("throttle.minimumNumberOfCalls", t.MinimumNumberOfCalls != 0, "set k, for example k: 2")
	}
	if !h.Disabled && !h.Enabled() {
		v.idle("hedge.maxHedges", h.MaxHedges != 0, "set delay or quantile, for example delay: 200ms")
		v.idle("hedge.minDelay", h.MinDelay != 0, "set delay or quantile, for example delay: 200ms")
	}
	if !f.Disabled && f.Status == 0 {
		v.idle("fallback.body", f.Body != "", "set status, for example 200")
		v.idle("fallback.contentType", f.ContentType != "", "set status, for example 200")
	}
	if !f.Disabled && f.StaleIfError == 0 {
		const mend = "set staleIfError, for example 5m"
		v.idle("fallback.shared", f.Shared, mend)
		v.idle("fallback.identity", len(f.Identity) > 0, mend)
	}
	v.idleKafka(p.Kafka)
	return errors.Join(v.found...)
}

// idlePacing reports what a pace lacks.
func (v *validator) idlePacing(c pacing.Config) {
	if c.Disabled {
		return
	}
	off := c.PerSecond == 0
	const mend = "set perSecond, for example perSecond: 10"
	v.idle("pacing.burst", off && c.Burst != 0, mend)
	v.idle("pacing.jitter", off && c.Jitter != 0, mend)
	v.idle("pacing.rampUp", off && c.RampUp != 0, mend)
	v.idle("pacing.maxWait", off && c.MaxWait != 0, mend)
	switch {
	case off:
		v.idle("pacing.rampUpFrom", c.RampUpFrom != 0, mend)
	case c.RampUp == 0:
		v.idle("pacing.rampUpFrom", c.RampUpFrom != 0, "set rampUp, for example rampUp: 5s")
	}
}

// idle reports a setting that does nothing.
func (v *validator) idle(path string, set bool, mend string) {
	if set {
		v.add(path, "has no effect", mend)
	}
}

// below reports a duration that is above another one. Where either is zero there is nothing to compare.
func (v *validator) below(path string, d time.Duration, limitName string, limit time.Duration, mend string) {
	if d > limit && limit > 0 {
		v.add(path, fmt.Sprintf("%v is above %s %v", d, limitName, limit), mend)
	}
}

// rate checks a rate that a program has made: one in a file has been read before.
func (v *validator) rate(path string, r ratelimit.Rate) {
	if r.IsZero() {
		if r.Tokens != 0 {
			v.add(path, fmt.Sprintf("%v tokens in no time", r.Tokens), "set Per, for example ratelimit.Rate{Tokens: 1000, Per: time.Second}")
		}
		return
	}
	if err := new(ratelimit.Rate).UnmarshalText([]byte(r.String())); err != nil {
		problem, mend, _ := strings.Cut(err.Error(), "; ")
		v.add(path, problem, mend)
	}
}

// lists checks the words in lists.
func (v *validator) lists(p Policy) {
	for i, word := range p.RetryOn {
		v.condition(fmt.Sprintf("retryOn[%d]", i), word)
	}
	for i, word := range p.NeverRetryOn {
		v.condition(fmt.Sprintf("neverRetryOn[%d]", i), word)
	}
	for i, m := range p.RetryMethods {
		v.method(fmt.Sprintf("retryMethods[%d]", i), m)
	}
}

func (v *validator) condition(path, word string) {
	if !knownCondition(word) {
		v.add(path, strconv.Quote(word)+" is not known", "allowed: "+conditionWords)
	}
}

// upstreams checks base URLs.
func (v *validator) upstreams(urls []string) {
	for i, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c") {
			v.add(fmt.Sprintf("upstreams[%d]", i), strconv.Quote(raw)+" is not a base URL", `allowed: http, https or h2c with a host, for example "http://payments:8080"`)
		}
	}
}

// routes checks hosts and paths.
func (v *validator) routes(routes []Route) {
	for i, r := range routes {
		switch {
		case r.Host == "" && r.Path == "":
			v.add(fmt.Sprintf("routes[%d]", i), "matches every request", "give it a host, a path or both")
		case r.Path != "" && !strings.HasPrefix(r.Path, "/"):
			v.add(fmt.Sprintf("routes[%d].path", i), strconv.Quote(r.Path)+" does not begin with /", `for example "/payments"`)
		case strings.ContainsAny(r.Host, "/ "):
			v.add(fmt.Sprintf("routes[%d].host", i), strconv.Quote(r.Host)+" is not a host", `without scheme and path, for example "api.example.com"`)
		}
	}
}

// method checks the name of an HTTP method.
func (v *validator) method(path, m string) {
	if rpc := strings.HasPrefix(m, "/"); rpc && strings.Count(m, "/") == 2 && !strings.HasSuffix(m, "/") && !strings.ContainsAny(m, " \t\r\n") {
		return
	}
	if m == "" || strings.ToUpper(m) != m || strings.ContainsAny(m, " \t\r\n/") {
		v.add(path, strconv.Quote(m)+" is no method", `allowed: upper-case HTTP methods, for example PUT, and full names of gRPC methods, for example "/shop.Payment/Get"`)
	}
}

// ParseRange reads a `range` tag such as "1ms..24h" or "0..100". Both ends are in the unit of the field: nanoseconds
// for durations. An end left out is unlimited.
func ParseRange(tag string) (low, high float64) {
	l, h, _ := strings.Cut(tag, "..")
	return parseLimit(l, -1<<62), parseLimit(h, 1<<62)
}

func parseLimit(s string, unlimited float64) float64 {
	if s == "" {
		return unlimited
	}
	if d, err := time.ParseDuration(s); err == nil {
		return float64(d)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("abate: range tag " + strconv.Quote(s) + " is neither a number nor a duration")
	}
	return f
}

// DescribeRange writes a `range` tag for people: "1ms to 24h".
func DescribeRange(tag string) string {
	low, high, _ := strings.Cut(tag, "..")
	switch {
	case low == "":
		return "at most " + high
	case high == "":
		return "at least " + low
	}
	return low + " to " + high
}

func inRange(value reflect.Value, low, high float64) bool {
	var f float64
	switch value.Kind() {
	case reflect.Float64:
		f = value.Float()
	default:
		f = float64(value.Int())
	}
	return f >= low && f <= high // false for NaN
}

func show(value reflect.Value) string { return fmt.Sprint(value.Interface()) }
