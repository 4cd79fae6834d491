//go:build unix

package abatenet_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/internal/connfail"
	"github.com/abate-go/abate/internal/needs/redis"
)

// held keeps a connection open until the end of the test.
func held(t *testing.T, conn net.Conn) {
	t.Helper()
	if conn != nil {
		t.Cleanup(func() { conn.Close() })
	}
}

func TestARedisWithoutAConnectionToSpareIsOverloaded(t *testing.T) {
	s := redis.Start(t, "maxclients 1")
	d := &abatenet.Dialer{Guard: guard(t, func(p *abate.Policy) { p.Pacing.Disabled = true }), Greet: abatenet.PingRedis}
	if !settles(func() bool { // the one who looked whether it is up has to be gone
		conn, err := d.DialContext(t.Context(), "tcp", s.Addr())
		held(t, conn)
		return err == nil
	}) {
		t.Fatal("the first connection is not taken")
	}
	conn, classes, err := watched(t, &abatenet.Dialer{Guard: guard(t, nil), Greet: abatenet.PingRedis}, s.Addr())
	held(t, conn)
	if err == nil ||
		!strings.HasPrefix(connfail.Explain(err), "too many connections (ERR max number of clients): tried again, as "+
			"overload") {
		t.Errorf("the second connection: %v (%s)", err, connfail.Explain(err))
	}
	if want := []abate.Class{abate.Overload, abate.Overload, abate.Overload}; !slices.Equal(classes, want) {
		t.Errorf("judged %v, want %v", classes, want)
	}
}

func TestARedisThatWantsALoginIsUp(t *testing.T) {
	for _, config := range []string{"requirepass secret", "user default on nopass ~* -@all", "rename-command PING \"\""} {
		conn, classes, err := watched(t, &abatenet.Dialer{Guard: guard(t, nil), Greet: abatenet.PingRedis},
			redis.Start(t, config).Addr())
		held(t, conn)
		if err != nil || len(classes) != 1 {
			t.Errorf("%s: after %v: %v", config, classes, err)
		}
	}
}

// A Redis that cannot save says so to PING, and goes on to answer who reads.
func TestARedisThatTakesNoWritesIsUp(t *testing.T) {
	folder, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := redis.Start(t, "save 3600 1", "dir "+folder)
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	ask, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	held(t, ask)
	answers := bufio.NewReader(ask)
	say := func(command string) string {
		_, _ = io.WriteString(ask, command+"\r\n")
		line, _ := answers.ReadString('\n')
		return line
	}
	say("BGSAVE")
	if !settles(func() bool {
		return strings.HasPrefix(say("PING"), "-MISCONF")
	}) || !strings.HasPrefix(say("SET a b"), "-MISCONF") || say("EXISTS a") != ":0\r\n" {
		t.Fatalf("a server that cannot save says %q; its log:\n%s", say("PING"), s.Log())
	}
	conn, _, err := watched(t, &abatenet.Dialer{Guard: guard(t, nil), Greet: abatenet.PingRedis}, s.Addr())
	held(t, conn)
	if err != nil {
		t.Error(err)
	}
}

func TestARedisThatStandsStillIsAway(t *testing.T) {
	s := redis.Start(t)
	s.Pause()
	conn, classes, err := watched(t, &abatenet.Dialer{Guard: guard(t, func(p *abate.Policy) {
		p.AttemptTimeout = 20 * time.Millisecond
	}), Greet: abatenet.PingRedis}, s.Addr())
	held(t, conn)
	if !errors.Is(err, context.DeadlineExceeded) || len(classes) != 3 {
		t.Errorf("after %v: %v", classes, err)
	}
}

// A Redis that loads accepts every connection. Under the guard few are made meanwhile, and one is had when it is done.
func TestARedisThatLoadsIsAwayUntilItIsDone(t *testing.T) {
	if testing.Short() {
		return // it loads for seconds
	}
	s := redis.Loading(t, 4*time.Second)
	var dials atomic.Int32
	d := &abatenet.Dialer{Guard: guard(t, nil), Greet: abatenet.PingRedis,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
	callers, loading, open := 0, 0, 0
	if !settles(func() bool { // a caller every few milliseconds
		callers++
		conn, err := d.DialContext(t.Context(), "tcp", s.Addr())
		held(t, conn)
		var said interface{ RedisError() }
		if errors.As(err, &said) && strings.HasPrefix(connfail.Explain(err), "the server is starting (LOADING)") {
			loading++
		}
		if errors.Is(err, abate.ErrCircuitOpen) {
			open++
		}
		return err == nil
	}) {
		t.Fatalf("no connection after %d callers; its log:\n%s", callers, s.Log())
	}
	t.Logf("%d callers, %d connections; %d were told LOADING, %d that the circuit is open", callers, dials.Load(),
		loading, open)
	// who is not turned away at the circuit has dialled, however few have come
	if loading == 0 || callers-open > int(dials.Load()) || dials.Load() > 25 {
		t.Errorf("%d callers made %d connections; %d were told LOADING, %d that the circuit is open", callers, dials.Load(),
			loading, open)
	}
	if conn, err := net.Dial("tcp", s.Addr()); err != nil || abatenet.PingRedis(t.Context(), conn) != nil {
		t.Errorf("it has not loaded yet: %v", err)
	} else {
		conn.Close()
	}
}
