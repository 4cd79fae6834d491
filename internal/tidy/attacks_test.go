package tidy

import (
	"maps"
	"strings"
	"testing"
)

// world is what attacks reach: a driver of the root with a method that reads the clock, and a package that measures.
var world = source{
	"core/clock.go": "package core\n\nimport \"time\"\n\nvar origin = time.Now()\n\n" +
		"func clock() time.Duration { return time.Since(origin) }\n",
	"core/do.go": "package core\n\nimport \"time\"\n\ntype driven struct{}\n\n" +
		"func (driven) started() bool { return time.Now().IsZero() }\n",
	"internal/clock/clock.go": "package clock\n\nimport \"time\"\n\nfunc Now() time.Duration { return " +
		"time.Since(time.Time{}) }\n",
	"internal/cpu/cpu.go": "package cpu\n\nimport \"os\"\n\nfunc Share() int { return os.Getpid() }\n",
}

// with is the world and one file more. The body of a file in a folder of the root follows its package clause.
func with(files ...string) source {
	all := maps.Clone(world)
	for i := 0; i < len(files); i += 2 {
		all[files[i]] = files[i+1]
	}
	return all
}

// policy is a world with a policy that has to be pure.
func policy(body string) source { return with("policy/retry/a.go", "package retry\n\n"+body+"\n") }

func TestPurityRuleFails(t *testing.T) {
	const clockIsBanned = ": error: time.Now is banned in a decision, use the argument now ("
	const a = "policy/retry/a.go"
	machine := func(body string) source { return with("core/call.go", "package core\n\n"+body+"\n") }
	provoke(t, exceptions{}.impurities, []example{
		{"nothing", "", with()},
		{"the state machine reads a clock through a method of another file", "core/call.go:3" + clockIsBanned,
			machine("func f(d driven) bool { return d.started() }")},
		{"the state machine calls a driver", "core/call.go:3: error: time.Since", machine("func f() any { return clock() }")},
		{"the state machine mentions a driver", "core/call.go:3: error: time.Since", machine("var f = clock")},
		{"the state machine reads what a driver has read", "core/call.go:3" + clockIsBanned,
			machine("func f() any { return origin }")},
		{"the state machine imports the processor's load", "core/call.go:5: error: os.Getpid is banned in a decision",
			machine("import \"github.com/abate-go/abate/internal/cpu\"\n\nfunc f() int { return cpu.Share() }")},
		{"a policy receives",
			a + ":3: error: a receive from a channel is banned in a decision, use a decision that a driver carries out (",
			policy("func f(c chan int) int { return <-c }")},
		{"a policy sends", a + ":3: error: a send on a channel", policy("func f(c chan int) { c <- 1 }")},
		{"a policy empties a channel", a + ":3: error: a receive from a channel",
			policy("func f(c chan int) { for range c {} }")},
		{"a policy waits in a select", a + ":3: error: a select without default",
			policy("func f(c, d chan int) { select { case <-c: case d <- 1: } }")},
		{"a policy waits inside a case", a + ":3: error: a receive",
			policy("func f(c, d chan int) { select { case d <- <-c: default: } }")},
		{"a policy empties a channel of any type", a + ":3: error: a receive",
			policy("func f[C ~chan int](c C) { for range c {} }")},
		{"a policy for another system", a + ":1: error: a decision has to be the same everywhere",
			with("policy/retry/b.go", "package retry\n", a,
				"//go:build plan9\n\npackage retry\n\nfunc f(c chan int) { <-c }\n")},
		{"a policy looks into a channel", "",
			policy("func f(c, d chan int) { select { case x, ok := (<-c): _, _ = x, ok; case d <- 1: default: } }")},
		{"a policy waits for others", a + ":5: error: sync.WaitGroup.Wait",
			policy("import \"sync\"\n\nfunc f(w *sync.WaitGroup) { w.Wait() }")},
		{"a policy waits by a name for it", a + ":5: error: sync.Cond.Wait",
			policy("import \"sync\"\n\nfunc f(c *sync.Cond) { w := c.Wait; w() }")},
		{"a policy locks", "",
			policy("import \"sync\"\n\nvar mu sync.RWMutex\n\nfunc f() { mu.RLock(); defer mu.RUnlock() }")},
		{"a policy starts a goroutine", a + ":3: error: a go statement", policy("func f() { go f() }")},
		{"a policy starts one by what it embeds", a + ":7: error: sync.WaitGroup.Go",
			policy("import \"sync\"\n\ntype group struct{ sync.WaitGroup }\n\n" +
				"func f(g *group) { start := g.Go; start(func() {}) }")},
		{"a policy reads a clock while it is made", a + ":5" + clockIsBanned,
			policy("import \"time\"\n\nvar began = time.Now()")},
		{"a policy reads a clock in init", a + ":5" + clockIsBanned,
			policy("import \"time\"\n\nfunc init() { _ = time.Now() }")},
		{"a policy dot-imports", a + ":5" + clockIsBanned, policy("import . \"time\"\n\nfunc f() { _ = Now() }")},
		{"a policy has a body that is not Go", a + ":3: error: a body that is not Go", policy("func nanotime() int64")},
		{"a policy calls by reflection", a + ":5: error: reflect.Value.Call ",
			policy("import \"reflect\"\n\nfunc f(v reflect.Value) { v.Call(nil) }")},
		{"a policy reads from whatever it gets", a + ":5: error: io.Reader.Read",
			policy("import \"io\"\n\nfunc f(r io.Reader) { r.Read(nil) }")},
		{"a policy prints", a + ":5: error: os.Stdout", policy("import \"os\"\n\nvar out = os.Stdout")},
		{"a policy draws from what nobody has seeded", a + ":5: error: math/rand/v2.IntN",
			policy("import \"math/rand/v2\"\n\nfunc f() int { return rand.IntN(3) }")},
		{"a policy draws from what somebody has seeded", "",
			policy("import \"math/rand/v2\"\n\nfunc f(r *rand.Rand) int { return r.IntN(3) }")},
		{"a policy calls a function that does", a + ":5: error: os.Getpid",
			policy("import \"github.com/abate-go/abate/internal/cpu\"\n\nfunc f() { defer func() { _ = cpu.Share() }() }")},
		{"two decisions, of which one is wrong", a + ":5" + clockIsBanned,
			policy("import \"time\"\n\nfunc f() { _ = time.Now() }\n\nfunc g() { f() }")},
		{"the simulator's engine waits", "sim/engine/a.go:3: error: a receive", with("sim/engine/a.go",
			"package engine\n\nfunc f(c chan int) { <-c }\n")},
		{"the simulator waits", "", with("sim/a.go", "package sim\n\nfunc f(c chan int) { <-c }\n")},
		{"a suite for tests waits", "", with("policy/retry/storetest/a.go",
			"package storetest\n\nfunc f(c chan int) { <-c }\n")},
	})
}

