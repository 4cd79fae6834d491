package topology

import "time"

// Form is services, the calls between them, and policies that were not yet joined to calls.
type Form struct {
	Services []Service `yaml:"services,omitempty"`
	Calls    []Call    `yaml:"calls,omitempty"`
	Policies []Policy  `yaml:"policies,omitempty"`
	Leads    []Lead    `yaml:"leads,omitempty"`
	Remarks  []Remark  `yaml:"remarks,omitempty"`
	// Protos reports that there are files that describe services of gRPC, and not whose they are: a service of which no
	// file says what it speaks may then speak gRPC.
	Protos bool `yaml:"protos,omitempty"`
}

// Service is something that is called, or calls.
type Service struct {
	Name      string               `yaml:"name"` // "orders", or "orders.shop" with its namespace
	At        Position             `yaml:"at,omitempty"`
	Aliases   []string             `yaml:"aliases,omitempty"`   // other names it has in files: hosts, clusters, addresses
	Replicas  Value[int]           `yaml:"replicas,omitempty"`  // instances that run
	Rate      Value[float64]       `yaml:"rate,omitempty"`      // per second, from outside; a root has one
	OwnTime   Value[time.Duration] `yaml:"ownTime,omitempty"`   // for one request, without its own calls; median
	OwnTime99 Value[time.Duration] `yaml:"ownTime99,omitempty"` // the same, at the 99th percentile
	Capacity  Value[float64]       `yaml:"capacity,omitempty"`  // requests per second of all instances together
	Workers   Value[int]           `yaml:"workers,omitempty"`   // requests that one instance handles at once
	// AnswersWith is what its callers see when a call of its own has failed: a status, a gRPC code, or "same" when it
	// passes the outcome on.
	AnswersWith Value[string] `yaml:"answersWith,omitempty"`
	Cancels     Value[bool]   `yaml:"cancels,omitempty"` // it stops working when its caller leaves
	// CallTree reports that it obeys the allowance of extra attempts that a caller sends with Abate-Retry-Allowance, and
	// shares it among its own calls: its gate trusts its callers.
	CallTree Value[bool] `yaml:"callTree,omitempty"`
	// Speaks is what its answers can be: SpeaksGRPC, SpeaksHTTP or SpeaksOther. When it is absent they may be anything.
	Speaks   Value[string] `yaml:"speaks,omitempty"`
	Database bool          `yaml:"database,omitempty"`
	// Runs is what starts it, as far as files say: RunsKubernetes or RunsCompose.
	Runs string `yaml:"runs,omitempty"`
	// Proxy reports that it passes each request on to one of the services that it calls: its calls are alternatives, and
	// not steps of one request.
	Proxy bool `yaml:"proxy,omitempty"`
}

// What Service.Runs may be. Where files say both, it is Kubernetes: the compose file is for who writes the program.
const (
	RunsKubernetes = "kubernetes"
	RunsCompose    = "compose"
)

// Call is one edge: each request that From handles makes PerRequest calls of To.
type Call struct {
	From       string         `yaml:"from"` // empty for the world outside
	To         string         `yaml:"to"`
	At         Position       `yaml:"at,omitempty"`
	PerRequest Value[float64] `yaml:"perRequest,omitempty"` // first tries for each request of From; absent means 1
	Unsafe     Value[bool]    `yaml:"unsafe,omitempty"`     // its requests must not be carried out twice
	Keyed      Value[bool]    `yaml:"keyed,omitempty"`      // an idempotency key protects them
	Order      Value[int]     `yaml:"order,omitempty"`      // calls of From run by order; those of the same run at once
	Layers     []Layer        `yaml:"layers,omitempty"`     // outermost first
	// Detached reports that From neither waits for the call nor sees how it ends: a mirror of other calls.
	Detached bool `yaml:"detached,omitempty"`
}

// Policy is a layer that a file sets for the calls of some callee, by some callers, before they are joined to a Call.
// A callee or caller "*" is every service, "*.shop" every service of that namespace, and "*." every one without a
// namespace, or every one if all that Kubernetes runs has one. A policy for such callees is what holds where nothing
// else is said: it is for calls that have no other layer of its product and kind.
type Policy struct {
	Callees   []string `yaml:"callees"`             // names of the callee: any of them is it
	Callers   []string `yaml:"callers,omitempty"`   // names of callers; none means every caller
	Except    []string `yaml:"except,omitempty"`    // callees that a pattern is not about
	Namespace string   `yaml:"namespace,omitempty"` // in which short names are looked up first
	Layer     Layer    `yaml:"layer"`
}

// Remark is something that an importer noticed while it read: a key nobody knows, a policy that has no effect, a value
// that could not be read. It becomes a finding of the rule it names.
type Remark struct {
	Rule    string   `yaml:"rule"` // the id of the rule: "F601"
	At      Position `yaml:"at,omitempty"`
	Subject string   `yaml:"subject,omitempty"` // the same when lines move: "VirtualService shop/orders retryOn"
	Text    string   `yaml:"text"`              // what is wrong, one sentence
	Fix     string   `yaml:"fix,omitempty"`     // what to do, one sentence
	// Assumed is what the remark rests on and no file says. A finding that rests on something is no error.
	Assumed string `yaml:"assumed,omitempty"`
}

// Add appends everything of other to f.
func (f *Form) Add(other Form) {
	f.Services = append(f.Services, other.Services...)
	f.Calls = append(f.Calls, other.Calls...)
	f.Policies = append(f.Policies, other.Policies...)
	f.Leads = append(f.Leads, other.Leads...)
	f.Remarks = append(f.Remarks, other.Remarks...)
	f.Protos = f.Protos || other.Protos
}
