package abateredis_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

// cluster starts three masters, each with a third of the slots.
func cluster(t testing.TB) []*server {
	t.Helper()
	const slots = 16384
	var nodes []*server
	first := freePort(t) // of the bus between them
	for i, bus := range []int{first, freePort(t), freePort(t)} {
		s := start(t, "cluster-enabled yes", "cluster-node-timeout 20000", "cluster-require-full-coverage no",
			fmt.Sprint("cluster-port ", bus))
		c := s.client()
		must(t, c.Do(t.Context(), "cluster", "addslotsrange", i*slots/3, (i+1)*slots/3-1))
		if i > 0 {
			must(t, c.Do(t.Context(), "cluster", "meet", "127.0.0.1", nodes[0].Port(), first))
		}
		nodes = append(nodes, s)
	}
	for _, s := range nodes {
		c := s.client()
		eventually(t, "the cluster is whole", func() bool {
			info := c.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") &&
				strings.Contains(info, "cluster_slots_assigned:16384")
		})
	}
	return nodes
}

func must(t testing.TB, c *redis.Cmd) {
	t.Helper()
	if err := c.Err(); err != nil {
		t.Fatal(c.Args(), err)
	}
}

func TestCluster(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	nodes := cluster(t)
	inCluster := func(c *abateredis.Config) {
		c.Cluster = true
		c.Addresses = []string{nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr()}
	}
	one, two := open(t, "", inCluster), open(t, "", inCluster)
	ready(t, 2, one, two)

	t.Run("one limit", func(t *testing.T) {
		limit := per(1, time.Hour, 20)
		a, b := one.Limiter("api", limit), two.Limiter("api", limit)
		for key := range 30 {
			// up to 2.5 lie in the batch of the first
			if got := drain(a, fmt.Sprint(key), 11) + drain(b, fmt.Sprint(key), 100); got < 17 || got > 20 {
				t.Errorf("key %d: %d of 20", key, got)
			}
		}
		for i, s := range nodes {
			if n := s.calls(s.client()); n < 10 {
				t.Errorf("node %d was asked %d times", i, n)
			}
		}
	})
	t.Run("store", func(t *testing.T) {
		n := 0
		storetest.Run(t, func(t *testing.T) idempotency.Store {
			n++
			return open(t, "", inCluster, func(c *abateredis.Config) { c.Prefix = fmt.Sprint(n, ":") }).Store(1 << 20)
		}, storetest.Options{})
	})
	t.Run("breaker", func(t *testing.T) {
		guards := sharing(t, guarded(), one, two)
		eventually(t, "the other instance opens", func() bool {
			for range 5 {
				_ = try(t, guards[0], errDown)
			}
			return guards[1].State().Breaker.State == breaker.Open
		})
	})
	t.Run("a node is gone", func(t *testing.T) {
		nodes[1].Crash()
		limit := per(1, time.Hour, 20)
		l := one.Limiter("later", limit)
		for key := range 30 { // some of them were on that node: they get the local share
			if got := drain(l, fmt.Sprint(key), 100); got < 10 || got > 20 {
				t.Errorf("key %d: %d of 20", key, got)
			}
		}
	})
}

