package abateredis_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/needs"
)

// normal is the timeout as it is by default.
func normal(c *abateredis.Config) { c.Timeout = 0 }

// away waits until fleets have noticed that Redis is away.
func away(t testing.TB, fleets ...*abateredis.Fleet) {
	t.Helper()
	for _, f := range fleets {
		eventually(t, "away", func() bool { return f.State().Away() })
	}
}

// back waits until fleets use Redis like before.
func back(t testing.TB, fleets ...*abateredis.Fleet) {
	t.Helper()
	for _, f := range fleets {
		eventually(t, "back", func() bool { s := f.State(); return s.Breaker.State == 0 && s.Err == nil })
	}
}

func TestAServiceStartsWithoutRedis(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	f := open(t, addr, normal)
	l := f.Limiter("api", per(1, time.Hour, 10))
	if got := drain(l, "k", 100); got != 10 {
		t.Errorf("alone: %d of 10", got)
	}
	n := 0
	eventually(t, "keys that nobody knows are decided without asking", func() bool {
		n++
		take(l, fmt.Sprint(n), 1)
		d, ok := l.TryTake(core.Now(), fmt.Sprint(n, "th"), 1)
		return ok && d.Allowed
	})
	eventually(t, "an error that says where and what", func() bool { // after one of the timeout, perhaps
		n++
		take(l, fmt.Sprint(n), 1)
		err := f.State().Err
		return err != nil && strings.Contains(err.Error(), addr) && strings.Contains(err.Error(), "is it running?")
	})
}

func TestLocalShareWhileRedisIsAway(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := start(t)
	fleets := []*abateredis.Fleet{open(t, s.Addr()), open(t, s.Addr()), open(t, s.Addr()), open(t, s.Addr())}
	ready(t, 4, fleets...)
	limit := per(40, time.Hour, 40)
	total := 0
	for range 5 { // of one key that is known, 20 are used
		for _, f := range fleets {
			if take(f.Limiter("api", limit), "known", 1).Allowed {
				total++
			}
		}
	}
	s.Crash()
	away(t, fleets...)
	for i, f := range fleets {
		l := f.Limiter("api", limit)
		if got := drain(l, "new", 100); got != 10 {
			t.Errorf("instance %d of 4 gives %d of 40 of a key it does not know", i, got)
		}
		total += drain(l, "known", 100)
	}
	if total > 44 || total < 32 { // what each last heard is a little old, and a share is a whole number
		t.Errorf("%d of 40 of a key that was known", total)
	}
	if d := take(fleets[0].Limiter("api", limit), "large", 20); d.Allowed || d.RetryAfter > 10*time.Second {
		t.Errorf("more than a share, less than the burst: %+v", d)
	}
}

func TestClosedAndOpenWhileRedisIsAway(t *testing.T) {
	f := open(t, fmt.Sprintf("127.0.0.1:%d", freePort(t)), normal)
	closed, opened := per(1, time.Hour, 10), per(1, time.Hour, 10)
	closed.WhenAway, opened.WhenAway = "closed", "open"
	for range 100 {
		if d := take(f.Limiter("closed", closed), "k", 1); d.Allowed || !d.Over || d.RetryAfter <= 0 ||
			d.RetryAfter > time.Minute {
			t.Fatalf("closed: %+v", d)
		}
		if d := take(f.Limiter("open", opened), "k", 1); !d.Allowed || d.Over {
			t.Fatalf("open: %+v", d)
		}
	}
}

func TestRedisRestartsEmpty(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := start(t)
	w := &watch{}
	one, two := open(t, s.Addr(), w.into), open(t, s.Addr(), w.into)
	ready(t, 2, one, two)
	limit := per(1, time.Hour, 100)
	a, b := one.Limiter("api", limit), two.Limiter("api", limit)
	drain(a, "k", 10)
	s.Crash()
	away(t, one, two)
	w.fallbacks.Store(0)
	drain(a, "k", 5)
	if w.fallbacks.Load() == 0 {
		t.Error("nobody was told of the fallback")
	}
	s.run()
	fewest := 2
	eventually(t, "both are back", func() bool {
		a, b := one.State(), two.State()
		fewest = min(fewest, a.Instances, b.Instances)
		return a.Breaker.State == 0 && b.Breaker.State == 0
	})
	if fewest != 2 {
		t.Errorf("%d instances after the restart", fewest) // one that came back first must not take itself for the only one
	}
	got := 0
	eventually(t, "Redis decides again", func() bool {
		w.fallbacks.Store(0)
		for range 10 {
			got += drain(a, "k", 1) + drain(b, "k", 1)
		}
		return w.fallbacks.Load() == 0
	})
	got += drain(a, "k", 1000) + drain(b, "k", 1000)
	if got > 200 {
		t.Errorf("%d after the restart", got)
	}
}

