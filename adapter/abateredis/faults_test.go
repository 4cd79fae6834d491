package abateredis_test

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

// schedules is how many a test runs: more if ABATE_STORE_SCHEDULES says so.
func schedules(t *testing.T) int {
	n := 100
	if text := os.Getenv("ABATE_STORE_SCHEDULES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// faults runs the schedules over a fleet's store, with failovers that lose what had not been replicated: c sees the
// same keys.
func faults(t *testing.T, f *abateredis.Fleet, c redis.UniversalClient) {
	t.Helper()
	o := storetest.FaultOptions{Schedules: schedules(t), Seed: 1}
	name := func(key string) string { return abateredis.KeyOf("abate:", "idempotency", key) + ":key" }
	o.Save = func(key string) (any, error) {
		dump, err := c.Dump(t.Context(), name(key)).Result()
		if errors.Is(err, redis.Nil) {
			return "", nil
		}
		return dump, err
	}
	o.Load = func(key string, saved any) error {
		if saved == "" {
			return c.Del(t.Context(), name(key)).Err()
		}
		return c.RestoreReplace(t.Context(), name(key), time.Hour, saved.(string)).Err()
	}
	count := storetest.Faults(t, f.Store(1000), o)
	t.Logf("%d schedules: %+v", o.Schedules, count)
	if count.Runs < o.Schedules || count.Failovers == 0 || count.Crashes == 0 {
		t.Errorf("nothing happened: %+v", count)
	}
}

func TestAnAcknowledgedEffectIsNeverRunAgainWhateverRedisDoes(t *testing.T) {
	t.Run("single", func(t *testing.T) {
		s := start(t)
		faults(t, open(t, s.Addr()), s.client())
	})
	if testing.Short() {
		return // what follows takes seconds
	}
	t.Run("sentinel", func(t *testing.T) {
		master, _, watchers := sentinels(t)
		faults(t, open(t, "", func(c *abateredis.Config) {
			c.Master, c.Addresses, c.Replicas = "m", nil, 1
			for _, s := range watchers {
				c.Addresses = append(c.Addresses, s.Addr())
			}
		}), master.client())
	})
	t.Run("cluster", func(t *testing.T) {
		nodes := cluster(t)
		c := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{nodes[0].Addr()}, Protocol: 2, DisableIdentity: true,
		})
		t.Cleanup(func() { _ = c.Close() })
		faults(t, open(t, nodes[0].Addr(), func(c *abateredis.Config) { c.Cluster = true }), c)
	})
}

// pair starts a master and its replica.
func pair(t *testing.T) (master, replica *server) {
	t.Helper()
	master = start(t, "repl-diskless-sync yes", "repl-diskless-sync-delay 0")
	replica = start(t, "replicaof 127.0.0.1 "+strconv.Itoa(master.Port()))
	c := master.client()
	eventually(t, "replication", func() bool {
		n, err := c.Do(t.Context(), "wait", 1, 100).Int()
		return err == nil && n == 1
	})
	return master, replica
}

// promote makes a replica the master.
func promote(t *testing.T, s *server) {
	t.Helper()
	must(t, s.client().Do(t.Context(), "replicaof", "no", "one"))
}

func waiting(c *abateredis.Config) { c.Replicas = 1 }

func hurried(c *abateredis.Config) { c.Replicas, c.Timeout = 1, 300*time.Millisecond }

func TestWhatReplicasHaveConfirmedOutlivesTheMaster(t *testing.T) {
	master, replica := pair(t)
	store := open(t, master.Addr(), waiting).Store(1000)
	for i := range 50 {
		key := strconv.Itoa(i)
		begun, err := store.Begin(t.Context(), key, fp, time.Minute)
		if err == nil {
			err = store.Complete(t.Context(), key, begun.Token, idempotency.Response{Status: 201}, time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	master.Crash()
	promote(t, replica)
	after := open(t, replica.Addr()).Store(1000)
	for i := range 50 {
		if b, err := after.Begin(t.Context(), strconv.Itoa(i), fp, time.Minute); err != nil ||
			b.State != idempotency.Replay || b.Response.Status != 201 {
			t.Errorf("key %d: %+v, %v", i, b, err)
		}
	}
}

func TestWhatReplicasHaveNotConfirmedDoesNotCount(t *testing.T) {
	master, replica := pair(t)
	careless, careful := open(t, master.Addr()).Store(1000), open(t, master.Addr(), hurried).Store(1000)
	running, err := careless.Begin(t.Context(), "running", fp, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	replica.Pause()
	defer replica.Resume()
	begun, err := careless.Begin(t.Context(), "done", fp, time.Minute)
	if err == nil {
		err = careless.Complete(t.Context(), "done", begun.Token, idempotency.Response{Status: 201}, time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b, err := careful.Begin(t.Context(), "done", fp, time.Minute); err == nil {
		t.Errorf("an answer that no replica has is given out: %+v", b)
	}
	if err := careful.Complete(t.Context(), "running", running.Token, idempotency.Response{Status: 201},
		time.Minute); err == nil || errors.Is(err, idempotency.ErrLost) {
		t.Errorf("an answer that no replica has is stored: %v", err)
	}
	replica.Resume()
	eventually(t, "the replica is there again", func() bool {
		return careful.Complete(t.Context(), "running", running.Token, idempotency.Response{Status: 201}, time.Minute) == nil
	})
	eventually(t, "the answer is given out", func() bool {
		b, err := careful.Begin(t.Context(), "done", fp, time.Minute)
		return err == nil && b.State == idempotency.Replay
	})
}

func TestAHolderTellsTheNewMasterWhatTheOldOneTookAlong(t *testing.T) {
	master, replica := pair(t)
	f := open(t, master.Addr())
	store := f.Store(1000)
	promote(t, replica) // and not later: what it has not read yet of the old master's writes it would still take in
	begun, err := store.Begin(t.Context(), "k", fp, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	master.Crash()
	if err := f.Reconfigure(abateredis.Config{Addresses: []string{replica.Addr()}, Timeout: slack}); err != nil {
		t.Fatal(err)
	}
	done := func() error {
		return store.Complete(t.Context(), "k", begun.Token, idempotency.Response{Status: 201}, time.Minute)
	}
	eventually(t, "the new master knows nothing", func() bool { return errors.Is(done(), idempotency.ErrLost) })
	if err := store.Restore(t.Context(), "k", fp, begun, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	if b, err := store.Begin(t.Context(), "k", fp, time.Minute); err != nil || b.State != idempotency.Replay {
		t.Errorf("%+v, %v", b, err)
	}
	if b, err := store.Begin(t.Context(), "other", fp, time.Minute); err != nil || b.Token <= begun.Token {
		t.Errorf("the token after %d is %d, %v", begun.Token, b.Token, err)
	}
}
