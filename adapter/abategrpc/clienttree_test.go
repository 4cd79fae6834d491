package abategrpc_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/shed"
)

// speaking answers as a server does that knows what an allowance is.
func speaking(made string, then charges) charges {
	return func(n int, ctx context.Context, in *text) (*text, error) {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("abate-retries-made", made))
		return then(n, ctx, in)
	}
}

func TestTheAllowanceIsToldAndWhatWasMadeIsRead(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), speaking("0", failsUntil(2)), nil)
	for range 2 {
		if _, err := b.call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The first call does not know yet that the server speaks. Its retry, and the second call, do; one is kept back here.
	want := []string{`0;owner="payments"`, `1;owner="payments"`, `2;owner="payments"`}
	if said := b.said("abate-retry-allowance"); !slices.Equal(said, want) {
		t.Errorf("the server was told %q", said)
	}
}

func TestATreeIsObeyedAndReported(t *testing.T) {
	for _, c := range []struct {
		left  int
		made  string
		calls int64
		sum   int
		final bool
	}{
		{0, "0", 1, 0, false},
		{1, "0", 2, 1, false},
		{2, "0", 3, 2, false},
		{9, "0", 4, 3, true}, // the policy's own limit
		{9, "3", 1, 3, true}, // made behind
		{9, "0;final", 1, 0, true},
	} {
		b := stand(t, abategrpc.NewClient(guard(t, eager())), speaking(c.made, fails(codes.Unavailable)), nil)
		tree := core.NewCallTree(core.Allowance{Left: c.left, Owner: "edge"})
		_, err := b.call(core.WithCallTree(t.Context(), tree))
		got := tree.Report()
		if status.Code(err) != codes.Unavailable || b.calls.Load() != c.calls || got.Made != c.sum || got.Final != c.final {
			t.Errorf("%d left, %s made: %d calls, report %+v, error %v", c.left, c.made, b.calls.Load(), got, err)
		}
		for _, said := range b.said("abate-retry-allowance") {
			if !strings.HasSuffix(said, `;owner="edge"`) {
				t.Errorf("the server was told %q", said)
			}
		}
	}
}

func TestCallsOfSeveralTreesDoNotMixUp(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), speaking("0", failsUntil(1)), nil)
	var want []string
	for i := range 20 {
		owner := "edge-" + string('a'+rune(i%3))
		if _, err := b.call(core.WithCallTree(t.Context(), core.NewCallTree(core.Allowance{Left: 5, Owner: owner}))); err !=
			nil {
			t.Fatal(err)
		}
		want = append(want, strconv.Itoa(min(i*2, 2))+`;owner="`+owner+`"`)
	}
	if said := b.said("abate-retry-allowance"); !slices.Equal(said, want) {
		t.Errorf("the server was told %q", said)
	}
}

func TestPushbackIsPassedUp(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), withTrailer("grpc-retry-pushback-ms", "-1"), nil)
	tree := core.NewOpenCallTree()
	if _, err := b.call(core.WithCallTree(t.Context(), tree)); err == nil || !tree.Report().Final {
		t.Errorf("error %v, report %+v", err, tree.Report())
	}
}

func TestStreamsBelongToATreeToo(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), speaking("0", failsUntil(1)),
		func(n int, ss grpc.ServerStream) error {
			ss.SetTrailer(metadata.Pairs("abate-retries-made", "0"))
			if n < 4 {
				return errNo
			}
			return ss.SendMsg(wrapperspb.String("yes"))
		})
	if _, err := b.call(t.Context()); err != nil { // from now on the server is known to speak
		t.Fatal(err)
	}
	tree := core.NewCallTree(core.Allowance{Left: 5, Owner: "edge"})
	ss := b.stream(t, core.WithCallTree(t.Context(), tree), "Watch")
	send(t, ss, "a")
	_, err := collect(ss)
	want := []string{`0;owner="payments"`, `2;owner="edge"`, `1;owner="edge"`, `0;owner="edge"`}
	if said := b.said("abate-retry-allowance"); err != nil || !slices.Equal(said, want) {
		t.Errorf("error %v, and the server was told %q", err, said)
	}
	// Two retries here, and nothing that the server could still make when the answer began.
	if r := tree.Report(); r.Made != 2 {
		t.Errorf("report %+v", r)
	}
	if a, _ := tree.Allowance(); a.Left != 3 {
		t.Errorf("%d are left", a.Left)
	}
}

