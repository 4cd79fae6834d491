package abate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
)

// hop is one layer of a chain: it is asked, calls the next layer under its guard, and answers. What it asks and answers
// is all that layers know of each other.
type hop struct {
	guard    *abate.Guard
	fan      int // calls of the next layer for each request
	next     *hop
	mute     bool // it knows nothing of allowances
	forwards bool // nor this one, but it passes on what it gets, and not what it is answered
	up       bool // the leaf does what it is asked
	leaf     int  // attempts that arrived here
	fate     func() fate
}

// fate is what becomes of an attempt on its way.
type fate int

const (
	answered fate = iota
	lost          // it arrived, and its answer did not
	refused       // it did not arrive
	fateCount
)

func newHop(t testing.TB, p abate.Policy) *hop {
	t.Helper()
	p.Backoff = retry.NoBackoff
	g, err := abate.New("payment-service", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	return &hop{guard: g, fan: 1, fate: func() fate { return answered }}
}

// ask has the layer handle a request with an allowance, nil for none, and returns what it says of the attempts behind
// it.
func (h *hop) ask(allowance *core.Allowance) (below core.Below, err error) {
	if h.next == nil {
		if h.leaf++; h.up {
			return core.Below{}, nil
		}
		return core.Below{}, errDown
	}
	if h.forwards {
		_, err = h.next.ask(allowance)
		return core.Below{}, err
	}
	var tree *core.CallTree
	switch {
	case h.mute:
	case allowance != nil:
		tree = core.NewCallTree(*allowance)
	default:
		tree = core.NewOpenCallTree()
	}
	for range h.fan {
		err = errors.Join(err, h.call(tree))
	}
	if tree == nil {
		return core.Below{}, err
	}
	below = tree.Report()
	below.Final = below.Final && err != nil
	return below, err
}

// call is one guarded call of the next layer.
func (h *hop) call(tree *core.CallTree) error {
	var c core.Call
	c.Under(tree)
	step := h.guard.Begin(&c, 0, core.NoDeadline)
	for step.Action == core.Attempt {
		var tell *core.Allowance
		if a, ok := c.Delegate(0); ok && !h.mute {
			tell = &a
		}
		step = c.AttemptDone(0, 0, h.attempt(tell))
	}
	return step.Err
}

func (h *hop) attempt(tell *core.Allowance) abate.Outcome {
	f := h.fate()
	if f == refused {
		return abate.Outcome{Class: abate.Failure, Unsent: true, Err: errDown}
	}
	below, err := h.next.ask(tell)
	if f == lost {
		return abate.Outcome{Class: abate.Failure, Err: errDown}
	}
	o := abate.Outcome{Below: below, Err: err}
	if err != nil {
		o.Class = abate.Failure
	}
	return o
}

// chain links layers with a leaf behind them that always fails.
func chain(t testing.TB, layers ...*hop) (leaf *hop) {
	leaf = newHop(t, abate.Policy{})
	for i, h := range layers[:len(layers)-1] {
		h.next = layers[i+1]
	}
	layers[len(layers)-1].next = leaf
	return leaf
}

func thrice(owner core.RetryOwner) abate.Policy {
	return abate.Policy{Retry: abate.Retry{MaxRetries: 2}, RetryOwner: owner}
}

func TestThreeLayersThatTryThreeTimesMakeThreeCalls(t *testing.T) {
	for _, owner := range []core.RetryOwner{"", core.OwnerNearest, core.OwnerEdge} {
		a, b, c := newHop(t, thrice(owner)), newHop(t, thrice(owner)), newHop(t, thrice(owner))
		leaf := chain(t, a, b, c)
		for request := range 5 { // the first ones are sent before the layers know of each other
			leaf.leaf = 0
			if _, err := a.ask(nil); err == nil || leaf.leaf != 3 {
				t.Errorf("owner %q, request %d: %d attempts at the leaf, want 3 (%v)", owner, request, leaf.leaf, err)
			}
		}
	}
}

func TestLayersThatKnowNothingOfEachOtherMultiply(t *testing.T) {
	a, b, c := newHop(t, thrice(core.OwnerNone)), newHop(t, thrice(core.OwnerNone)), newHop(t, thrice(core.OwnerNone))
	for _, h := range []*hop{a, b, c} {
		h.mute = true
	}
	leaf := chain(t, a, b, c)
	a.ask(nil)
	if leaf.leaf != 27 {
		t.Errorf("%d attempts at the leaf, want 27", leaf.leaf)
	}
}

func TestWhateverIsLostTheTreeKeepsToItsAllowance(t *testing.T) {
	seeds := uint64(20_000)
	if raceDetector { // one goroutine asks; make rest asks all
		seeds = 2_000
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 6))
		owners := []core.RetryOwner{core.OwnerNearest, core.OwnerEdge}
		var layers []*hop
		most, calls := 1, 1
		for i := range 1 + r.IntN(4) {
			p := thrice(owners[r.IntN(2)])
			p.MaxRetries = r.IntN(5)
			if i == 0 {
				p.MaxRetries = max(p.MaxRetries, 1)
				most += p.MaxRetries
			}
			h := newHop(t, p)
			if i > 0 && r.IntN(4) == 0 {
				h.fan = 1 + r.IntN(3)
			}
			calls *= h.fan
			h.fate = func() fate { return fate(r.IntN(int(fateCount))) }
			layers = append(layers, h)
		}
		leaf := chain(t, layers...)
		for range 4 {
			leaf.leaf = 0
			layers[0].ask(nil)
			if leaf.leaf > most*calls {
				t.Fatalf("seed %d: %d attempts at the leaf; the first call may make %d and calls the leaf %d times when all is "+
					"well", seed, leaf.leaf, most, calls)
			}
		}
	}
}

