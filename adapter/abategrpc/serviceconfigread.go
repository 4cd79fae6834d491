package abategrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// ParseServiceConfig reads a service config in JSON, as resolvers and grpc.WithDefaultServiceConfig take it. The error joins one
// *abate.FieldError for each mistake, whose Path is the place in the JSON (methodConfig[2].retryPolicy.maxBackoff); it finds what
// grpc-go refuses, and what no policy can say.
//
//   - A retryPolicy becomes maxRetries, with the codes as retryOn, so that all its methods are repeated; more than 5 attempts are
//     5, as in gRPC. Delays vary by 20 %, as in gRPC.
//   - A hedgingPolicy becomes hedges. A copy that fails while no other is in the air ends the call, where gRPC would send the next at
//     once, and four copies are the most.
//   - retryThrottling becomes a retryBudget of the kind tokens with half of maxTokens: gRPC stops at half a bucket.
func ParseServiceConfig(text []byte) (*ServiceConfig, error) {
	r := &configReader{seen: make(map[string]string)}
	r.config(text)
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

func (r *configReader) add(path, problem, mend string) {
	r.found = append(r.found, &abate.FieldError{Path: path, Problem: problem, Mend: mend})
}

func (r *configReader) note(path, text string) {
	r.out.Notes = append(r.out.Notes, path+": "+text)
}

// config reads all of it.
func (r *configReader) config(text []byte) {
	all := r.object("the document", "", text, "methodConfig", "retryThrottling", "loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig")
	for _, key := range []string{"loadBalancingPolicy", "loadBalancingConfig", "healthCheckConfig"} {
		if _, ok := all[key]; ok {
			r.note(key, "is not looked at; leave it in the service config that grpc-go itself gets")
		}
	}
	for i, raw := range r.list("methodConfig", all["methodConfig"]) {
		r.method(fmt.Sprintf("methodConfig[%d]", i), raw)
	}
	r.throttling(all["retryThrottling"])
}

// object reads an object with these keys. Those that are null are as if they were not there. what names an object without a path.
func (r *configReader) object(what, path string, raw json.RawMessage, keys ...string) map[string]json.RawMessage {
	if path != "" {
		what = path
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil || all == nil {
		problem := "is not a JSON object"
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			problem = fmt.Sprintf("is not JSON, at byte %d: %v", syntax.Offset, syntax)
		}
		r.add(what, problem, `write for example {"methodConfig": [{"name": [{}], "timeout": "2s"}]}`)
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		switch i := slices.IndexFunc(keys, func(known string) bool { return strings.EqualFold(known, key) }); {
		case i < 0:
			r.note(at, "is not known, and gRPC does not look at it either; known here: "+strings.Join(keys, ", "))
			delete(all, key)
		case keys[i] != key:
			r.add(at, "is not known", "write "+keys[i])
		case string(all[key]) == "null":
			delete(all, key)
		}
	}
	return all
}

// list reads an array; one that is not there is empty.
func (r *configReader) list(path string, raw json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	if raw != nil && json.Unmarshal(raw, &all) != nil {
		r.add(path, "is not a list", "put it in brackets: [ ]")
	}
	return all
}

// method reads one methodConfig.
func (r *configReader) method(path string, raw json.RawMessage) {
	all := r.object("", path, raw, "name", "waitForReady", "timeout", "retryPolicy", "hedgingPolicy", "maxRequestMessageBytes", "maxResponseMessageBytes")
	if all == nil {
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
		at := path + ".timeout"
		if m.Policy.Timeout = r.duration(at, raw); m.Policy.Timeout > 24*time.Hour {
			r.note(at, "more than a day is a day")
			m.Policy.Timeout = 24 * time.Hour
		}
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
		r.note(path, "has no name, so it is for no method")
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
		r.add(path+"."+at, e.Problem, e.Mend)
	})
}

