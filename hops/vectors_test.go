package hops_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// vectors is docs/headers.json: what implementations in other languages are tested with.
type vectors struct {
	ParseAllowance []struct {
		Values    []string
		Allowance *core.Allowance
	}
	WriteAllowance []struct {
		Left        int
		Owner, Text string
	}
	ParseMade []struct {
		Values []string
		Made   *core.Below
	}
	WriteMade []struct {
		Made  int
		Final bool
		Text  string
	}
	ParseGRPCTimeout []struct {
		Value string
		Is    *time.Duration `json:"ns"`
	}
	WriteGRPCTimeout []struct {
		Is   time.Duration `json:"ns"`
		Text string
	}
	ParsePushback []struct {
		Values []string
		Never  bool
		Millis int64 `json:"ms"`
	}
	WritePushback []struct {
		Never bool
		Wait  time.Duration `json:"ns"`
		Text  string
	}
	Attempts []struct {
		Name, Value string
		Attempt     *int
	}
	Scenarios []scenario
}

func load(t testing.TB) *vectors {
	t.Helper()
	text, err := os.ReadFile("../docs/headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return &v
}

func TestVectorsOfOurHeaders(t *testing.T) {
	v := load(t)
	for _, c := range v.ParseAllowance {
		got, ok := hops.LeastAllowance(c.Values)
		if ok != (c.Allowance != nil) || ok && got != *c.Allowance {
			t.Errorf("allowance %q: %+v, %v, want %+v", c.Values, got, ok, c.Allowance)
		}
	}
	for _, c := range v.WriteAllowance {
		if got := string(hops.AppendAllowance(nil, core.Allowance{Left: c.Left, Owner: c.Owner})); got != c.Text {
			t.Errorf("allowance %+v is written %q", c, got)
		}
	}
	for _, c := range v.ParseMade {
		want := core.Below{}
		if c.Made != nil {
			want, want.Said = *c.Made, true
		}
		if got := hops.MostMade(c.Values); got != want {
			t.Errorf("made %q: %+v, want %+v", c.Values, got, want)
		}
	}
	for _, c := range v.WriteMade {
		if got := string(hops.AppendMade(nil, core.Below{Made: c.Made, Final: c.Final})); got != c.Text {
			t.Errorf("made %+v is written %q", c, got)
		}
	}
	if len(v.ParseAllowance) < 40 || len(v.ParseMade) < 15 || len(v.WriteAllowance) == 0 || len(v.WriteMade) == 0 {
		t.Error("vectors are missing")
	}
}

func TestVectorsOfTheHeadersOfOthers(t *testing.T) {
	v := load(t)
	for _, c := range v.ParseGRPCTimeout {
		got, ok := hops.ParseGRPCTimeout(c.Value)
		if ok != (c.Is != nil) || ok && got != *c.Is {
			t.Errorf("grpc-timeout %q: %v, %v", c.Value, got, ok)
		}
		if also, known := hops.TimeLimitOf("grpc-Timeout", c.Value); known != ok || also != got {
			t.Errorf("as a header: %v, %v", also, known)
		}
	}
	for _, c := range v.WriteGRPCTimeout {
		if got := string(hops.AppendGRPCTimeout(nil, c.Is)); got != c.Text {
			t.Errorf("grpc-timeout of %d ns is written %q, want %q", c.Is, got, c.Text)
		}
	}
	for _, c := range v.ParsePushback {
		if got := hops.ParsePushback(c.Values); got !=
			(hops.Pushback{Never: c.Never, Wait: time.Duration(c.Millis) * time.Millisecond}) {
			t.Errorf("pushback %q: %+v", c.Values, got)
		}
	}
	for _, c := range v.WritePushback {
		if got := string(hops.AppendPushback(nil, hops.Pushback{Never: c.Never, Wait: c.Wait})); got != c.Text {
			t.Errorf("pushback %+v is written %q", c, got)
		}
	}
	for _, c := range v.Attempts {
		if got, ok := hops.AttemptOf(c.Name, c.Value); ok != (c.Attempt != nil) || ok && got != *c.Attempt {
			t.Errorf("%s %q: %d, %v", c.Name, c.Value, got, ok)
		}
	}
	if len(v.ParseGRPCTimeout) < 20 || len(v.ParsePushback) < 10 || len(v.Attempts) < 10 || len(v.WriteGRPCTimeout) == 0 ||
		len(v.WritePushback) == 0 {
		t.Error("vectors are missing")
	}
}

// scenario is what one layer does, call after call, under one guard called "a".
type scenario struct {
	Name       string
	MaxRetries int
	Owner      core.RetryOwner
	Arrived    *string // the request's Abate-Retry-Allowance, from a trusted peer
	Open       bool    // the request's allowance is not believed
	Calls      []struct {
		Attempts []struct {
			Sends  *string
			Answer reply
		}
		Ends string
	}
	Report *string // Abate-Retries-Made on the answer, if that is a failure
	Left   *int
}

type reply struct {
	Class   string
	Made    *string
	Unsent  bool
	NoRetry bool
	Resent  int
}

func (a reply) outcome(t *testing.T) abate.Outcome {
	classes := []abate.Class{abate.Success, abate.Failure, abate.Overload, abate.Ignored}
	n := slices.IndexFunc(classes, func(c abate.Class) bool { return c.String() == a.Class })
	if n < 0 {
		t.Fatalf("there is no class %q", a.Class)
	}
	o := abate.Outcome{Class: classes[n], Unsent: a.Unsent, NoRetry: a.NoRetry, Resent: a.Resent}
	if a.Made != nil {
		o.Below = hops.MostMade([]string{*a.Made})
	}
	return o
}

func TestVectorsOfOneLayer(t *testing.T) {
	all := load(t).Scenarios
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) { s.run(t) })
	}
	if len(all) < 15 {
		t.Errorf("%d scenarios", len(all))
	}
}

