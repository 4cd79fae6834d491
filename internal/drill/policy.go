package drill

import (
	_ "embed"
	"fmt"
	"net/http"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policyfile"
)

// ServiceName is the service in a policy file that the drill's clients call.
const ServiceName = "payment-service"

//go:embed policy.yaml
var embedded []byte

// EmbeddedPolicy returns the text of the policy file that the guarded act follows unless it is given another.
func EmbeddedPolicy() []byte { return append([]byte(nil), embedded...) }

// Policy is what the guarded clients follow.
type Policy struct {
	Name   string // how messages call it
	policy abate.Policy
	notes  []string
}

// DefaultPolicy returns the policy built into the program.
func DefaultPolicy() Policy {
	p, err := ParsePolicy("the built-in policy file (--print-policy)", embedded)
	if err != nil {
		panic(fmt.Sprintf("drill: the embedded policy: %v", err)) // a test parses it
	}
	return p
}

// ParsePolicy takes the policy of ServiceName, or the defaults, from the text of a policy file.
func ParsePolicy(name string, text []byte) (Policy, error) {
	file, err := policyfile.Parse(name, text)
	if err != nil {
		return Policy{}, err
	}
	p := Policy{Name: name, policy: file.Defaults}
	listed := false
	for _, s := range file.Services {
		if s.Name == ServiceName {
			p.policy, listed = s.Policy, true
		}
	}
	if !listed {
		p.notes = append(p.notes, fmt.Sprintf("%s does not list %s, so its defaults are played", name, ServiceName))
	}
	if p.policy.Fallback.Enabled() {
		p.policy.Fallback.Disabled = true
		p.notes = append(p.notes, fmt.Sprintf("the fallback in %s is left out: a degraded answer is not goodput", name))
	}
	return p, nil
}

// patience says so when the policy lets an attempt take longer than what counts as an answer in time.
func (p Policy) patience(limit time.Duration) string {
	longest := p.policy.AttemptTimeout
	if longest == 0 {
		longest = p.policy.Timeout
	}
	switch {
	case longest == 0:
		return fmt.Sprintf("%s sets no attemptTimeout for %s: guarded clients wait as long as the service lets them, but an answer after more than %v is too late to count, as it is unguarded", p.Name, ServiceName, limit)
	case longest > limit:
		return fmt.Sprintf("%s lets an attempt take %v, but an answer after more than %v is too late to count, as it is unguarded", p.Name, longest, limit)
	}
	return ""
}

// guard puts a guard of its own, watched by o, in front of the connections of one client.
func (p Policy) guard(base http.RoundTripper, o abate.Observer) (http.RoundTripper, error) {
	p.policy.Observer = o
	g, err := abate.New(ServiceName, p.policy)
	if err != nil {
		return nil, err
	}
	return abatehttp.NewTransport(base, g), nil
}