// What stands still costs a few requests their timeout, and the others nothing.
func TestAHangingRedisHoldsUpFewRequests(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	s := start(t)
	w := &watch{}
	f := open(t, s.Addr(), normal, w.into)
	l := f.Limiter("api", per(1000, time.Second, 1000))
	ready(t, 1, f)
	s.Pause()
	var held, total, worst atomic.Int64
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for n := range 1000 {
				began := time.Now()
				take(l, fmt.Sprint(worker, n), 1)
				took := time.Since(began)
				total.Add(1)
				if took > 15*time.Millisecond {
					held.Add(1)
				}
				worst.Store(max(worst.Load(), int64(took)))
				<-tick.C
			}
		})
	}
	all.Wait()
	if held.Load()*10 > total.Load() || held.Load() == 0 {
		t.Errorf("%d of %d requests were held up", held.Load(), total.Load())
	}
	t.Logf("%d of %d requests were held up, the longest for %v", held.Load(), total.Load(), time.Duration(worst.Load()))
	if err := f.State().Err; err == nil || !strings.Contains(err.Error(), "timeout of 20ms") {
		t.Errorf("%v", err)
	}
	s.Resume()
	back(t, f)
	eventually(t, "Redis decides again", func() bool {
		w.fallbacks.Store(0)
		take(l, "later", 1)
		return w.fallbacks.Load() == 0
	})
}

// After an outage many keys are hot and many instances want them: Redis hears of it bit by bit.
func TestRecoveryIsNoStampede(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	s := start(t)
	const instances = 6
	w := &watch{}
	fleets := make([]*abateredis.Fleet, instances)
	for i := range fleets {
		fleets[i] = open(t, s.Addr(), w.into)
	}
	ready(t, instances, fleets...)
	s.Crash()
	away(t, fleets...)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, f := range fleets {
		l := f.Limiter("api", per(1000, time.Second, 1000))
		all.Go(func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-tick.C:
					take(l, fmt.Sprint(n%500), 1)
				}
			}
		})
	}
	before := w.count("take")
	s.run()
	var atOnce int64
	eventually(t, "the first is back", func() bool {
		n := w.count("take") - before
		if slices.ContainsFunc(fleets, func(f *abateredis.Fleet) bool { return !f.State().Away() }) {
			return true
		}
		atOnce = n // all were away still when it was counted
		return false
	})
	eventually(t, "all are back", func() bool {
		return !slices.ContainsFunc(fleets, func(f *abateredis.Fleet) bool { return f.State().Breaker.State != 0 })
	})
	close(stop)
	all.Wait()
	if atOnce > 10*instances {
		t.Errorf("%d round trips before the first was back", atOnce)
	}
}

// wire is a network between a test's client and its server that can be cut.
type wire struct {
	t      testing.TB
	to     string
	l      net.Listener
	mu     sync.Mutex
	conns  []net.Conn
	cut    bool // nothing gets through any more, nobody is told
	delay  atomic.Int64
	copies sync.WaitGroup
}

func newWire(t testing.TB, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, to: to, l: l}
	w.copies.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.connect(c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		w.copies.Wait()
	})
	return w
}

func (w *wire) addr() string { return w.l.Addr().String() }

func (w *wire) connect(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	if w.cut {
		return
	}
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		_ = c.Close()
		return
	}
	w.conns = append(w.conns, server)
	carry := func(to, from net.Conn) {
		w.copies.Go(func() {
			defer to.Close()
			room := make([]byte, 4096)
			for {
				n, err := from.Read(room)
				w.mu.Lock()
				cut := w.cut
				w.mu.Unlock()
				if err != nil {
					return
				}
				if d := time.Duration(w.delay.Load()); d > 0 {
					<-time.NewTimer(d).C
				}
				if !cut {
					if _, err := to.Write(room[:n]); err != nil {
						return
					}
				}
			}
		})
	}
	carry(server, c)
	carry(c, server)
}

// sever drops whatever is sent from now on. fix lets new connections through again.
func (w *wire) sever(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if !cut {
		for _, c := range w.conns {
			_ = c.Close()
		}
	}
}

// slow makes each answer take d.
func (w *wire) slow(d time.Duration) { w.delay.Store(int64(d / 2)) }

