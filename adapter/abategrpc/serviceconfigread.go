package abategrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// ParseServiceConfig reads a service config in JSON, as resolvers and grpc.WithDefaultServiceConfig take it. The error
// joins one *abate.FieldError for each mistake, whose Path is the place in the JSON
// (methodConfig[2].retryPolicy.maxBackoff); it finds what grpc-go refuses, and a hedgingPolicy that is none, which
// grpc-go does not look at. What grpc-go takes is taken: keys in any case, times such as ".5s" and "2.s", and what no
// policy can say to the letter is said as nearly as possible, with a note.
//
//   - A retryPolicy becomes maxRetries, with the codes as retryOn, so that all its methods are repeated; more than 5
//     attempts are 5, as in gRPC. Delays vary by 20 %, as in gRPC.
//   - A hedgingPolicy becomes hedges. A copy that fails while no other is in the air ends the call, where gRPC would
//     send the next at once, and four copies are the most.
//   - retryThrottling becomes a retryBudget of the kind tokens with half of maxTokens: gRPC stops at half a bucket.
func ParseServiceConfig(text []byte) (*ServiceConfig, error) {
	r := &configReader{seen: make(map[string]string)}
	r.config(text)
	if len(r.found) == 0 {
		r.askGRPC(text)
	}
	if err := errors.Join(r.found...); err != nil {
		return nil, fmt.Errorf("abategrpc: service config: %w", err)
	}
	return &r.out, nil
}

type configReader struct {
	out   ServiceConfig
	found []error
	seen  map[string]string // where each method was named
}

func (r *configReader) add(path, problem, fix string) {
	r.found = append(r.found, &abate.FieldError{Path: path, Problem: problem, Fix: fix})
}

func (r *configReader) note(path, text string) {
	r.out.Notes = append(r.out.Notes, path+": "+text)
}

func (r *configReader) config(text []byte) {
	all := r.object("the document", "", text, "methodConfig", "retryThrottling", "loadBalancingPolicy",
		"loadBalancingConfig", "healthCheckConfig")
	for _, key := range []string{"loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig"} {
		if _, ok := all[key]; ok {
			r.note(key, "is not looked at; leave it in the service config that grpc-go itself gets")
		}
	}
	for i, raw := range r.list("methodConfig", all["methodConfig"]) {
		r.method(fmt.Sprintf("methodConfig[%d]", i), raw)
	}
	if all["methodConfig"] != nil { // else gRPC does not look at it
		r.throttling(all["retryThrottling"])
	}
}

func (r *configReader) method(path string, raw json.RawMessage) {
	all := r.object("", path, raw, "name", "waitForReady", "timeout", "retryPolicy", "hedgingPolicy",
		"maxRequestMessageBytes", "maxResponseMessageBytes")
	switch {
	case all == nil:
		return
	case all["name"] == nil:
		r.note(path, "has no name, so it is for no method")
		return
	}
	m := MethodPolicy{Methods: r.names(path+".name", all["name"])}
	for _, key := range []string{"maxRequestMessageBytes", "maxResponseMessageBytes"} {
		if _, ok := all[key]; ok {
			r.note(path+"."+key, "is not looked at; grpc.MaxCallSendMsgSize and grpc.MaxCallRecvMsgSize set it")
		}
	}
	if raw, ok := all["waitForReady"]; ok && json.Unmarshal(raw, &m.WaitForReady) != nil {
		r.add(path+".waitForReady", "is neither true nor false", "write it without quotes")
	}
	if raw, ok := all["timeout"]; ok {
		m.Policy.Timeout = r.timeout(path+".timeout", raw)
	}
	retries, hedges := all["retryPolicy"], all["hedgingPolicy"]
	if retries != nil && hedges != nil {
		r.add(path+".hedgingPolicy", "stands beside a retryPolicy", "gRPC takes one of them; remove the other")
	}
	before := len(r.found)
	if retries != nil {
		r.retries(path+".retryPolicy", retries, &m.Policy)
	} else if hedges != nil {
		r.hedges(path+".hedgingPolicy", hedges, &m.Policy)
	}
	if len(r.found) == before {
		r.check(path, &m.Policy)
	}
	if len(m.Methods) == 0 {
		r.note(path, "is for no method")
		return
	}
	r.out.Methods = append(r.out.Methods, m)
}