func TestACalleeThatHangsIsTriedAgainByItsCaller(t *testing.T) {
	a, b := newHop(t, thrice("")), newHop(t, thrice(""))
	leaf := chain(t, a, b)
	a.ask(nil) // they get to know each other
	if !a.guard.State().Speaks || b.guard.State().Speaks {
		t.Errorf("speaks: %v, %v; want the middle, not the leaf", a.guard.State().Speaks, b.guard.State().Speaks)
	}
	leaf.leaf = 0
	arrived := 0
	a.fate = func() fate { arrived++; return lost }
	if a.ask(nil); arrived < 2 || leaf.leaf > 3 {
		t.Errorf("%d attempts at a callee that does not answer, %d at the leaf; want at least 2 and at most 3",
			arrived, leaf.leaf)
	}
}

func TestOneAnswerIsSharedByAllCallsOfARequest(t *testing.T) {
	tree := core.NewCallTree(core.Allowance{Left: 2, Owner: "edge"})
	p := thrice("")
	p.MaxRetries, p.Backoff = 5, retry.NoBackoff
	g, err := abate.New("leaf", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	var attempts sync.Map
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			n := 0
			_, err := abate.Do(core.WithCallTree(context.Background(), tree), g, func(context.Context) (int, error) {
				n++
				return 0, errDown
			})
			if !errors.Is(err, abate.ErrTreeExhausted) || !errors.Is(err, errDown) {
				t.Errorf("error %v, want ErrTreeExhausted and its cause", err)
			}
			attempts.Store(i, n)
		})
	}
	all.Wait()
	sum := 0
	attempts.Range(func(_, n any) bool { sum += n.(int); return true })
	if sum != 52 {
		t.Errorf("%d attempts of 50 calls that share 2 extra ones, want 52", sum)
	}
	if got := tree.Report(); got.Made != 2 {
		t.Errorf("report %+v, want 2 made", got)
	}
}