func TestAPartedNetwork(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := start(t)
	line := newWire(t, s.Addr())
	here, there := open(t, s.Addr()), open(t, line.addr(), normal)
	eventually(t, "two instances", func() bool { return here.State().Instances == 2 && there.State().Instances == 2 })
	line.sever(true)
	away(t, there)
	limit := per(1, time.Hour, 100)
	if got := drain(there.Limiter("api", limit), "k", 1000); got != 50 {
		t.Errorf("behind the cut: %d, want its share of 100 between 2", got)
	}
	if got := drain(here.Limiter("api", limit), "k", 1000); got < 99 || got > 100 {
		t.Errorf("before the cut: %d, want all of 100", got)
	}
	line.sever(false)
	back(t, there)
	eventually(t, "one bucket again", func() bool { return drain(there.Limiter("api", limit), "k", 1000) == 0 })
}

// answering is a server that says the same to whatever it is sent.
func answering(t testing.TB, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				defer context.AfterFunc(t.Context(), func() { _ = c.Close() })()
				room := make([]byte, 4096)
				for {
					if _, err := c.Read(room); err != nil {
						return
					}
					if _, err := io.WriteString(c, answer); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

func TestErrorsSayWhatToDo(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*abateredis.Config)) func(*abateredis.Config) { return change }
	secret := start(t, "requirepass secret")
	plain := start(t)
	for _, c := range []struct {
		what, addr, says string
		change           func(*abateredis.Config)
	}{
		{"a password is needed", secret.Addr(), "set passwordFile", nil},
		{"the password is wrong", secret.Addr(), "look at username and passwordFile", with(func(c *abateredis.Config) {
			c.PasswordFile = password
		})},
		{"a user may not", start(t, "user default on nopass ~* +@all -eval -evalsha").Addr(),
			"the user may not do this", nil},
		{"a replica", start(t, fmt.Sprintf("replicaof 127.0.0.1 %d", freePort(t)), "replica-serve-stale-data yes").Addr(),
			"name its master", nil},
		{"too few replicas", start(t, "min-replicas-to-write 1").Addr(), "min-replicas-to-write", nil},
		{"out of memory", start(t, "maxmemory 1").Addr(), "raise its maxmemory", nil},
		{"a node of a cluster without slots", start(t, "cluster-enabled yes", fmt.Sprint("cluster-port ", freePort(t))).
			Addr(), "has lost a part of its slots", nil},
		{"not a cluster", plain.Addr(), "leave cluster out", with(func(c *abateredis.Config) { c.Cluster = true })},
		{"no Sentinel", plain.Addr(), "no Sentinel knows", with(func(c *abateredis.Config) { c.Master = "m" })},
		{"no such database", plain.Addr(), "no database with this number", with(func(c *abateredis.Config) {
			c.Database = 99
		})},
		{"still loading", answering(t, "-LOADING Redis is loading the dataset in memory\r\n"), "still loading", nil},
		{"a web server", answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), "is not Redis", nil},
		{"garbage", answering(t, "\x00\xff garbage \r\n\r\n"), "is not Redis", nil},
		{"numbers", answering(t, ":1\r\n"), "", nil},
		{"endless nothing", answering(t, ""), "no answer within", nil},
		{"TLS to one without", plain.Addr(), "", with(func(c *abateredis.Config) { c.TLS = true })},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			f := open(t, c.addr, func(config *abateredis.Config) {
				config.Timeout = 100 * time.Millisecond
				if c.change != nil {
					c.change(config)
				}
			})
			eventually(t, "an error that says "+c.says, func() bool {
				take(f.Limiter("api", per(1, time.Hour, 10)), "k", 1)
				err := f.State().Err
				return err != nil && strings.Contains(err.Error(), c.says)
			})
			if got := drain(f.Limiter("api", per(1, time.Hour, 10)), "other", 100); got != 10 {
				t.Errorf("decides %d of 10 by itself; error %v", got, f.State().Err)
			}
			t.Log(f.State().Err)
		})
	}
}

func TestPasswordsMayChange(t *testing.T) {
	t.Parallel()
	s := start(t, "requirepass new")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, s.Addr(), func(c *abateredis.Config) { c.PasswordFile = file })
	eventually(t, "refused", func() bool { return f.State().Err != nil })
	if err := os.WriteFile(file, []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "accepted", func() bool { s := f.State(); return s.Err == nil && s.Instances == 1 })
}