// placeOf says where the field of a policy stands in a methodConfig.
var placeOf = map[string]string{
	"timeout": "timeout", "initialDelay": "retryPolicy.initialBackoff", "maxDelay": "retryPolicy.maxBackoff",
	"multiplier": "retryPolicy.backoffMultiplier", "hedge.delay": "hedgingPolicy.hedgingDelay",
}

// check finds what no policy can say.
func (r *configReader) check(path string, p *abate.Policy) {
	eachField(p.Validate(), func(e *abate.FieldError) {
		at, ok := placeOf[e.Path]
		if !ok {
			at = e.Path
		}
		r.add(path+"."+at, e.Problem, e.Fix)
	})
}

func (r *configReader) names(path string, raw json.RawMessage) (patterns []string) {
	for i, raw := range r.list(path, raw) {
		at := fmt.Sprintf("%s[%d]", path, i)
		all := r.object("", at, raw, "service", "method")
		if all == nil {
			continue
		}
		n := configName{r.text(at+".service", all["service"]), r.text(at+".method", all["method"])}
		key := n.Service + "/" + n.Method
		before, twice := r.seen[key]
		r.seen[key] = at
		switch {
		case n.Service == "" && n.Method != "":
			r.add(at, "has a method and no service", `write for example {"service": "shop.Payment", "method": "Get"}`)
		case twice:
			r.add(at, "names the methods of "+before+" again", "remove one of them")
		case strings.ContainsAny(n.Service+n.Method, "/ \t\r\n") || n.Method == "*":
			r.note(at, strconv.Quote(n.Service+" "+n.Method)+" is the name of no method, so it is for none; without method it "+
				"would be all methods of the service")
		default:
			patterns = append(patterns, n.pattern())
		}
	}
	return patterns
}

// text reads a string; one that is not there is empty.
func (r *configReader) text(path string, raw json.RawMessage) (s string) {
	if raw != nil && json.Unmarshal(raw, &s) != nil {
		r.add(path, "is not a string", "put it in quotes")
	}
	return s
}

func (r *configReader) retries(path string, raw json.RawMessage, p *abate.Policy) {
	all := r.object("", path, raw, "maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier",
		"retryableStatusCodes")
	if all == nil {
		return
	}
	p.MaxRetries = r.attempts(path+".maxAttempts", all["maxAttempts"]) - 1
	p.Jitter, p.JitterFactor = retry.FactorJitter, 0.2
	p.MaxDelay = r.pause(path+".maxBackoff", all["maxBackoff"], 24*time.Hour)
	p.InitialDelay = r.pause(path+".initialBackoff", all["initialBackoff"], time.Hour)
	if p.MaxDelay > 0 {
		p.InitialDelay = min(p.InitialDelay, p.MaxDelay) // that is how long the first one lasts
	}
	at := path + ".backoffMultiplier"
	if p.Multiplier = r.number(at, all["backoffMultiplier"]); p.Multiplier > 0 &&
		(p.Multiplier < 1 || p.Multiplier > 100) {
		nearest := min(max(p.Multiplier, 1), 100)
		r.note(at, fmt.Sprintf("%v is as %v: a policy has 1 to 100", p.Multiplier, nearest))
		p.Multiplier = nearest
	}
	at = path + ".retryableStatusCodes"
	var ok bool
	p.RetryOn, ok = r.codes(at, all["retryableStatusCodes"], true)
	switch {
	case len(p.RetryOn) > 0:
	case ok:
		r.note(at, "names no failure, so nothing is repeated")
		p.Retry = abate.Retry{}
	default:
		r.add(at, "names no codes", `write for example ["UNAVAILABLE"]`)
	}
}

func (r *configReader) hedges(path string, raw json.RawMessage, p *abate.Policy) {
	all := r.object("", path, raw, "maxAttempts", "hedgingDelay", "nonFatalStatusCodes")
	if all == nil {
		return
	}
	copies := r.attempts(path+".maxAttempts", all["maxAttempts"])
	if copies > core.MaxCopies {
		r.note(path+".maxAttempts", fmt.Sprintf("%d copies are sent at most", core.MaxCopies))
		copies = core.MaxCopies
	}
	p.Hedge = hedge.Config{MaxHedges: copies - 1, Delay: time.Millisecond}
	if delay, ok := all["hedgingDelay"]; ok && string(delay) != `"0s"` {
		p.Hedge.Delay = r.pause(path+".hedgingDelay", delay, 1<<63-1)
	} else {
		r.note(path+".hedgingDelay", "without a delay every call would be sent several times at once; 1ms is the least")
	}
	if p.RetryOn, _ = r.codes(path+".nonFatalStatusCodes", all["nonFatalStatusCodes"], false); len(p.RetryOn) > 0 {
		r.note(path+".nonFatalStatusCodes", "a copy that fails so while no other is in the air ends the call")
		return
	}
	// A code in retryOn says that the methods may be sent twice, and neverRetryOn that every failure is final.
	p.RetryOn, p.NeverRetryOn = []string{"UNAVAILABLE"}, []string{"UNAVAILABLE"}
}