// names reads which methods are meant.
func (r *configReader) names(path string, raw json.RawMessage) (patterns []string) {
	for i, raw := range r.list(path, raw) {
		at := fmt.Sprintf("%s[%d]", path, i)
		all := r.object("", at, raw, "service", "method")
		if all == nil {
			continue
		}
		n := configName{r.text(at+".service", all["service"]), r.text(at+".method", all["method"])}
		pattern := n.pattern()
		switch before, twice := r.seen[pattern]; {
		case n.Service == "" && n.Method != "":
			r.add(at, "has a method and no service", `write for example {"service": "shop.Payment", "method": "Get"}`)
		case strings.ContainsAny(n.Service+n.Method, "/ \t\r\n") || n.Method == "*":
			r.add(at, strconv.Quote(n.Service+" "+n.Method)+" is no method", `write for example {"service": "shop.Payment", "method": "Get"}; without method it is all methods of the service`)
		case twice:
			r.add(at, "names the methods of "+before+" again", "remove one of them")
		default:
			r.seen[pattern] = at
			patterns = append(patterns, pattern)
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

// retries reads a retryPolicy.
func (r *configReader) retries(path string, raw json.RawMessage, p *abate.Policy) {
	all := r.object("", path, raw, "maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes")
	if all == nil {
		return
	}
	p.MaxRetries = r.attempts(path+".maxAttempts", all["maxAttempts"]) - 1
	p.Jitter, p.JitterFactor = retry.FactorJitter, 0.2
	p.MaxDelay = r.pause(path+".maxBackoff", all["maxBackoff"])
	p.InitialDelay = r.pause(path+".initialBackoff", all["initialBackoff"])
	if p.MaxDelay > 0 {
		p.InitialDelay = min(p.InitialDelay, p.MaxDelay) // that is how long the first one lasts
	}
	if p.Multiplier = r.number(path+".backoffMultiplier", all["backoffMultiplier"]); p.Multiplier > 0 && p.Multiplier < 1 {
		r.add(path+".backoffMultiplier", fmt.Sprintf("%v makes pauses shorter and shorter", p.Multiplier), "allowed: 1 to 100, for example 2")
		p.Multiplier = 0
	}
	p.RetryOn = r.codes(path+".retryableStatusCodes", all["retryableStatusCodes"])
	if len(p.RetryOn) == 0 {
		r.add(path+".retryableStatusCodes", "names no codes", `write for example ["UNAVAILABLE"]`)
	}
}

// hedges reads a hedgingPolicy.
func (r *configReader) hedges(path string, raw json.RawMessage, p *abate.Policy) {
	all := r.object("", path, raw, "maxAttempts", "hedgingDelay", "nonFatalStatusCodes")
	if all == nil {
		return
	}
	copies := r.attempts(path+".maxAttempts", all["maxAttempts"])
	if copies > abate.MaxCopies {
		r.note(path+".maxAttempts", fmt.Sprintf("%d copies are sent at most", abate.MaxCopies))
		copies = abate.MaxCopies
	}
	p.Hedge = hedge.Config{MaxHedges: copies - 1, Delay: time.Millisecond}
	if delay, ok := all["hedgingDelay"]; ok && string(delay) != `"0s"` {
		p.Hedge.Delay = r.pause(path+".hedgingDelay", delay)
	} else {
		r.note(path+".hedgingDelay", "without a delay every call would be sent several times at once; 1ms is the least")
	}
	if p.RetryOn = r.codes(path+".nonFatalStatusCodes", all["nonFatalStatusCodes"]); len(p.RetryOn) > 0 {
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
			r.note("retryThrottling", `is not there, so nothing bounds the retries of all calls together; add for example {"maxTokens": 10, "tokenRatio": 0.1}`)
		}
		return
	}
	all := r.object("", "retryThrottling", raw, "maxTokens", "tokenRatio")
	if all == nil {
		return
	}
	most, ratio := r.number("retryThrottling.maxTokens", all["maxTokens"]), r.number("retryThrottling.tokenRatio", all["tokenRatio"])
	if most > 1000 {
		r.add("retryThrottling.maxTokens", fmt.Sprintf("%v is out of range", most), "allowed: above 0, to 1000")
	}
	if ratio > 1000 {
		r.add("retryThrottling.tokenRatio", fmt.Sprintf("%v is out of range", ratio), "allowed: 0.001 to 1000")
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

// number reads one that has to be above zero.
func (r *configReader) number(path string, raw json.RawMessage) float64 {
	var f float64
	if err := json.Unmarshal(raw, &f); raw == nil || err != nil || !(f > 0) {
		r.add(path, "is not a number above 0", "write it without quotes, for example 0.1 or 2")
		return 0
	}
	return f
}

// pause reads a duration that is a millisecond at least.
func (r *configReader) pause(path string, raw json.RawMessage) time.Duration {
	d := r.duration(path, raw)
	if d > 0 && d < time.Millisecond {
		r.note(path, "less than a millisecond is a millisecond")
		d = time.Millisecond
	}
	return d
}

// duration reads one that has to be above zero, such as "1.5s".
func (r *configReader) duration(path string, raw json.RawMessage) time.Duration {
	var s string
	if raw != nil && json.Unmarshal(raw, &s) == nil {
		number, ok := strings.CutSuffix(s, "s")
		whole, part, dot := strings.Cut(number, ".")
		if ok && digitsOnly(whole, 12) && (!dot || digitsOnly(part, 9)) {
			seconds, _ := strconv.ParseInt(whole, 10, 64)
			nanos, _ := strconv.ParseInt((part + "000000000")[:9], 10, 64)
			if seconds > int64((1<<63-1)/time.Second)-1 {
				return 1<<63 - 1
			}
			if d := time.Duration(seconds)*time.Second + time.Duration(nanos); d > 0 {
				return d
			}
		}
	}
	r.add(path, "is not a time above 0", `write seconds with an "s", in quotes: "0.1s"`)
	return 0
}

func digitsOnly(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// codes reads a list of codes, by name or number.
func (r *configReader) codes(path string, raw json.RawMessage) (names []string) {
	for i, raw := range r.list(path, raw) {
		var name string
		var number int
		if json.Unmarshal(raw, &number) == nil && number > 0 && number < len(abate.GRPCCodes) {
			name = abate.GRPCCodes[number]
		} else if json.Unmarshal(raw, &name) != nil || !isCode(name) {
			r.add(fmt.Sprintf("%s[%d]", path, i), string(raw)+" is no code of a failure", "allowed: "+strings.Join(abate.GRPCCodes[1:], ", "))
			continue
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