// The trailer of a stream comes too late for the guard: that nothing has been said by its first message must not be
// taken for silence.
func TestStreamsDoNotMakeTheirServerSeemDeaf(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), speaking("0", failsUntil(1)),
		func(_ int, ss grpc.ServerStream) error {
			ss.SetTrailer(metadata.Pairs("abate-retries-made", "0"))
			return ss.SendMsg(wrapperspb.String("yes"))
		})
	watch := func(n int) {
		for range n {
			ss := b.stream(t, t.Context(), "Watch")
			send(t, ss, "a")
			if _, err := collect(ss); err != nil {
				t.Fatal(err)
			}
		}
	}
	watch(30)
	for i, want := range []string{`0;owner="payments"`, `2;owner="payments"`} { // after the first it is known to speak
		if _, err := b.call(t.Context()); err != nil {
			t.Fatal(err)
		}
		if said := b.said("abate-retry-allowance"); said[len(said)-1] != want {
			t.Errorf("call %d said %q", i+1, said)
		}
		watch(1 + 29*i)
	}
	if said := b.said("abate-retry-allowance"); slices.Contains(said, "") || said[len(said)-1] != `2;owner="payments"` {
		t.Errorf("the server was told %q", said)
	}
}

func TestAServerMayShowInTheHeaderThatItSpeaks(t *testing.T) {
	b := stand(t, abategrpc.NewClient(guard(t, eager())), nil, func(_ int, ss grpc.ServerStream) error {
		_ = ss.SetHeader(metadata.Pairs("abate-retries-made", "0"))
		return ss.SendMsg(wrapperspb.String("yes"))
	})
	for range 2 {
		ss := b.stream(t, t.Context(), "Watch")
		send(t, ss, "a")
		if _, err := collect(ss); err != nil {
			t.Fatal(err)
		}
	}
	if said := b.said("abate-retry-allowance"); !slices.Equal(said, []string{`0;owner="payments"`, `2;owner="payments"`}) {
		t.Errorf("the server was told %q", said)
	}
}

// A chain of three services in one process, each of which would try four times.
func TestAChainMakesNoMoreRetriesThanItsFirstCallMay(t *testing.T) {
	leaf := stand(t, abategrpc.NewClient(guard(t, eager())), fails(codes.Unavailable), nil)
	through := func(b *backend) charges {
		return func(_ int, ctx context.Context, _ *text) (*text, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			tree := core.NewOpenCallTree()
			if a, ok := hops.LeastAllowance(md["abate-retry-allowance"]); ok {
				tree = core.NewCallTree(a)
			}
			_, err := b.call(core.WithCallTree(ctx, tree))
			_ = grpc.SetTrailer(ctx, metadata.Pairs("abate-retries-made", string(hops.AppendMade(nil, tree.Report()))))
			return nil, err
		}
	}
	middle := stand(t, abategrpc.NewClient(guard(t, eager())), through(leaf), nil)
	edge := stand(t, abategrpc.NewClient(guard(t, eager())), through(middle), nil)
	for i := range 5 {
		before := leaf.calls.Load()
		if _, err := edge.call(t.Context()); status.Code(err) != codes.Unavailable {
			t.Fatalf("error %v", err)
		}
		if n := leaf.calls.Load() - before; n > 4 {
			t.Errorf("request %d: the leaf was called %d times", i, n)
		}
	}
}

func TestMetadataOfTheHopBeforeDoesNotPass(t *testing.T) {
	none := abate.Policy{}
	for _, c := range []struct {
		name             string
		policy           abate.Policy
		tree             bool
		omit             bool
		allowance, tries string
	}{
		{"it repeats", eager(), false, false, `0;owner="payments"`, ""},
		{"it repeats, omitting", eager(), false, true, "", "7"},
		{"nobody reads it", none, false, false, "5;x", ""},
		{"a tree knows it", none, true, false, `2;owner="edge"`, ""},
		{"a tree knows it, omitting", none, true, true, "", "7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := abategrpc.NewClient(guard(t, c.policy))
			client.OmitHeaders = c.omit
			b := stand(t, client, speaking("0", failsUntil(1)), nil)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "abate-retry-allowance", "5;x", "grpc-previous-rpc-attempts",
				"7", "mine", "kept")
			ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("grpc-previous-rpc-attempts", "7")) // it is passed on
			if c.tree {
				if _, err := b.call(t.Context()); err != nil { // so that it is known to speak
					t.Fatal(err)
				}
				ctx = core.WithCallTree(ctx, core.NewCallTree(core.Allowance{Left: 2, Owner: "edge"}))
			}
			if _, err := b.call(ctx); err != nil {
				t.Fatal(err)
			}
			last := func(name string) string { all := b.said(name); return all[len(all)-1] }
			allowance := c.allowance
			if c.tree && !c.omit { // told 0 until it has spoken to an allowance
				allowance = `0;owner="edge"`
			}
			if got := last("abate-retry-allowance"); got != allowance && got != c.allowance {
				t.Errorf("the allowance is %q, not %q", got, c.allowance)
			}
			if got := last("grpc-previous-rpc-attempts"); got != c.tries || last("mine") != "kept" {
				t.Errorf("previous attempts %q, other metadata %q", got, last("mine"))
			}
			if md, _ := metadata.FromOutgoingContext(ctx); len(md) != 3 || md.Get("abate-retry-allowance")[0] != "5;x" {
				t.Errorf("the caller's own metadata is %v", md)
			}
		})
	}
}