// leastRatio is the smallest tokenRatio: gRPC has three decimals.
const leastRatio = 0.001

// throttling reads retryThrottling into all policies that repeat anything.
func (r *configReader) throttling(raw json.RawMessage) {
	repeats := func(m MethodPolicy) bool { return m.Policy.MaxRetries > 0 || m.Policy.Hedge.Enabled() }
	if raw == nil {
		if slices.ContainsFunc(r.out.Methods, repeats) {
			r.note("retryThrottling", `is not there, so nothing bounds the retries of all calls together; add for example `+
				`{"maxTokens": 10, "tokenRatio": 0.1}`)
		}
		return
	}
	all := r.object("", "retryThrottling", raw, "maxTokens", "tokenRatio")
	if all == nil {
		return
	}
	most, ratio := r.number("retryThrottling.maxTokens", all["maxTokens"]),
		r.number("retryThrottling.tokenRatio", all["tokenRatio"])
	if most > 1000 {
		r.add("retryThrottling.maxTokens", fmt.Sprintf("%v is out of range", most), "allowed: above 0, to 1000")
	}
	if ratio > 1000 {
		r.note("retryThrottling.tokenRatio", fmt.Sprintf("%v is as 1000, which fills any bucket at once", ratio))
		ratio = 1000
	}
	if ratio > 0 && ratio < leastRatio {
		r.note("retryThrottling.tokenRatio", fmt.Sprintf("%v is as %v, as in gRPC", ratio, leastRatio))
		ratio = leastRatio
	}
	if most > 0 && most < 2 {
		r.note("retryThrottling.maxTokens", "less than 2 is as 2: one retry before the next has to be earned")
	}
	b := budget.Config{Kind: budget.Tokens, MaxTokens: max(most/2, 1), DepositPerSuccess: ratio}
	for i := range r.out.Methods {
		r.out.Methods[i].Policy.RetryBudget = b
	}
}

// attempts reads maxAttempts. It returns 1 if there is none that could be used.
func (r *configReader) attempts(path string, raw json.RawMessage) int {
	var n int
	switch err := json.Unmarshal(raw, &n); {
	case raw == nil || err != nil:
		r.add(path, "is not a whole number", "allowed: 2 to 5, for example 3")
		return 1
	case n < 2:
		r.add(path, strconv.Itoa(n)+" is out of range", "allowed: 2 to 5; for no retries remove the policy")
		return 1
	case n > mostAttempts:
		r.note(path, fmt.Sprintf("%d is more than gRPC makes: %d", n, mostAttempts))
	}
	return min(n, mostAttempts)
}

// codes reads a list of codes, by name or number. sound reports whether there is one, and no mistake. loose takes OK,
// and null, which is OK to grpc-go: it is no failure, so that naming it says nothing.
func (r *configReader) codes(path string, raw json.RawMessage, loose bool) (names []string, sound bool) {
	all := r.list(path, raw)
	sound = len(all) > 0
	for i, raw := range all {
		number, err := strconv.ParseUint(string(raw), 10, 32)
		if err != nil {
			number = uint64(slices.IndexFunc(core.GRPCCodes[:], func(name string) bool {
				return string(raw) == strconv.Quote(name)
			}))
		}
		switch {
		case loose && (number == 0 || string(raw) == "null"):
			r.note(fmt.Sprintf("%s[%d]", path, i), "OK is no failure")
		case number == 0 || number >= uint64(len(core.GRPCCodes)):
			r.add(fmt.Sprintf("%s[%d]", path, i), string(raw)+" is no code of a failure",
				"allowed: "+strings.Join(core.GRPCCodes[1:], ", "))
			sound = false
		case !slices.Contains(names, core.GRPCCodes[number]):
			names = append(names, core.GRPCCodes[number])
		}
	}
	return names, sound
}
