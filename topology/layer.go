package topology

import (
	"fmt"
	"strings"
	"time"
)

// Kind says where a layer runs.
type Kind uint8

// The kinds, from the outside in as a call passes them.
const (
	Client     Kind = iota // a library in the caller's process
	SidecarOut             // the caller's sidecar
	Gateway                // a proxy between the two
	SidecarIn              // the callee's sidecar
	Connection             // a transport that repeats what never reached the callee
	kinds
)

var kindNames = [kinds]string{"client", "sidecar-out", "gateway", "sidecar-in", "connection"}

// String is the kind's name.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "?"
}

// MarshalText is String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what String writes.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no kind of layer; write %s", text, strings.Join(kindNames[:], ", "))
}

// Layer is one thing that tries a call: what it repeats, how often, within which limits. All fields but Kind may be
// left at their zero values.
type Layer struct {
	Kind    Kind          `yaml:"kind"`
	Product string        `yaml:"product,omitempty"` // "istio", "envoy", "nginx", "resilience4j", … in lower case
	Version Value[string] `yaml:"version,omitempty"` // whose defaults were taken
	Name    string        `yaml:"name,omitempty"`    // what its owners call it: "VirtualService shop/orders, http[0]"
	At      Position      `yaml:"at,omitempty"`      // the block that makes it
	Match   Match         `yaml:"match,omitempty"`   // the part of the calls it is for; the zero Match is all of them
	// Choice names what picks one of several layers: a request passes the first layer of a choice whose Match it meets,
	// and none of the others. The routes of one proxy are a choice. Layers without one all apply.
	Choice string `yaml:"choice,omitempty"`

	Repeats []Repeat             `yaml:"repeats,omitempty"`
	PerTry  Value[time.Duration] `yaml:"perTry,omitempty"`  // limit of one try
	Overall Value[time.Duration] `yaml:"overall,omitempty"` // limit of all tries and the waits between them
	Connect Value[time.Duration] `yaml:"connect,omitempty"` // limit of opening a connection
	// Beside reports that a try that has had PerTry is not ended: the next one runs beside it (Envoy's hedging). The tries
	// are those of Repeats.
	Beside Value[bool] `yaml:"beside,omitempty"`
	// StartsOnly reports that Overall forbids further tries but does not end one that runs (nginx).
	StartsOnly bool `yaml:"startsOnly,omitempty"`
	// Speaks is what the service behind it speaks, where the file of the layer says it; see Service.
	Speaks Value[string] `yaml:"speaks,omitempty"`
	// Upgrades reports that its requests may become connections that stay open, as websockets do: a long limit, or none,
	// is right for them.
	Upgrades Value[bool] `yaml:"upgrades,omitempty"`

	Backoff  Backoff  `yaml:"backoff,omitempty"`
	Budget   Budget   `yaml:"budget,omitempty"`
	Breaker  Breaker  `yaml:"breaker,omitempty"`
	Ejection Ejection `yaml:"ejection,omitempty"`
	Limits   Limits   `yaml:"limits,omitempty"`
	Hedge    Hedge    `yaml:"hedge,omitempty"`

	Endpoints   Value[int]  `yaml:"endpoints,omitempty"`   // how many it chooses among, where its tries depend on that
	Cancels     Value[bool] `yaml:"cancels,omitempty"`     // it stops when its own caller leaves
	Overridable Value[bool] `yaml:"overridable,omitempty"` // a caller may change its tries by request headers
	Answers     []Answer    `yaml:"answers,omitempty"`     // what its caller sees, where that is not the last outcome
	// Owner is how a layer of Abate shares extra attempts with the others of its call tree: nearest, edge or none. It is
	// absent for every other product.
	Owner Value[string] `yaml:"owner,omitempty"`
}

// Match is the part of a service's calls that a layer is for. An empty field matches all.
type Match struct {
	Host    string   `yaml:"host,omitempty"`
	Path    string   `yaml:"path,omitempty"` // exact, or a prefix that ends in *, or a regular expression after ~
	Methods []string `yaml:"methods,omitempty"`
	Other   string   `yaml:"other,omitempty"` // further conditions, in the format's own words
}