func TestPurityRuleSeesThroughInterfacesAndFunctionValues(t *testing.T) {
	const found = "policy/retry/a.go:"
	adapter := func(body, policy string) source {
		return with("policy/retry/a.go", "package retry\n\n"+policy+"\n", "adapter/x/x.go",
			"package x\n\nimport (\n\t\"time\"\n\n\t\"github.com/abate-go/abate/policy/retry\"\n)\n\nvar _ retry.T\n\n"+
				"func now() time.Time { return time.Now() }\n\n"+body+"\n")
	}
	const field = "import \"time\"\n\ntype T struct{ Now func() time.Time }\n\nfunc (t *T) f() { _ = t.Now() }"
	const list = "import \"time\"\n\ntype T struct{ All []func() time.Time }\n\n" +
		"func (t *T) f() { for _, now := range t.All { _ = now() } }"
	const face = "import \"time\"\n\ntype T interface{ Now() time.Time }\n\nfunc f(t T) { _ = t.Now() }"
	const kind = "import \"time\"\n\ntype F func() time.Time\n\ntype T interface{ Now() time.Time }\n\n" +
		"func (f F) Now() time.Time { return f() }\n\nfunc g(t T) { _ = t.Now() }"
	const param = "import \"time\"\n\ntype T struct{}\n\nfunc Make(now func() time.Time) *T { _ = now(); return nil }"
	provoke(t, exceptions{}.impurities, []example{
		{"a field that a literal sets", found + "7:", adapter("var _ = retry.T{Now: now}", field)},
		{"a field that a literal without names sets", found + "7:", adapter("var _ = []*retry.T{{now}}", field)},
		{"a field that an assignment sets", found + "7:", adapter("func g(t *retry.T) { t.Now = now }", field)},
		{"a field that gets somebody else's function", found + "7: error: time.Now",
			adapter("func g(t *retry.T) { t.Now = time.Now }", field)},
		{"a field that gets a closure", found + "7:",
			adapter("func g(t *retry.T) { t.Now = func() time.Time { return now() } }", field)},
		{"a field that gets what a function returns", found + "7:",
			adapter("func make() (n int, f func() time.Time) { f = now; return }\n\nfunc g(t *retry.T) { _, t.Now = make() }",
				field)},
		{"a field that gets what was in an interface", found + "7:",
			adapter("var kept any = now\n\nfunc g(t *retry.T) { t.Now = kept.(func() time.Time) }", field)},
		{"a field that gets what a type switch finds", found + "7:",
			adapter("var kept any = now\n\nfunc g(t *retry.T) { switch f := kept.(type) { case func() time.Time: t.Now = f } }",
				field)},
		{"a field that gets what was in a channel", found + "7:",
			adapter("func g(t *retry.T, c chan func() time.Time) { c <- now; t.Now = <-c }", field)},
		{"a field that gets what was in an atomic", found + "7:",
			adapter("func g(t *retry.T, p *pointer) { f := now; p.Store(&f); t.Now = *p.Load() }\n\n"+
				"type pointer = atomic[func() time.Time]\n\n"+
				"type atomic[T any] struct{ v *T }\n\nfunc (a *atomic[T]) Store(v *T) { a.v = v }\n\n"+
				"func (a *atomic[T]) Load() *T { return a.v }", field)},
		{"a field that gets a method", found + "7:",
			adapter("type c struct{}\n\nfunc (c) read() time.Time { return now() }\n\nfunc g(t *retry.T) { t.Now = c{}.read }",
				field)},
		{"a field that gets another's", found + "7:",
			adapter("type other struct{ Now func() time.Time }\n\nfunc g(o other) retry.T { o.Now = now; return retry.T(o) }",
				field)},
		{"a field that gets a function which only computes", "",
			adapter("func g(t *retry.T) { t.Now = func() time.Time { return time.Time{} } }", field)},
		{"a field that nobody sets",
			found + "7: error: retry.T.f calls t.Now, and no program of ours says what that is", adapter("", field)},
		{"a list that is appended to", found + "7:", adapter("func g(t *retry.T) { t.All = append(t.All, now) }", list)},
		{"an element that is set", found + "7:", adapter("func g(t *retry.T) { t.All[0] = now }", list)},
		{"a list that is set", found + "7:",
			adapter("func g(t *retry.T) { all := []func() time.Time{now}; copy(t.All, all) }", list)},
		{"a parameter", found + "7:", adapter("var _ = retry.Make(now)", param)},
		{"a parameter, by the function's name", found + "7:", adapter("func g() { m := retry.Make; m(now) }", param)},
		{"an interface that only users implement", found + "7: error: retry.T.Now, which only users have, is banned",
			adapter("", face)},
		{"an implementation", found + "7:", adapter("type c struct{}\n\nfunc (c) Now() time.Time { return now() }", face)},
		{"an implementation by embedding", found + "7:",
			adapter("type c struct{}\n\nfunc (*c) Now() time.Time { return now() }\n\ntype d struct{ *c; n int }", face)},
		{"a generic implementation", found + "7:",
			adapter("type c[T any] struct{ t T }\n\nfunc (*c[T]) Now() time.Time { return now() }", face)},
		{"an implementation that only computes", "",
			adapter("type c struct{}\n\nfunc (c) Now() (t time.Time) { return t }", face)},
		{"a function with a method", found + "9:", adapter("var _ retry.T = retry.F(now)", kind)},
		{"a type parameter", found + "7:", adapter("type c struct{}\n\nfunc (c) Now() time.Time { return now() }",
			"import \"time\"\n\ntype T interface{ Now() time.Time }\n\nfunc f[C T](t C) { _ = t.Now() }")},
		{"somebody else's function calls it", found + "7:",
			adapter("func g(t *retry.T) { t.F = func(a, b int) int { return now().Nanosecond() } }",
				"import \"slices\"\n\ntype T struct{ F func(a, b int) int }\n\nfunc f(t T) { slices.SortFunc([]int{1}, t.F) }")},
		{"somebody else's function calls a method", found + "7:",
			adapter("type c struct{}\n\nfunc (c) String() string { return now().String() }\n\nvar _ = retry.T{S: c{}}",
				"import \"fmt\"\n\ntype T struct{ S fmt.Stringer }\n\nfunc f(t T) { _ = fmt.Sprint(t.S) }")},
		{"a function of any type", found + "7:", adapter("func g() { retry.Call(now) }",
			"import \"time\"\n\ntype T struct{}\n\nfunc Call[F ~func() time.Time](f F) { _ = f() }")},
		{"an implementation without a name", found + "7:",
			adapter("type a struct{}\n\nfunc (a) Now() time.Time { return now() }\n\ntype b struct{}\n\n"+
				"func (b) Then() {}\n\nvar _ retry.T = struct { a; b }{}",
				"import \"time\"\n\ntype T interface{ Now() time.Time; Then() }\n\nfunc f(t T) { _ = t.Now() }")},
		{"somebody else's function calls a method of a part", "policy/retry/a.go:9: error: os.Getpid",
			with("policy/retry/a.go", "package retry\n\nimport \"fmt\"\n\nimport \"github.com/abate-go/abate/internal/cpu\"\n\n"+
				"type T struct{ Parts []cpu.Part }\n\nfunc f(t T) { _ = fmt.Sprint(t) }\n",
				"internal/cpu/part.go",
				"package cpu\n\ntype Part int\n\nfunc (Part) String() string { return string(rune(Share())) }\n")},
		{"an error looks at the clock to be found out", found + "7:",
			adapter("type late struct{}\n\nfunc (late) Error() string { return \"\" }\n\n"+
				"func (late) Is(error) bool { return now().IsZero() }",
				"import \"errors\"\n\ntype T struct{}\n\nfunc f(err error) bool { return errors.Is(err, nil) }")},
		{"a pool makes it", found + "7:", adapter("func g(t *retry.T) { t.Pool.New = func() any { return now() } }",
			"import \"sync\"\n\ntype T struct{ Pool sync.Pool }\n\nfunc f(t *T) any { return t.Pool.Get() }")},
		{"a loop calls it", found + "7:", adapter("func g(t *retry.T) { t.All = func(func(int) bool) { now() } }",
			"import \"iter\"\n\ntype T struct{ All iter.Seq[int] }\n\nfunc f(t T) { for range t.All {} }")},
	})
}

