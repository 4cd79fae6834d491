package abategrpc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// ServiceConfig is what a service config of gRPC says about time limits, retries and hedging, as policies.
// ParseServiceConfig reads one, JSON writes one.
type ServiceConfig struct {
	// Methods are the policies, each for some methods: one for each methodConfig.
	Methods []MethodPolicy
	// Notes say what the service config has that is done differently here, or is not looked at: it may be nothing to
	// worry about, but is not silently dropped.
	Notes []string
}

// MethodPolicy is a policy for some methods.
type MethodPolicy struct {
	// Methods are full names ("/shop.Payment/Get"), all methods of a service ("/shop.Payment/*") or all methods there are
	// ("*"). What is more exact counts.
	Methods []string
	// Policy has, as read from a service config, only what that says: no circuit breaker, for one.
	Policy abate.Policy
	// WaitForReady makes calls wait for a connection instead of failing at once.
	WaitForReady bool
}

// everything is the name of all methods.
const everything = "*"

// mostAttempts is how many attempts gRPC makes of a call at most, whatever a service config says (gRFC A6).
const mostAttempts = 5

// Client makes a guard for each policy, and a Client with them: its DialOptions are for a connection to that server.
// name is that of the guard for all methods; guards for some are called after it and their first method. They share one
// retry budget, as retryThrottling is one for a server. adjust may change each policy before that: abateprom's
// Metrics.Adjust fits, and so does a function that adds a circuit breaker, which no service config has.
//
// The resolver's own service config is not looked at by a Client, and its retries are switched off: this is instead of
// it.
func (c *ServiceConfig) Client(name string, adjust ...func(guard string, p *abate.Policy)) (*Client, error) {
	if _, _, err := c.JSON(); err != nil { // names and policies are all there
		return nil, err
	}
	main := MethodPolicy{}
	for _, m := range c.Methods {
		switch {
		case slices.Contains(m.Methods, everything):
			main = m
		case !main.Policy.RetryBudget.Enabled():
			main.Policy.RetryBudget = m.Policy.RetryBudget
		}
	}
	adjusted := func(guard string, p abate.Policy) abate.Policy {
		for _, f := range adjust {
			f(guard, &p)
		}
		return p
	}
	g, err := abate.New(name, adjusted(name, main.Policy))
	if err != nil {
		return nil, err
	}
	client := &Client{Guard: g, waits: main.WaitForReady} // what is more exact counts, so it does not hold for all
	for _, m := range c.Methods {
		if named := slices.DeleteFunc(slices.Clone(m.Methods), func(name string) bool {
			return name == everything
		}); len(named) < len(m.Methods) {
			client.Methods = append(client.Methods, Guarded{Methods: named, Guard: g, WaitForReady: m.WaitForReady})
			continue
		}
		own, err := ForMethods(g, adjusted(name+m.Methods[0], m.Policy), m.Methods...)
		if err != nil {
			return nil, err
		}
		own.WaitForReady = m.WaitForReady
		client.Methods = append(client.Methods, own)
	}
	return client, nil
}

type configName struct {
	Service string `json:"service,omitempty"`
	Method  string `json:"method,omitempty"`
}

// pattern is how the name is written here.
func (n configName) pattern() string {
	switch {
	case n.Service == "":
		return everything
	case n.Method == "":
		return "/" + n.Service + "/*"
	}
	return "/" + n.Service + "/" + n.Method
}

func nameOf(pattern string) (configName, error) {
	if pattern == everything {
		return configName{}, nil
	}
	if !fullName(pattern) || strings.ContainsAny(pattern, " \t\r\n") {
		return configName{},
			fmt.Errorf(`%q is no method; give a full name such as "/shop.Payment/Get", "/shop.Payment/*" or "*"`, pattern)
	}
	service, method, _ := strings.Cut(pattern[1:], "/")
	if method == "*" {
		method = ""
	}
	return configName{service, method}, nil
}

// repeatsAll reports whether a policy lets all these methods be repeated, so that a service config may say so.
func (m *MethodPolicy) repeatsAll() bool {
	if m.Policy.RetriesCodes() {
		return true
	}
	for _, pattern := range m.Methods {
		if !slices.ContainsFunc(m.Policy.RetryMethods, func(listed string) bool { return hops.Covers(listed, pattern) }) {
			return false
		}
	}
	return len(m.Methods) > 0
}

// codesToRetry are the codes that a policy has tried again, by their names.
func codesToRetry(p *abate.Policy) []string {
	candidates := []string{"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}
	if p.RetriesCodes() {
		candidates = slices.Clone(p.RetryOn)
	}
	return slices.DeleteFunc(candidates, func(word string) bool {
		return !isCode(word) || slices.Contains(p.NeverRetryOn, word)
	})
}

func isCode(word string) bool { return slices.Index(core.GRPCCodes[:], word) > 0 }

// eachField calls f for every *abate.FieldError in err, which errors.Join has made.
func eachField(err error, f func(*abate.FieldError)) {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range all.Unwrap() {
			eachField(one, f)
		}
		return
	}
	var field *abate.FieldError
	if errors.As(err, &field) {
		f(field)
	}
}
