// Package check finds what is wrong with a configuration: all mistakes at once, each with its place and a fix.
package check

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/upstream"
	"github.com/abate-go/abate/policy/ratelimit"
)

// FieldError is one thing wrong with a Policy or a Protection. Path names the field as the policy file does
// ("circuitBreaker.rampUp").
type FieldError struct {
	Path    string
	Problem string // what is wrong, with the value: "0.2 is out of range"
	Fix     string // what is allowed, with an example
}

// Error reads, for instance, "multiplier: 0.5 is out of range; allowed: 1 to 100".
func (e *FieldError) Error() string { return e.Path + ": " + e.Problem + "; " + e.Fix }

// Errors collects what is wrong with a configuration. The zero Errors is empty.
type Errors struct{ found []error }

// Join returns everything that was found, joined; nil for nothing.
func (v *Errors) Join() error { return errors.Join(v.found...) }

// Add notes a mistake: where it is, what is wrong, and how to fix it.
func (v *Errors) Add(path, problem, fix string) {
	v.found = append(v.found, &FieldError{Path: path, Problem: problem, Fix: fix})
}

// Idle reports a setting that does nothing.
func (v *Errors) Idle(path string, set bool, fix string) {
	if set {
		v.Add(path, "has no effect", fix)
	}
}

// Ineffective reports what the sections of a struct say themselves that does nothing in them: those with a method
// Ineffective, which calls idle for each setting.
func (v *Errors) Ineffective(s reflect.Value) {
	for i := range s.NumField() {
		section, ok := s.Field(i).Interface().(interface {
			Ineffective(idle func(key string, set bool, fix string))
		})
		if ok {
			path, _, _ := strings.Cut(s.Type().Field(i).Tag.Get("yaml"), ",")
			section.Ineffective(func(key string, set bool, fix string) { v.Idle(path+"."+key, set, fix) })
		}
	}
}

// Below reports a duration that is above another one. Where either is zero there is nothing to compare.
func (v *Errors) Below(path string, d time.Duration, limitName string, limit time.Duration, fix string) {
	if d > limit && limit > 0 {
		v.Add(path, fmt.Sprintf("%v is above %s %v", d, limitName, limit), fix)
	}
}

// Rate checks a rate that a program has made: one in a file has been read before.
func (v *Errors) Rate(path string, r ratelimit.Rate) {
	if r.IsZero() {
		if r.Tokens != 0 {
			v.Add(path, fmt.Sprintf("%v tokens in no time", r.Tokens),
				"set Per, for example ratelimit.Rate{Tokens: 1000, Per: time.Second}")
		}
		return
	}
	if err := new(ratelimit.Rate).UnmarshalText([]byte(r.String())); err != nil {
		problem, fix, _ := strings.Cut(err.Error(), "; ")
		v.Add(path, problem, fix)
	}
}

// Upstreams checks base URLs.
func (v *Errors) Upstreams(urls []string) {
	for i, raw := range urls {
		if _, ok := upstream.Parse(raw); ok {
			continue
		}
		fix := `allowed: http, https or h2c with a host, for example "http://payments:8080"`
		if strings.Contains(raw, "unix:") {
			fix = `allowed: unix, http+unix, https+unix or h2c+unix with the path of a socket, of at most 103 bytes, ` +
				`and perhaps ?host=NAME, for example "unix:/run/payments.sock"`
		}
		v.Add(fmt.Sprintf("upstreams[%d]", i), strconv.Quote(raw)+" is not a base URL", fix)
	}
}

// Route checks the host and the path of a route.
func (v *Errors) Route(i int, host, path string) {
	switch {
	case host == "" && path == "":
		v.Add(fmt.Sprintf("routes[%d]", i), "matches every request", "give it a host, a path or both")
	case path != "" && !strings.HasPrefix(path, "/"):
		v.Add(fmt.Sprintf("routes[%d].path", i), strconv.Quote(path)+" does not begin with /", `for example "/payments"`)
	case strings.ContainsAny(host, "/ "):
		v.Add(fmt.Sprintf("routes[%d].host", i), strconv.Quote(host)+" is not a host",
			`without scheme and path, for example "api.example.com"`)
	}
}

// Method checks the name of an HTTP method.
func (v *Errors) Method(path, m string) {
	if rpc := strings.HasPrefix(m, "/"); rpc && strings.Count(m, "/") == 2 && !strings.HasSuffix(m, "/") &&
		!strings.ContainsAny(m, " \t\r\n") {
		return
	}
	if m == "" || strings.ToUpper(m) != m || strings.ContainsAny(m, " \t\r\n/") {
		v.Add(path, strconv.Quote(m)+" is no method", `allowed: upper-case HTTP methods, for example PUT, and full names `+
			`of gRPC methods, for example "/shop.Payment/Get"`)
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

// IsToken reports whether s can be the name of a header: RFC 9110 §5.6.2.
func IsToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return s != ""
}