func TestAHedgeTakesFromTheTree(t *testing.T) {
	p := abate.Policy{Retry: abate.Retry{MaxRetries: 1}, RetryBudget: budget.Config{Disabled: true}}
	p.Hedge.Delay, p.Hedge.MaxHedges = time.Millisecond, 2
	g, err := abate.New("leaf", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	for left := range 3 {
		tree := core.NewCallTree(core.Allowance{Left: left})
		var c core.Call
		c.Under(tree)
		g.Begin(&c, 0, core.NoDeadline)
		sent := 0
		for range 2 {
			if _, _, ok := c.Hedge(time.Second); ok {
				sent++
			}
		}
		if a, _ := tree.Allowance(); sent != left || a.Left != 0 || tree.Report().Made != left {
			t.Errorf("with %d left: %d hedges, %+v, %+v", left, sent, a, tree.Report())
		}
		c.Abort(time.Second)
	}
}

func TestALayerThatOnlyHedgesKeepsAnAttemptForThat(t *testing.T) {
	var p abate.Policy
	p.Hedge.Delay, p.Hedge.MaxHedges = time.Millisecond, 1
	g, err := abate.New("leaf", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []int{0, 2} { // before and after the callee has said something
		var c core.Call
		c.Under(core.NewCallTree(core.Allowance{Left: 3}))
		g.Begin(&c, 0, core.NoDeadline)
		a, _ := c.Delegate(0)
		if _, _, ok := c.Hedge(time.Second); !ok || a.Left != told {
			t.Errorf("the callee is told %d, want %d; hedged: %v", a.Left, told, ok)
		}
		c.AttemptDone(time.Second, 0, abate.Outcome{Below: core.Below{Said: true}})
	}
}

// What makes an answer final: see conclude.
func TestOnlyWhatWasTriedOrRefusedIsFinal(t *testing.T) {
	broke := errors.New("broke")
	fails := func(context.Context) (int, error) { return 0, broke }
	tests := []struct {
		name   string
		policy abate.Policy
		left   int
		fn     func(context.Context) (int, error)
		final  bool
	}{
		{"attempts exhausted", thrice(""), 9, fails, true},
		{"nothing left from the start", thrice(""), 0, fails, false},
		{"nothing left any more", thrice(""), 1, fails, false},
		{"a policy that repeats nothing", abate.Policy{}, 9, fails, false},
		{"an answer that is nobody's failure", thrice(""), 9, func(context.Context) (int, error) {
			return 0, abate.Ignore(broke)
		}, false},
		{"success", thrice(""), 9, func(context.Context) (int, error) { return 0, nil }, false},
		{"budget exhausted", abate.Policy{Retry: abate.Retry{MaxRetries: 2}, RetryBudget: budget.Config{
			Kind: budget.Tokens, MaxTokens: 1, CostPerRetry: 100,
		}}, 9, fails, true},
	}
	for _, test := range tests {
		p := test.policy
		p.Backoff = retry.NoBackoff
		g, err := abate.New("leaf", alone(p))
		if err != nil {
			t.Fatal(test.name, err)
		}
		tree := core.NewCallTree(core.Allowance{Left: test.left})
		abate.Do(core.WithCallTree(context.Background(), tree), g, test.fn)
		if got := tree.Report().Final; got != test.final {
			t.Errorf("%s: final %v, want %v", test.name, got, test.final)
		}
	}
}

func TestAFinalAnswerEndsTheCallAndGoesUp(t *testing.T) {
	g, err := abate.New("middle", alone(thrice("")))
	if err != nil {
		t.Fatal(err)
	}
	tree := core.NewOpenCallTree()
	var c core.Call
	c.Under(tree)
	g.Begin(&c, 0, core.NoDeadline)
	step := c.AttemptDone(0, 0, abate.Outcome{
		Class: abate.Failure, Err: errDown, Below: core.Below{Said: true, Made: 2, Final: true},
	})
	if step.Action != core.Finish || step.Err != errDown {
		t.Errorf("step %+v, want the end with the callee's error", step)
	}
	if got, want := tree.Report(), (core.Below{Said: true, Made: 2, Final: true}); got != want {
		t.Errorf("report %+v, want %+v", got, want)
	}
}

func TestWhatARootTellsItsCallee(t *testing.T) {
	tests := []struct {
		name   string
		policy abate.Policy
		tree   *core.CallTree
		speaks bool
		want   core.Allowance
		tell   bool
	}{
		{"a root that repeats nothing", abate.Policy{}, nil, true, core.Allowance{}, false},
		{"a stranger", thrice(""), nil, false, core.Allowance{Owner: "s"}, true},
		{"one who speaks", thrice(""), nil, true, core.Allowance{Left: 1, Owner: "s"}, true},
		{"edge", thrice(core.OwnerEdge), nil, true, core.Allowance{Owner: "s"}, true},
		{"none", thrice(core.OwnerNone), nil, true, core.Allowance{}, false},
		{"under a tree", thrice(""), core.NewCallTree(core.Allowance{Left: 1, Owner: "edge"}), true,
			core.Allowance{Owner: "edge"}, true},
		{"under a tree with more than its own policy allows", thrice(""),
			core.NewCallTree(core.Allowance{Left: 5, Owner: "edge"}), true, core.Allowance{Left: 1, Owner: "edge"}, true},
		{"one that repeats nothing, under a tree", abate.Policy{}, core.NewCallTree(core.Allowance{Left: 5, Owner: "edge"}),
			true, core.Allowance{Left: 5, Owner: "edge"}, true},
		{"under an open tree", thrice(""), core.NewOpenCallTree(), true, core.Allowance{Left: 1, Owner: "s"}, true},
	}
	for _, test := range tests {
		g, err := abate.New("s", alone(test.policy))
		if err != nil {
			t.Fatal(err)
		}
		if test.speaks {
			var first core.Call
			g.Begin(&first, 0, core.NoDeadline)
			first.AttemptDone(0, 0, abate.Outcome{Below: core.Below{Said: true}})
		}
		var c core.Call
		c.Under(test.tree)
		g.Begin(&c, 0, core.NoDeadline)
		if got, tell := c.Delegate(0); got != test.want || tell != test.tell {
			t.Errorf("%s: %+v, %v, want %+v, %v", test.name, got, tell, test.want, test.tell)
		}
	}
}

// Who repeats a call from above gave its callee an allowance the first time. Outside of a limited tree it gets nothing
// more.
func TestARepeatFromAboveIsGivenNoSecondAllowance(t *testing.T) {
	for name, test := range map[string]struct {
		tree   *core.CallTree
		repeat bool
		left   int
	}{
		"a call of its own":            {nil, false, 1},
		"a repeat":                     {nil, true, 0},
		"a repeat under an open tree":  {core.NewOpenCallTree(), true, 0},
		"a repeat under a limited one": {core.NewCallTree(core.Allowance{Left: 5}), true, 1},
	} {
		g := guard(t, alone(abate.Policy{Retry: abate.Retry{MaxRetries: 2, Backoff: retry.NoBackoff}}))
		var first, c core.Call
		g.Begin(&first, 0, core.NoDeadline)
		first.AttemptDone(0, 0, abate.Outcome{Below: core.Below{Said: true}})
		c.Under(test.tree)
		if test.repeat {
			c.Repeated()
		}
		if step := g.Begin(&c, 0, core.NoDeadline); step.Action != core.Attempt {
			t.Fatalf("%s: %+v", name, step)
		}
		if a, tell := c.Delegate(0); !tell || a.Left != test.left {
			t.Errorf("%s: told %+v, %v; want %d left", name, a, tell, test.left)
		}
	}
}

func TestAForgedAllowanceRaisesNothing(t *testing.T) {
	g, err := abate.New("s", alone(abate.Policy{Retry: abate.Retry{MaxRetries: 2, Backoff: retry.NoBackoff}}))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	abate.Do(core.WithCallTree(context.Background(), core.NewCallTree(core.Allowance{Left: 1 << 40})), g,
		func(context.Context) (int, error) {
			n++
			return 0, errDown
		})
	if n != 3 {
		t.Errorf("%d attempts, want the policy's 3", n)
	}
	tree := core.NewCallTree(core.Allowance{Left: -7})
	if a, _ := tree.Allowance(); a.Left != 0 {
		t.Errorf("a negative allowance leaves %d", a.Left)
	}
	tree = core.NewCallTree(core.Allowance{Left: 3})
	tree.Lower(core.Allowance{Left: 8})
	tree.Lower(core.Allowance{Left: 2})
	if a, _ := tree.Allowance(); a.Left != 2 {
		t.Errorf("lowered to 8, then 2: %d left", a.Left)
	}
}

func TestAForgedAllowanceMakesNoMoreAttemptsFurtherDown(t *testing.T) {
	attempts := func(a *core.Allowance) int {
		first, second := newHop(t, thrice("")), newHop(t, thrice(""))
		second.fan = 20
		leaf := chain(t, first, second)
		first.ask(nil) // they get to know each other
		leaf.leaf = 0
		first.ask(a)
		return leaf.leaf
	}
	with, without := attempts(&core.Allowance{Left: core.MaxAllowance}), attempts(nil)
	if with > without {
		t.Errorf("%d attempts at the leaf with a forged allowance, %d without", with, without)
	}
}

func TestGuardsOfOneServerShareABudget(t *testing.T) {
	shared := budget.New(budget.Config{Kind: budget.Ratio, Ratio: 0.1, Reserve: 3})
	extra := 0
	for i := range 4 {
		p := abate.Policy{Retry: abate.Retry{MaxRetries: 5, Backoff: retry.NoBackoff}, Budget: shared}
		g, err := abate.New(fmt.Sprint("method-", i), alone(p))
		if err != nil {
			t.Fatal(err)
		}
		abate.Do(context.Background(), g, func(context.Context) (int, error) { extra++; return 0, errDown })
		extra--
	}
	if extra != 3 {
		t.Errorf("%d extra attempts of 4 guards that share 3", extra)
	}
}

func TestACalleeThatTookMoreThanItWasToldIsCharged(t *testing.T) {
	g, err := abate.New("s", alone(thrice("")))
	if err != nil {
		t.Fatal(err)
	}
	tree := core.NewCallTree(core.Allowance{Left: 5})
	var c core.Call
	c.Under(tree)
	g.Begin(&c, 0, core.NoDeadline)
	c.Delegate(0)
	c.AttemptDone(0, 0, abate.Outcome{Below: core.Below{Said: true, Made: 2}})
	if a, _ := tree.Allowance(); a.Left != 3 || tree.Report().Made != 2 {
		t.Errorf("%d left and %d made, want 3 and 2", a.Left, tree.Report().Made)
	}
}

func TestACalleeThatNoLongerSpeaksIsToldNothing(t *testing.T) {
	g, err := abate.New("s", alone(thrice("")))
	if err != nil {
		t.Fatal(err)
	}
	told := func(below core.Below) int {
		var c core.Call
		g.Begin(&c, 0, core.NoDeadline)
		a, _ := c.Delegate(0)
		c.AttemptDone(0, 0, abate.Outcome{Below: below})
		return a.Left
	}
	said := core.Below{Said: true}
	for i, want := range []int{0, 1, 1, 0} { // an old version of the callee is rolled out before the third request
		below := said
		if i >= 2 {
			below = core.Below{}
		}
		if got := told(below); got != want {
			t.Errorf("request %d: told %d, want %d", i, got, want)
		}
	}
}

func TestACalleeThatHasNeverSaidAWordIsToldAllTheSame(t *testing.T) {
	// The first and the third layer run Abate; the one between them, which does not, passes the header on.
	a, b, c := newHop(t, thrice("")), newHop(t, abate.Policy{}), newHop(t, thrice(""))
	b.forwards = true
	leaf := chain(t, a, b, c)
	for range 50 { // all is well, and nobody hears a word
		leaf.up = true
		a.ask(nil)
	}
	leaf.up, leaf.leaf = false, 0
	if a.ask(nil); leaf.leaf != 3 {
		t.Errorf("%d attempts at the leaf, want 3", leaf.leaf)
	}
}

func TestACallThatOutlivesTheAnswerDoesNotOpenTheTreeAgain(t *testing.T) {
	g, err := abate.New("s", alone(thrice("")))
	if err != nil {
		t.Fatal(err)
	}
	said := abate.Outcome{Below: core.Below{Said: true}}
	var before, late core.Call
	g.Begin(&before, 0, core.NoDeadline)
	before.AttemptDone(0, 0, said)
	tree := core.NewCallTree(core.Allowance{Left: 3})
	late.Under(tree)
	g.Begin(&late, 0, core.NoDeadline)
	late.Delegate(0)
	tree.Close() // the service has answered, and what was handed out counts as made
	late.AttemptDone(0, 0, said)
	if a, limited := tree.Allowance(); a.Left != 0 || !limited {
		t.Errorf("%d left of a closed tree, want 0", a.Left)
	}
	attempts := 0
	abate.Do(core.WithCallTree(context.Background(), tree), g, func(context.Context) (int, error) {
		attempts++
		return 0, errDown
	})
	if again := tree.Close(); attempts != 1 || again != 0 {
		t.Errorf("%d attempts after the answer, want 1; closed again, %d are left", attempts, again)
	}
}

func TestARetryThatIsNotSentIsGivenBack(t *testing.T) {
	g, err := abate.New("s", alone(abate.Policy{Retry: abate.Retry{MaxRetries: 2, InitialDelay: time.Second}}))
	if err != nil {
		t.Fatal(err)
	}
	tree := core.NewCallTree(core.Allowance{Left: 3})
	var c core.Call
	c.Under(tree)
	g.Begin(&c, 0, core.NoDeadline)
	if step := c.AttemptDone(0, 0, abate.Outcome{Class: abate.Failure, Err: errDown}); step.Action != core.Sleep {
		t.Fatalf("%+v, want a wait", step)
	}
	if a, _ := tree.Allowance(); a.Left != 2 {
		t.Errorf("%d left while a retry waits, want 2: it is as good as sent", a.Left)
	}
	c.Cancel(time.Millisecond, context.Canceled)
	if a, _ := tree.Allowance(); a.Left != 3 || tree.Report().Made != 0 {
		t.Errorf("%d left and %d made after a wait that was given up, want 3 and 0", a.Left, tree.Report().Made)
	}
}
