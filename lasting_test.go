package abate_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/hedge"
)

// What Do returns may be read for as long as its caller likes: the attempt's time limit is for the function.
func TestTheTimeLimitOfAnAttemptDoesNotEndWhatDoReturns(t *testing.T) {
	returns := func(ctx context.Context) (context.Context, error) {
		child, cancel := context.WithCancel(ctx) // as database/sql and net/http make one
		context.AfterFunc(child, cancel)
		return child, nil
	}
	calls := map[string]func(context.Context, *abate.Guard) (context.Context, error){
		"Do": func(ctx context.Context, g *abate.Guard) (context.Context, error) { return abate.Do(ctx, g, returns) },
		"DoHedged": func(ctx context.Context, g *abate.Guard) (context.Context, error) {
			return abate.DoHedged(ctx, g, returns)
		},
	}
	for name, call := range calls {
		for what, p := range map[string]abate.Policy{
			"attemptTimeout": {AttemptTimeout: time.Second},
			"timeout":        {Timeout: time.Second},
			"hedge":          {AttemptTimeout: time.Second, Hedge: hedge.Config{Delay: 100 * ms}},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					kept, err := call(ctx, guard(t, p))
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Hour)
					runtime.GC() // who holds the context holds what it hangs on
					if kept.Err() != nil {
						t.Errorf("ended by %v", kept.Err())
					}
					cancel()
					<-kept.Done()
					if kept.Err() != context.Canceled {
						t.Error(kept.Err())
					}
				})
			})
		}
	}
}

func TestTheContextOfAnAttemptEndsWhenItsFunctionHasFailed(t *testing.T) {
	for name, p := range map[string]abate.Policy{"limited": {AttemptTimeout: time.Hour}, "free": {}} {
		if name == "free" {
			p.Timeout = time.Hour
		}
		var kept []context.Context
		p.Retry = fixed(ms, 1)
		synctest.Test(t, func(t *testing.T) {
			abate.DoErr(t.Context(), guard(t, p), func(ctx context.Context) error {
				if len(kept) == 1 && kept[0].Err() == nil {
					t.Errorf("%s: another attempt runs, and the first one's context has not ended", name)
				}
				child, cancel := context.WithCancel(ctx)
				context.AfterFunc(child, cancel)
				kept = append(kept, child)
				return errDown
			})
			synctest.Wait()
			if kept[1].Err() == nil {
				t.Errorf("%s: the call has failed, and its context has not ended", name)
			}
		})
	}
}

func TestAContextAskedForAfterItsAttemptFollowsItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		kept, _ := abate.Do(ctx, guard(t, abate.Policy{AttemptTimeout: time.Second}),
			func(ctx context.Context) (context.Context, error) {
				return ctx, nil
			})
		time.Sleep(time.Hour)
		if _, limited := kept.Deadline(); limited || kept.Err() != nil {
			t.Error("limited still", kept.Err())
		}
		done := kept.Done()
		cancel()
		<-done
		if kept.Err() != context.Canceled {
			t.Error(kept.Err())
		}
	})
}

func TestAnAttemptThatRunsIntoItsTimeLimitSeesADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("the caller's reason")
		ctx, cancel := context.WithCancelCause(t.Context())
		g := guard(t, abate.Policy{AttemptTimeout: time.Second})
		child := func(ctx context.Context) context.Context {
			c, stop := context.WithCancel(ctx)
			context.AfterFunc(c, stop)
			return c
		}
		abate.Do(ctx, g, func(ctx context.Context) (int, error) {
			c := child(ctx)
			<-c.Done()
			if c.Err() != context.DeadlineExceeded || ctx.Err() != context.DeadlineExceeded {
				t.Error(c.Err(), ctx.Err())
			}
			return 0, c.Err()
		})
		abate.Do(ctx, g, func(ctx context.Context) (int, error) {
			c := child(ctx)
			cancel(cause)
			<-c.Done()
			if c.Err() != context.Canceled || context.Cause(c) != cause {
				t.Error(c.Err(), context.Cause(c))
			}
			return 0, c.Err()
		})
	})
}

// Somebody may ask for Done at the moment in which the attempt ends: the time limit must not come back with that.
func TestAContextThatIsAskedForWhileItsAttemptEndsHasNoTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{AttemptTimeout: time.Second})
		var all []context.Context
		for range 2000 {
			begin := make(chan struct{})
			kept, _ := abate.Do(t.Context(), g, func(ctx context.Context) (context.Context, error) {
				go func() { close(begin); ctx.Done() }()
				<-begin
				return ctx, nil
			})
			all = append(all, kept)
		}
		time.Sleep(time.Hour)
		for i, kept := range all {
			if _, limited := kept.Deadline(); limited || kept.Err() != nil {
				t.Fatalf("context %d: %v, limited: %v", i, kept.Err(), limited)
			}
		}
	})
}