// sentinels starts a master, a replica, and three that watch them.
func sentinels(t testing.TB) (master, replica *server, watchers []*server) {
	t.Helper()
	master = start(t, "repl-diskless-sync yes", "repl-diskless-sync-delay 0")
	replica = start(t, "replicaof 127.0.0.1 "+strconv.Itoa(master.Port()), "repl-diskless-sync-delay 0")
	c := replica.client()
	eventually(t, "replication", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	for range 3 {
		watchers = append(watchers, start(t, fmt.Sprintf("sentinel monitor m 127.0.0.1 %d 2", master.Port()),
			"sentinel down-after-milliseconds m 4000", "sentinel failover-timeout m 3000"))
	}
	for _, s := range watchers {
		c := s.client()
		eventually(t, "the Sentinels know each other and the replica", func() bool {
			v, err := c.Do(t.Context(), "sentinel", "master", "m").StringSlice()
			said := " " + strings.Join(v, " ") + " "
			return err == nil && strings.Contains(said, " num-slaves 1 ") && strings.Contains(said, " num-other-sentinels 2 ")
		})
	}
	return master, replica, watchers
}

func TestSentinel(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	master, replica, watchers := sentinels(t)
	watched := func(c *abateredis.Config) {
		c.Master, c.Addresses = "m", nil
		for _, s := range watchers {
			c.Addresses = append(c.Addresses, s.Addr())
		}
	}
	one, two := open(t, "", watched), open(t, "", watched)
	ready(t, 2, one, two)
	limit := per(1, time.Hour, 20)
	a, b := one.Limiter("api", limit), two.Limiter("api", limit)
	if got := drain(a, "k", 11) + drain(b, "k", 100); got < 17 || got > 20 { // up to 2.5 lie in the batch of the first
		t.Errorf("%d of 20", got)
	}
	if n := master.calls(master.client()); n == 0 {
		t.Error("the master was not asked")
	}
	before := replica.calls(replica.client())
	master.Crash()
	n := 0
	eventually(t, "away", func() bool { // before the failover is over
		n++
		take(a, fmt.Sprint(n), 1)
		return one.State().Away()
	})
	if got := drain(a, "meanwhile", 100); got != 10 {
		t.Errorf("during the failover: %d, want a share of 10", got)
	}
	back(t, one, two)
	eventually(t, "the new master is asked", func() bool {
		drain(a, "later", 1)
		return replica.calls(replica.client()) > before
	})
	eventually(t, "the bucket is as it was", func() bool { return drain(a, "k", 5) == 0 && drain(b, "k", 5) == 0 })
}

func TestAWrongMaster(t *testing.T) {
	t.Parallel()
	_, _, watchers := sentinels(t)
	f := open(t, watchers[0].Addr(), func(c *abateredis.Config) { c.Master = "other" })
	eventually(t, "an error that says so", func() bool {
		err := f.State().Err
		return err != nil && strings.Contains(err.Error(), "no Sentinel knows this master")
	})
	g := open(t, watchers[0].Addr())
	eventually(t, "an error that says so", func() bool {
		err := g.State().Err
		return err != nil && strings.Contains(err.Error(), "then set master")
	})
}

// A user that may do what the documentation names, and nothing else, is refused nothing: also nothing that the client
// sends by itself, on the way of a request.
func TestTheRightsThatAreNamedAreEnough(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	rights := []any{"acl", "setuser", "abate", "on", ">secret", "~abate:*", "&abate:*", "-@all"}
	for _, name := range []string{"evalsha", "eval", "publish", "subscribe", "ping", "time", "get", "set", "del", "hmget",
		"hget", "hset", "hdel",
		"pexpire", "zadd", "zrem", "zremrangebyscore", "zcard", "select", "cluster|slots"} {
		rights = append(rights, "+"+name)
	}
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, nodes := range map[string][]*server{"alone": {start(t)}, "cluster": cluster(t)} {
		for _, n := range nodes {
			must(t, n.client().Do(t.Context(), rights...))
		}
		f := open(t, nodes[0].Addr(), func(c *abateredis.Config) {
			c.Username, c.PasswordFile, c.Cluster = "abate", password, len(nodes) > 1
		})
		ready(t, 1, f)
		guards := sharing(t, guarded(), f)
		_ = try(t, guards[0], errDown)
		store := f.Store(100)
		for key := range 20 {
			take(f.Limiter("api", per(1, time.Hour, 10)), fmt.Sprint(key), 1)
			begun, err := store.Begin(t.Context(), fmt.Sprint(key), idempotency.Fingerprint{}, time.Minute)
			if err == nil {
				err = store.Complete(t.Context(), fmt.Sprint(key), begun.Token, idempotency.Response{Status: 200}, time.Minute)
			}
			if err != nil {
				t.Fatal(what, err)
			}
		}
		during(4*time.Second, func() {}) // a quiet channel is tried with a ping
		for _, n := range nodes {
			if log, err := n.client().Do(t.Context(), "acl", "log").Slice(); err != nil || len(log) > 0 {
				t.Errorf("%s: %v, %v", what, log, err)
			}
		}
	}
}
