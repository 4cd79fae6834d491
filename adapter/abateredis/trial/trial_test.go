package trial_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/adapter/abateredis/trial"
)

func TestKeysExpireByThemselves(t *testing.T) {
	addr, stop, err := trial.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	if err := c.Set(t.Context(), "k", "v", 100*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(20 * time.Second); c.Exists(t.Context(), "k").Val() == 1; <-tick.C {
		if time.Now().After(until) {
			t.Fatal("the key does not expire")
		}
	}
}

func TestStopEndsIt(t *testing.T) {
	addr, stop, err := trial.Start()
	if err != nil {
		t.Fatal(err)
	}
	stop()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("it still answers")
	}
}