func TestEveryAttemptCarriesTheCallersMetadata(t *testing.T) {
	for name, p := range map[string]abate.Policy{"retries": eager(), "hedges": hasty()} {
		t.Run(name, func(t *testing.T) {
			b := stand(t, abategrpc.NewClient(guard(t, p)),
				speaking("0", func(n int, ctx context.Context, in *text) (*text, error) {
					if name == "hedges" { // slow enough for a copy
						pause := time.NewTimer(5 * time.Millisecond)
						defer pause.Stop()
						<-pause.C
					}
					return failsUntil(4)(n, ctx, in)
				}), nil)
			ctx := core.WithPriority(metadata.AppendToOutgoingContext(t.Context(), "mine", "kept", "abate-priority", "other"),
				shed.Sheddable)
			for range 4 {
				_, _ = b.call(ctx)
			}
			tries := b.said("grpc-previous-rpc-attempts")
			for i, owner := range b.said("abate-retry-allowance") {
				if name == "retries" && !strings.HasSuffix(owner, `;owner="payments"`) || strings.Count(owner, ";") > 1 {
					t.Errorf("attempt %d was told %q", i, owner)
				}
				if b.said("mine")[i] != "kept" || b.said("abate-priority")[i] != shed.Sheddable.String() || len(tries[i]) > 1 {
					t.Errorf("attempt %d said %q, %q, %q", i, b.said("mine")[i], b.said("abate-priority")[i], tries[i])
				}
			}
			if md, _ := metadata.FromOutgoingContext(ctx); len(md) != 2 || md.Get("abate-priority")[0] != "other" {
				t.Errorf("the caller's own metadata is %v", md)
			}
		})
	}
}

func TestThePriorityTravelsOn(t *testing.T) {
	client := abategrpc.NewClient(guard(t, eager()))
	b := stand(t, client, failsUntil(2), nil)
	for _, p := range []shed.Priority{shed.Sheddable, shed.CriticalPlus} {
		if _, err := b.call(core.WithPriority(t.Context(), p)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.call(t.Context()); err != nil {
		t.Fatal(err)
	}
	low, high := shed.Sheddable.String(), shed.CriticalPlus.String()
	if said := b.said("abate-priority"); !slices.Equal(said, []string{low, low, high, ""}) {
		t.Errorf("the server was told %q", said)
	}
}

// retryLog is a RetryObserver that remembers.
type retryLog struct{ told []string }

func (l *retryLog) RetryAttempt(method, status string) { l.told = append(l.told, method+" "+status) }
func (l *retryLog) BudgetExhausted(method string)      { l.told = append(l.told, method+" exhausted") }

func TestTheObserverIsToldOfRetriesByMethod(t *testing.T) {
	p := eager()
	p.RetryBudget.Kind, p.RetryBudget.MaxTokens = "tokens", 3
	log := new(retryLog)
	client := abategrpc.NewClient(guard(t, p))
	client.Observer = log
	b := stand(t, client, failsUntil(3), func(n int, ss grpc.ServerStream) error { return errNo })
	if _, err := b.call(t.Context()); err != nil {
		t.Fatal(err)
	}
	ss := b.stream(t, t.Context(), "Watch")
	send(t, ss, "a")
	_, _ = collect(ss)
	want := []string{chargeMethod + " UNAVAILABLE", chargeMethod + " OK", "/shop.Payment/Watch UNAVAILABLE",
		"/shop.Payment/Watch exhausted"}
	if !slices.Equal(log.told, want) {
		t.Errorf("told %q", log.told)
	}
}

func TestManyMethodsAreNotRemembered(t *testing.T) {
	client := abategrpc.NewClient(guard(t, eager()))
	pass := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for i := range 5000 {
		if err := client.Unary(t.Context(), "/made.Up/M"+strconv.Itoa(i), nil, nil, nil, pass); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhoIsToldNothingHasUsedNothing(t *testing.T) {
	client := abategrpc.NewClient(guard(t, eager()))
	client.OmitHeaders = true
	b := stand(t, client, speaking("9", failsUntil(1)), func(_ int, ss grpc.ServerStream) error {
		ss.SetTrailer(metadata.Pairs("abate-retries-made", "9"))
		return ss.SendMsg(wrapperspb.String("yes"))
	})
	tree := core.NewCallTree(core.Allowance{Left: 3})
	ctx := core.WithCallTree(t.Context(), tree)
	if _, err := b.call(ctx); err != nil {
		t.Fatal(err)
	}
	ss := b.stream(t, ctx, "Watch")
	send(t, ss, "a")
	if _, err := collect(ss); err != nil {
		t.Fatal(err)
	}
	if a, _ := tree.Allowance(); a.Left != 3 || tree.Report().Made != 0 {
		t.Errorf("%d left, report %+v", a.Left, tree.Report())
	}
}
