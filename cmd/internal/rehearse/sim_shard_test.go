package rehearse

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
)

// real runs "abate sim" with the simulator itself.
func real(ctx context.Context, args string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = simulate(ctx, sim.Run, strings.Fields(args), &out, &errs)
	return code, out.String(), errs.String()
}

const shardedText = `
name: sharded
runs: 40
duration: 10s
clients: {shop: {rate: 30, patience: 2s, calls: [db]}}
services: {db: {workers: 8, serviceTime: exponential 100ms}}
faults: [{at: 3s, for: 2s, outage: db}]
expect: [collapse < 20%, goodput(after) > 50%]
variants: {file: {policyFile: policy.yaml}, plain: {policy: {defaults: {maxRetries: 0}}}}
`

// shardedStudy writes a scenario and its policy file into a new folder, which becomes the working one.
func shardedStudy(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, "s.yaml", shardedText)
	writeFile(t, "policy.yaml", "services: {db: {maxRetries: 1}}\n")
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestShardsOfAStudyMergeToWhatOneProcessWrites(t *testing.T) {
	shardedStudy(t)
	for i := 1; i <= 3; i++ {
		if code, out, errs := real(t.Context(), fmt.Sprintf("s.yaml --shard %d/3 -o s%d", i, i)); code != 0 ||
			!strings.HasPrefix(out, fmt.Sprintf("shard %d/3 of s.yaml: ", i)) {
			t.Fatalf("exit %d, %q, %q", code, out, errs)
		}
	}
	one, text, _ := real(t.Context(), "s.yaml --html one.html --json one.json --junit one.xml")
	merged, same, errs := real(t.Context(), "merge s3 s1 s2 --html all.html --json all.json --junit all.xml")
	if merged != one || same != text {
		t.Errorf("exit %d, want %d; %s%s\nwant\n%s", merged, one, same, errs, text)
	}
	for _, form := range []string{"html", "json", "xml"} {
		if contents(t, "one."+form) != contents(t, "all."+form) {
			t.Errorf("the %s of three shards differs from that of one process", form)
		}
	}
}

func TestALostOrForeignShardIsSaid(t *testing.T) {
	shardedStudy(t)
	for _, args := range []string{"s.yaml --shard 1/3 -o s1", "s.yaml --shard 3/3 -o s3",
		"s.yaml --shard 2/3 -o other --seeds 12"} {
		if code, out, errs := real(t.Context(), args); code != 0 {
			t.Fatalf("%s: exit %d, %q, %q", args, code, out, errs)
		}
	}
	writeFile(t, "none", "")
	writeFile(t, "text", "name: a scenario\n")
	for args, want := range map[string]string{
		"merge s1 s3":       "shard 2/3 has 0 of its 26 runs: run it again",
		"merge s1 other":    "other is of other flags (--seed, --seeds, --variant) than s1",
		"merge s1 none":     "none is empty",
		"merge s1 text":     "text",
		"merge s1 nothing":  "nothing: no such file",
		"merge":             "no shard is named",
		"merge s1 --seed 4": "--seed does not go with merge",
	} {
		if code, _, errs := real(t.Context(), args); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q; want %q", args, code, errs, want)
		}
	}
	for args, want := range map[string]string{
		"s.yaml --shard 2/3 -o s1":               "s1 is of shard 1; name another file, or remove it",
		"s.yaml --shard 1/4 -o s1":               "s1 is of another number of shards",
		"s.yaml --shard 2/3 -o text":             "text",
		"s.yaml --shard 4/3 -o s4":               "there is no shard 4 of 3",
		"s.yaml --shard x -o s4":                 "write 3/20 for the third of twenty",
		"s.yaml --shard 1/3":                     "--shard needs -o",
		"s.yaml -o s4":                           "-o is the file of a shard",
		"s.yaml --shard 1/3 -o s4 --html x.html": "--html does not go with --shard",
		"s.yaml --shard job/3 -o s4":             "JOB_COMPLETION_INDEX",
	} {
		if code, _, errs := real(t.Context(), args); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %q; want %q", args, code, errs, want)
		}
	}
	writeFile(t, "policy.yaml", "services: {db: {maxRetries: 2}}\n")
	if code, _, errs := real(t.Context(), "merge s1 s3"); code != exitUsage ||
		!strings.Contains(errs, "the shards are of another scenario or policy file than there is now") {
		t.Errorf("after a change of the policy: exit %d, %q", code, errs)
	}
}

func TestAShardThatWasKilledGoesOn(t *testing.T) {
	shardedStudy(t)
	t.Setenv(jobIndex, "1")
	if err := os.Mkdir("out", 0o700); err != nil {
		t.Fatal(err)
	}
	const args, file = "s.yaml --shard job/2 -o out --seeds 8", "out/shard-2-of-2.jsonl"
	code, out, errs := real(t.Context(), args)
	if code != 0 || !strings.Contains(out, "8 runs in "+file+", 8 of them new") {
		t.Fatalf("exit %d, %q, %q", code, out, errs)
	}
	whole := strings.SplitAfter(contents(t, file), "\n")
	writeFile(t, file, strings.Join(whole[:4], "")+whole[4][:20]) // three runs, and half of one
	code, out, errs = real(t.Context(), args)
	if code != 0 || !strings.Contains(out, "8 runs in "+file+", 5 of them new") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	writeFile(t, file, whole[0][:10]) // killed while it wrote the first line
	if code, out, errs := real(t.Context(), args); code == 0 || !strings.Contains(errs, "not a shard") {
		t.Errorf("a file that may be anything: exit %d, %q, %q", code, out, errs)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if code, _, errs := real(stopped, args); code != 130 || !strings.Contains(errs, "goes on from there") {
		t.Errorf("stopped: exit %d, %q", code, errs)
	}
	if code, out, errs := real(t.Context(), args); code != 0 || !strings.Contains(out, "8 of them new") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func FuzzReadShard(f *testing.F) {
	f.Add([]byte(`{"abateShard":1,"shard":1,"of":3,"variants":["a"]}` + "\n" +
		`{"variant":"a","run":3,"values":[1,"NaN"]}` + "\n"))
	f.Add([]byte(`{"abateShard":1}` + "\n" + `{"fleets":[{"recovery":"+Inf"}],"path":null}` + "\n{"))
	file := filepath.Join(f.TempDir(), "shard")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		head, runs, size, err := readShard(file)
		if size > int64(len(text)) || err != nil && (runs != nil || size != 0) {
			t.Fatalf("%d runs, %d bytes, %v", len(runs), size, err)
		}
		if err == nil && size > 0 && (head.Format != 1 || text[size-1] != '\n') {
			t.Fatalf("%q is read as %+v up to %d", text, head, size)
		}
	})
}