// listeners is a context that counts who waits for its end.
type listeners struct {
	context.Context
	n   atomic.Int32
	all sync.Map // their functions, as a context keeps them
}

func (l *listeners) AfterFunc(f func()) func() bool {
	l.n.Add(1)
	at := &f
	l.all.Store(at, f)
	return func() bool { l.all.Delete(at); l.n.Add(-1); return true }
}

func (l *listeners) Value(any) any { return nil }

// A worker's context lives as long as the program: what hangs on it must go with its last user.
func TestAReturnedContextThatNobodyHoldsLeavesItsCaller(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &listeners{Context: parent}
	g := guard(t, abate.Policy{AttemptTimeout: time.Hour})
	for range 100 {
		abate.Do(l, g, func(ctx context.Context) (int, error) { ctx.Done(); return 1, nil })
	}
	for range 1000 {
		runtime.GC()
		if l.n.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d of 100 contexts are still known to their caller's", l.n.Load())
}

// Whoever waits for the end of a returned context hears of it, also if nobody holds the context itself.
func TestTheCallersEndReachesAllWhoWaitUnderAReturnedContext(t *testing.T) {
	var kept []context.CancelFunc // never called
	child := func(ctx context.Context, cancel context.CancelFunc) context.Context {
		kept = append(kept, cancel)
		return ctx
	}
	for name, wait := range map[string]func(context.Context, func()){
		"AfterFunc": func(ctx context.Context, f func()) { context.AfterFunc(ctx, f) },
		"AfterFunc of a value": func(ctx context.Context, f func()) {
			context.AfterFunc(context.WithValue(ctx, closer{}, 1), f)
		},
		"AfterFunc of a child": func(ctx context.Context, f func()) {
			context.AfterFunc(child(context.WithTimeout(ctx, time.Hour)), f)
		},
		"channel": func(ctx context.Context, f func()) { go func() { <-ctx.Done(); f() }() },
		"channel of a child": func(ctx context.Context, f func()) {
			go func() { <-child(context.WithCancel(ctx)).Done(); f() }()
		},
	} {
		for hedges, call := range map[string]func(context.Context, *abate.Guard, func(context.Context) (int, error)) (
			int, error){
			"Do": abate.Do[int], "DoHedged": abate.DoHedged[int],
		} {
			t.Run(name+" under "+hedges, func(t *testing.T) {
				parent, cancel := context.WithCancel(context.Background())
				ended := make(chan struct{})
				call(parent, guard(t, abate.Policy{AttemptTimeout: time.Hour, Hedge: hedge.Config{Delay: time.Hour}}),
					func(ctx context.Context) (int, error) {
						wait(ctx, func() { close(ended) })
						return 1, nil
					})
				for range 10 {
					runtime.Gosched()
					runtime.GC()
				}
				select {
				case <-ended:
					t.Error("ended before its caller")
				default:
				}
				cancel()
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					t.Error("the caller's end did not come through")
				}
			})
		}
	}
}

func TestAReturnedContextWhoseChildrenHaveEndedLeavesItsCaller(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &listeners{Context: parent}
	g := guard(t, abate.Policy{AttemptTimeout: time.Hour})
	for range 100 {
		rows, err := abate.Do(l, g, func(ctx context.Context) (context.CancelFunc, error) {
			_, end := context.WithCancel(ctx)
			context.AfterFunc(ctx, func() { t.Error("not ended") })()
			return end, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		rows()
	}
	for range 1000 {
		runtime.GC()
		if l.n.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d of 100 contexts are still known to their caller's", l.n.Load())
}

type closer struct{ closed chan struct{} }

func (c *closer) Close() error { close(c.closed); return nil }

type response struct{ Body *closer }

func TestAHedgedAnswerThatComesTooLateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{Hedge: hedge.Config{Delay: 10 * ms}})
		var n atomic.Int32 // two copies count at once
		losers, shared := make([]*closer, 2), &closer{make(chan struct{})}
		for i := range losers {
			losers[i] = &closer{make(chan struct{})}
		}
		slow := func() bool { return n.Add(1)%2 == 1 }
		abate.DoHedged(t.Context(), g, func(ctx context.Context) (*closer, error) {
			if slow() {
				<-time.After(time.Second) // deaf to its context
				return losers[0], nil
			}
			return &closer{make(chan struct{})}, nil
		})
		abate.DoHedged(t.Context(), g, func(ctx context.Context) (*response, error) {
			if slow() {
				<-time.After(time.Second)
				return &response{losers[1]}, nil
			}
			return &response{&closer{make(chan struct{})}}, nil
		})
		abate.DoHedged(t.Context(), g, func(ctx context.Context) (*closer, error) {
			if slow() {
				<-time.After(time.Second)
			}
			return shared, nil
		})
		for _, c := range losers {
			<-c.closed
		}
		select {
		case <-shared.closed:
			t.Error("what the winner has returned too was closed")
		default:
		}
	})
}