func TestPurityRuleKnowsItsExceptions(t *testing.T) {
	user := "package core\n\ntype Observer interface{ Observe() }\n\ntype user struct{}\n\n" +
		"func (user) Observe() { clock() }\n"
	machine := with("core/run.go", user, "core/call.go", "package core\n\nfunc tell(o Observer) { o.Observe() }\n")
	provoke(t, exceptions{ports: map[string]string{"core.Observer": "a user's"}}.impurities, []example{
		{"a port", "", machine},
		{"a port that nobody uses",
			"internal/tidy/pure_test.go:1: error: no decision needs the port \"core.Observer\"", with()},
	})
	provoke(t, exceptions{}.impurities, []example{{"no port", "core/call.go:3: error: time.Since", machine}})
	provoke(t, exceptions{handed: map[string]string{"core.tell → core.user.Observe": "why"}}.impurities, []example{
		{"an exception", "", machine},
		{"an exception that nobody needs", "internal/tidy/pure_test.go:1: error: no decision needs the exception", with()},
	})
	door := func(body string) source {
		return with("core/guard.go",
			"package core\n\nimport (ours \"github.com/abate-go/abate/internal/clock\"; \"time\")\n\nfunc StateAt(now "+
				"time.Duration, n int) int { return n }\n\n"+body+"\n")
	}
	provoke(t, exceptions{}.impurities, []example{
		{"a door", "", door("func State() int { return StateAt(ours.Now(), 1) }")},
		{"a door to another function", "core/guard.go:7: error: time.Since",
			door("func Status() int { return StateAt(ours.Now(), 1) }")},
		{"a door that does more", "core/guard.go:7: error: time.",
			door("func State() int { return StateAt(ours.Now(), driven{}.n()) }\n\nfunc (driven) n() int { return 1 }")},
		{"a decision that uses a door", "core/guard.go:9: error: time.Since",
			door("func State() int { return StateAt(ours.Now(), 1) }\n\nfunc f() int { return State() }")},
	})
}

