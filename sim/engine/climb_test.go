package engine_test

import (
	"testing"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
)

func climb(t *testing.T, e *engine.Engine, c engine.Climb) engine.Climbed {
	t.Helper()
	c.Service = "a"
	r, whole, err := e.Climb(c, nil)
	if err != nil || !whole {
		t.Fatalf("%+v, whole: %v, %v", r, whole, err)
	}
	return r
}

func TestAClimbIsTheRunOfItsSeedUpToItsFirstLevel(t *testing.T) {
	s := read(t, `
duration: 8s
warmUp: 2s
clients: {f: {rate: 60, instances: 2, calls: [a]}}
services: {a: {replicas: 2, workers: 3, serviceTime: exponential 95ms}}
variants: {only: {policy: {defaults: {attemptTimeout: 400ms}, protect: {a: {rateLimit: {limit: 100/s}}}}}}
`)
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	queue := expect.Expectation{Measure: "queue", Subject: "a"}
	differ := 0
	for seed := range uint64(20) {
		r, err := e.Run(seed, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		longest := int(r.Value(&queue))
		plain := climb(t, e, engine.Climb{Seeds: []uint64{seed}})
		if plain.Longest != longest {
			t.Errorf("seed %d: the longest queue of a climb is %d, of a run %d", seed, plain.Longest, longest)
		}
		level := longest/2 + 1
		levels := []int{level}
		up := climb(t, e, engine.Climb{Seeds: []uint64{seed}, Until: level})
		there := climb(t, e, engine.Climb{Levels: levels, Seeds: []uint64{seed, 1}, Until: level})
		if up != there || up.Longest < level || up.Events > plain.Events {
			t.Errorf("seed %d: to %d the climb is %+v, with a second seed from there on %+v, all of it %+v", seed, level, up,
				there, plain)
		}
		one := climb(t, e, engine.Climb{Levels: levels, Seeds: []uint64{seed, 1}})
		if again := climb(t, e, engine.Climb{Levels: levels, Seeds: []uint64{seed, 1}}); one != again {
			t.Errorf("seed %d: %+v, and with the same seeds %+v", seed, one, again)
		}
		if two := climb(t, e, engine.Climb{Levels: levels, Seeds: []uint64{seed, 2}}); one != two {
			differ++
		}
	}
	if differ < 5 {
		t.Errorf("another seed after the level makes another run in %d of 20", differ)
	}
	if _, _, err := e.Climb(engine.Climb{Service: "f", Seeds: []uint64{1}}, nil); err == nil {
		t.Error("a fleet has a queue")
	}
}