func TestMistakesInTheConfiguration(t *testing.T) {
	one, empty := []string{"127.0.0.1:6379"}, filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says   string
		config abateredis.Config
	}{
		{"no addresses", abateredis.Config{}},
		{`"redis" is not host:port`, abateredis.Config{Addresses: []string{"redis"}}},
		{"2 addresses without master or cluster", abateredis.Config{Addresses: []string{"a:1", "b:1"}}},
		{"choose one", abateredis.Config{Addresses: one, Master: "m", Cluster: true}},
		{"only database 0", abateredis.Config{Addresses: one, Cluster: true, Database: 1}},
		{"a number from 0", abateredis.Config{Addresses: one, Database: -1}},
		{"1ms to 10s", abateredis.Config{Addresses: one, Timeout: time.Microsecond}},
		{"1ms to 10s", abateredis.Config{Addresses: one, Timeout: -1}},
		{"braces", abateredis.Config{Addresses: one, Prefix: "{a}"}},
		{"password file", abateredis.Config{Addresses: one, PasswordFile: "nowhere/password"}},
		{"is empty", abateredis.Config{Addresses: one, PasswordFile: empty}},
		{"without passwordFile", abateredis.Config{Addresses: one, Username: "abate"}},
	} {
		f, err := abateredis.Open(c.config)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want an error that says %q", c.config, err, c.says)
		}
		if f != nil {
			f.Close()
		}
	}
}

func TestReconfigureGoesOverToAnotherRedis(t *testing.T) {
	first, second := start(t), start(t)
	f := open(t, first.Addr())
	ready(t, 1, f)
	l := f.Limiter("api", per(1, time.Hour, 10))
	drain(l, "a", 100)
	if err := f.Reconfigure(abateredis.Config{}); err == nil {
		t.Error("a mistake was accepted")
	}
	first.Crash()
	if err := f.Reconfigure(abateredis.Config{Addresses: []string{second.Addr()}, Timeout: slack}); err != nil {
		t.Fatal(err)
	}
	if d := take(l, "b", 1); !d.Allowed || f.State().Err != nil {
		t.Errorf("%+v, %v", d, f.State().Err)
	}
	if n := second.calls(second.client()); n == 0 {
		t.Error("nobody asked the second one")
	}
}

// What was under way to the Redis of before ends when it may, and is no news of the one that is asked now.
func TestAnErrorOfTheOldRedisIsNotTheNewOnes(t *testing.T) {
	needs.Whole(t)
	old, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	asked, hangUp, w := make(chan struct{}), make(chan struct{}), &watch{}
	go func() {
		if c, err := old.Accept(); err == nil { // the first heartbeat
			defer c.Close()
			_, _ = c.Read(make([]byte, 1))
			close(asked)
			<-hangUp
		}
	}()
	f := open(t, old.Addr().String(), w.into)
	<-asked
	if err := f.Reconfigure(abateredis.Config{Addresses: []string{start(t).Addr()}, Timeout: slack}); err != nil {
		t.Fatal(err)
	}
	if d := take(f.Limiter("api", per(1, time.Hour, 10)), "k", 1); !d.Allowed || f.State().Err != nil {
		t.Errorf("%+v, %v", d, f.State().Err)
	}
	close(hangUp)
	eventually(t, "the old one has failed", func() bool { return w.errs.Load() > 0 })
	if err := f.State().Err; err != nil {
		t.Errorf("the error is shown of a Redis that is not asked any more: %v", err)
	}
}

func TestAClosedFleetLeavesNothingBehind(t *testing.T) {
	s := start(t)
	before := running()
	for _, addr := range []string{s.Addr(), fmt.Sprintf("127.0.0.1:%d", freePort(t))} {
		f, err := abateredis.Open(abateredis.Config{Addresses: []string{addr}})
		if err != nil {
			t.Fatal(err)
		}
		p := abate.DefaultPolicy()
		p.RetryBudget.Fleet, p.CircuitBreaker.Fleet = true, true
		g, err := abate.New("g", p)
		if err != nil {
			t.Fatal(err)
		}
		f.Share(g)
		drain(f.Limiter("api", per(1000, time.Second, 100)), "k", 200)
		if err := f.Reconfigure(abateredis.Config{Addresses: []string{addr}, Prefix: "other:"}); err != nil {
			t.Fatal(err)
		}
		drain(f.Limiter("api", per(1000, time.Second, 100)), "k", 200)
		f.Close()
		f.Close()
		if err := f.Store(10).Fail(t.Context(), "k", 1); err == nil {
			t.Error("a store of a closed fleet works")
		}
	}
	eventually(t, "all goroutines have ended", func() bool { return running() <= before })
}