// Repeat is one rule of what a layer tries again. Where several rules are about the same outcome and method, the one
// with the most tries holds.
type Repeat struct {
	On      []Outcome  `yaml:"on"`
	Methods Methods    `yaml:"methods,omitempty"` // the zero value is all
	Tries   Value[int] `yaml:"tries,omitempty"`   // in all, the first one counted
	Word    string     `yaml:"word,omitempty"`    // the format's own word: "gateway-error"
	At      Position   `yaml:"at,omitempty"`      // where that word stands
	// Wait is the constant wait before each further try, where this rule has one of its own instead of the layer's
	// back-off (HAProxy).
	Wait Value[time.Duration] `yaml:"wait,omitempty"`
	// Elsewhere reports that each further try goes to another endpoint.
	Elsewhere bool `yaml:"elsewhere,omitempty"`
	// Listed are the HTTP methods of requests that are repeated once they were sent, where the format lists them; Methods
	// is what they come to. It is empty for a format that only tells kinds of methods apart.
	Listed []string `yaml:"listed,omitempty"`
}

// Answer says that a layer whose last try ended with one outcome gives its own caller another.
type Answer struct {
	After Outcome `yaml:"after"`
	Gives Outcome `yaml:"gives"`
}

// Backoff is the wait between two tries.
type Backoff struct {
	First      Value[time.Duration] `yaml:"first,omitempty"` // none: the next try follows at once
	Max        Value[time.Duration] `yaml:"max,omitempty"`
	Multiplier Value[float64]       `yaml:"multiplier,omitempty"` // 1 or absent: constant
	Jitter     Value[string]        `yaml:"jitter,omitempty"`     // none, full, equal, or a share such as ±50%
	RetryAfter Value[bool]          `yaml:"retryAfter,omitempty"` // it obeys Retry-After
}

// Budget bounds the retries of all calls together.
type Budget struct {
	Ratio      Value[float64]       `yaml:"ratio,omitempty"`      // retries for one first try
	PerSecond  Value[float64]       `yaml:"perSecond,omitempty"`  // of retries, for each instance, besides the ratio
	Concurrent Value[int]           `yaml:"concurrent,omitempty"` // in flight; with a ratio, the least that it allows
	Tokens     Value[float64]       `yaml:"tokens,omitempty"`     // of a gRPC throttle; retries stop at half of them
	Window     Value[time.Duration] `yaml:"window,omitempty"`
	// Share is the retries in flight for one request in flight (Envoy); Concurrent is then the least that it allows. It is
	// no ratio: retries that fail at once are many in a second and few at a time, so it bounds no rate.
	Share Value[float64] `yaml:"share,omitempty"`
}

// Breaker is a circuit breaker.
type Breaker struct {
	FailureRatio Value[float64]       `yaml:"failureRatio,omitempty"` // 0 to 1
	Consecutive  Value[int]           `yaml:"consecutive,omitempty"`  // failures in a row
	MinimumCalls Value[int]           `yaml:"minimumCalls,omitempty"`
	WindowCalls  Value[int]           `yaml:"windowCalls,omitempty"`
	Window       Value[time.Duration] `yaml:"window,omitempty"`
	OpenFor      Value[time.Duration] `yaml:"openFor,omitempty"`
	SlowerThan   Value[time.Duration] `yaml:"slowerThan,omitempty"`
	// InsideRetry reports that each try asks it, not each call.
	InsideRetry Value[bool] `yaml:"insideRetry,omitempty"`
}

// Ejection takes endpoints that fail out of the choice.
type Ejection struct {
	Consecutive Value[int]           `yaml:"consecutive,omitempty"`
	Interval    Value[time.Duration] `yaml:"interval,omitempty"`
	Base        Value[time.Duration] `yaml:"base,omitempty"` // how long the first ejection lasts
	MaxShare    Value[float64]       `yaml:"maxShare,omitempty"`
}

// Limits bound what is in flight. A value of Unbounded is no limit.
type Limits struct {
	Requests    Value[int] `yaml:"requests,omitempty"` // in flight at once
	Pending     Value[int] `yaml:"pending,omitempty"`  // that wait for a connection
	Connections Value[int] `yaml:"connections,omitempty"`
}

// Hedge is copies of a try that run beside it.
type Hedge struct {
	Copies Value[int]           `yaml:"copies,omitempty"` // besides the first
	Delay  Value[time.Duration] `yaml:"delay,omitempty"`
}
