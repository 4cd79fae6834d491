package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
)

// sharded has two fleets, two variants, and expectations that are decided early and late.
const sharded = `
name: sharded
runs: 64
duration: 12s
clients: {f: {rate: 40, patience: 2s, calls: [s]}, g: {rate: 10, patience: 2s, calls: [s]}}
services: {s: {workers: 8, serviceTime: exponential 100ms}}
faults: [{outage: s, at: 4s, for: 2s}]
variants: {naive: ` + naive + `, plain: ` + plain + `}
expect: [collapse < 20%, "goodput(g, after) > 50%", "served(p99) < 5s"]
`

// shards runs a study in parts, each through the JSON that a file would have.
func shards(t *testing.T, s *scenario.Scenario, o sim.Options, of int) []sim.ShardRun {
	t.Helper()
	var all []sim.ShardRun
	for number := 1; number <= of; number++ {
		err := sim.RunShard(t.Context(), s, o, sim.Shard{Number: number, Of: of}, nil, func(r sim.ShardRun) error {
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			var read sim.ShardRun
			if err := json.Unmarshal(text, &read); err != nil {
				return err
			}
			all = append(all, read)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// written is a result as JSON, with the details that only pictures show.
func written(t *testing.T, r *sim.Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Variants {
		text = fmt.Appendf(text, "%+v", *r.Variants[i].Run.Detail)
	}
	return string(text)
}

func TestShardsMergeToTheSameBytes(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := read(t, sharded)
	for name, o := range map[string]sim.Options{
		"until everything is decided": {}, "exactly": {Runs: 9, Exactly: true, Seed: 7},
		"with margin and advice, of one variant": {Runs: 40, Margin: true, Advice: true, Variants: []string{"plain"}},
	} {
		want := written(t, study(t, s, o))
		numbers := []int{1, 3}
		if o.Advice { // Merge searches for it again, which takes most of the time
			numbers = []int{3}
		}
		for _, of := range numbers {
			all := shards(t, s, o, of)
			for i := range len(all) / 2 { // the order in which they arrive does not matter
				all[i], all[len(all)-1-i] = all[len(all)-1-i], all[i]
			}
			r, err := sim.Merge(t.Context(), s, o, of, all)
			if err != nil {
				t.Fatal(err)
			}
			if written(t, r) != want {
				t.Errorf("%s: the study in %d shards differs from the study in one", name, of)
			}
		}
	}
}

func TestALostShardIsNamed(t *testing.T) {
	s, o := read(t, sharded), sim.Options{Runs: 9, Exactly: true}
	var rest []sim.ShardRun
	for _, r := range shards(t, s, o, 3) {
		if r.Run%3 != 1 && r.Run != 8 {
			rest = append(rest, r)
		}
	}
	_, err := sim.Merge(t.Context(), s, o, 3, rest)
	if err == nil || !strings.Contains(err.Error(), "shard 2/3 has 0 of its 6 runs") ||
		!strings.Contains(err.Error(), "shard 3/3 has 4 of its 6 runs") || strings.Contains(err.Error(), "1/3") {
		t.Errorf("the error is %v", err)
	}
	half := shards(t, s, o, 3)
	i := slices.IndexFunc(half, func(r sim.ShardRun) bool { return r.Run == 4 })
	half[i].Goodput = half[i].Goodput[:1]
	if _, err := sim.Merge(t.Context(), s, o, 3, half); err == nil || !strings.Contains(err.Error(), "is not whole") {
		t.Errorf("of a run without its end the error is %v", err)
	}
	if _, err := sim.Merge(t.Context(), read(t, strings.Replace(sharded, "rate: 40", "rate: 41", 1)), o, 3,
		shards(t, s, o, 3)); err == nil || !strings.Contains(err.Error(), "the same version of abate and the same files") {
		t.Errorf("of another scenario the error is %v", err)
	}
}

func TestAShardGoesOnWhereItStopped(t *testing.T) {
	s, o := read(t, sharded), sim.Options{Runs: 12, Exactly: true}
	full := errors.New("the disk is full")
	has := map[string]bool{}
	key := func(variant string, run int) string { return variant + string(rune('0'+run)) }
	keep := func(most int) func(sim.ShardRun) error {
		return func(r sim.ShardRun) error {
			if len(has) == most {
				return full
			}
			if has[key(r.Variant, r.Run)] {
				t.Errorf("run %d of %s is made twice", r.Run, r.Variant)
			}
			has[key(r.Variant, r.Run)] = true
			return nil
		}
	}
	part := sim.Shard{Number: 2, Of: 2}
	if err := sim.RunShard(context.Background(), s, o, part, nil, keep(5)); !errors.Is(err, full) {
		t.Errorf("the error is %v, want that of what keeps the runs", err)
	}
	known := func(variant string, run int) bool { return has[key(variant, run)] }
	before := len(has)
	had := map[string]bool{}
	for k := range has {
		had[k] = true
	}
	err := sim.RunShard(context.Background(), s, o, part, func(v string, n int) bool { return had[key(v, n)] }, keep(99))
	if err != nil || before != 5 || len(has) != 12 || known("naive", 0) || !known("plain", 11) {
		t.Errorf("%d runs, then %d, and the error %v; want 5, then all 12 of the shard", before, len(has), err)
	}
}