func TestPurityRuleShowsTheWholeWay(t *testing.T) {
	found := with("core/call.go", "package core\n\nfunc f(d driven) bool { return g(d) }\n",
		"core/race.go", "package core\n\nfunc g(d driven) bool {\n\treturn d.started()\n}\n").check(
		t, exceptions{}.impurities)
	const want = "core/call.go:3: error: time.Now is banned in a decision, use the argument now (" + whyPure + ")\n" +
		"\tcore/call.go:3: core.f → core.g\n\tcore/race.go:4: core.g → core.driven.started\n" +
		"\tcore/do.go:7: core.driven.started → time.Now"
	if len(found) != 1 || found[0].String() != want {
		t.Errorf("found %v, want %s", found, want)
	}
}

func TestPurityRuleNeedsATreeThatTypeChecks(t *testing.T) {
	found := policy("func f() int { return nothing }").check(t, exceptions{}.impurities)
	if len(found) != 1 || !strings.Contains(found[0].String(), "policy/retry does not type-check: policy/retry/a.go:3:") {
		t.Errorf("found %v", found)
	}
}

func TestLockRuleFails(t *testing.T) {
	guarded := func(body string) source {
		return with("policy/retry/a.go",
			"package retry\n\nimport \"sync\"\n\ntype T struct{ Mu sync.Mutex; N int }\n\n"+
				"func (t *T) Next() { t.Mu.Lock(); defer t.Mu.Unlock(); t.N++ }\n",
			"adapter/x/x.go",
			"package x\n\nimport (\n\t\"time\"\n\n\t\"github.com/abate-go/abate/policy/retry\"\n)\n\n"+
				"func f(t *retry.T, c chan time.Time) {\n"+body+"\n}\n\nfunc pause() { time.Sleep(1) }\n")
	}
	const x = "adapter/x/x.go:"
	provoke(t, exceptions{}.waitsUnderLock, []example{
		{"sleeps", x + "10: error: time.Sleep is banned here, use it after unlocking Mu, which decisions lock (",
			guarded("t.Mu.Lock(); defer t.Mu.Unlock(); pause()")},
		{"receives", x + "10: error: a receive from a channel", guarded("t.Mu.Lock(); <-c; t.Mu.Unlock()")},
		{"sleeps after unlocking", "", guarded("t.Mu.Lock(); t.N++; t.Mu.Unlock(); pause()")},
		{"sleeps before locking", "", guarded("pause(); t.Mu.Lock(); t.Mu.Unlock()")},
		{"reads the clock", "", guarded("t.Mu.Lock(); defer t.Mu.Unlock(); _ = time.Now()")},
		{"keeps a function for later", "", guarded("t.Mu.Lock(); defer t.Mu.Unlock(); f := pause; _ = f")},
		{"calls what it kept", x + "10: error: time.Sleep", guarded("f := pause; t.Mu.Lock(); f(); t.Mu.Unlock()")},
	})
}

func TestAbsentDecisionRuleFails(t *testing.T) {
	all := make(source)
	for _, name := range decides {
		all[strings.TrimSuffix(name, ".go")+"/a.go"] = "package p\n"
		if strings.HasSuffix(name, ".go") {
			all[name] = "package p\n"
		}
	}
	provoke(t, absent, []example{{"all there", "", all}})
	delete(all, decides[0]+"/a.go")
	all[decides[0]+"/a_test.go"] = "package p\n"
	want := "internal/tidy/pure_test.go:1: error: " + decides[0] + " is on the list"
	provoke(t, absent, []example{{"only a test is left", want, all}})
}