func (s *scenario) run(t *testing.T) {
	p := abate.Policy{RetryOwner: s.Owner}
	p.MaxRetries, p.Backoff = s.MaxRetries, "none"
	p.CircuitBreaker.Disabled = true // what it says of retries is no matter of headers
	g, err := abate.New("a", p)
	if err != nil {
		t.Fatal(err)
	}
	var tree *core.CallTree
	if s.Open {
		tree = core.NewOpenCallTree()
	}
	if s.Arrived != nil {
		a, ok := hops.LeastAllowance([]string{*s.Arrived})
		if !ok {
			t.Fatalf("allowance %q", *s.Arrived)
		}
		tree = core.NewCallTree(a)
	}
	for n := range s.Calls {
		s.call(t, g, tree, n)
	}
	if tree == nil {
		return
	}
	if got := string(hops.AppendMade(nil, tree.Report())); s.Report == nil || got != *s.Report {
		t.Errorf("it reports %q", got)
	}
	if a, limited := tree.Allowance(); limited != (s.Left != nil) || limited && a.Left != *s.Left {
		t.Errorf("%+v is left, %v", a, limited)
	}
}

func (s *scenario) call(t *testing.T, g *abate.Guard, tree *core.CallTree, n int) {
	var c core.Call
	c.Under(tree)
	want := s.Calls[n]
	step := g.Begin(&c, 0, math.MaxInt64)
	for i, a := range want.Attempts {
		if step.Action != core.Attempt {
			t.Fatalf("call %d: step %+v instead of attempt %d", n+1, step, i+1)
		}
		var sends *string
		if told, ok := c.Delegate(0); ok {
			text := string(hops.AppendAllowance(nil, told))
			sends = &text
		}
		if (sends == nil) != (a.Sends == nil) || sends != nil && *sends != *a.Sends {
			t.Errorf("call %d, attempt %d sends %s", n+1, i+1, quoted(sends))
		}
		step = c.AttemptDone(0, 0, a.Answer.outcome(t))
	}
	if step.Action != core.Finish {
		t.Fatalf("call %d does not end after %d attempts: %+v", n+1, len(want.Attempts), step)
	}
	ends := ""
	if reason := abate.Reason(step.Err); reason != nil {
		ends = reason.Error()
	}
	if ends != want.Ends {
		t.Errorf("call %d ends with %q, want %q", n+1, ends, want.Ends)
	}
}

func quoted(s *string) string {
	if s == nil {
		return "nothing"
	}
	return `"` + *s + `"`
}
