package rehearse

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
)

// merge runs "abate sim merge": it puts the shards of a study together, and writes what one process would have written.
func merge(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseSim(args)
	if errors.Is(err, flag.ErrHelp) {
		return written(stderr, say(stdout, simHelp))
	}
	var head shardHead
	var runs []sim.ShardRun
	if len(o.problems) == 0 {
		head, runs = o.readShards()
	}
	var s *scenario.Scenario
	if len(o.problems) == 0 {
		s = o.mergedScenario(head)
	}
	if len(o.problems) > 0 {
		for _, p := range o.problems {
			fmt.Fprintln(stderr, p)
		}
		fmt.Fprintln(stderr, `abate sim: nothing was merged; "abate sim -h" explains the flags.`)
		return exitUsage
	}
	o.options.Seed, o.options.Runs, o.options.Exactly, o.variants = head.Seed, head.Runs, head.Exactly, head.Variants
	o.settle([]*scenario.Scenario{s})
	if err := o.checkOutputs(); err != nil {
		return written(stderr, err)
	}
	whole := func(ctx context.Context, s *scenario.Scenario, options sim.Options) (*sim.Result, error) {
		return sim.Merge(ctx, s, options, head.Of, runs)
	}
	return o.run(ctx, whole, []*scenario.Scenario{s}, stdout, stderr)
}

// readShards reads all files, and those of the folders. They have to be of one study.
func (o *simOptions) readShards() (shardHead, []sim.ShardRun) {
	var first shardHead
	var all []sim.ShardRun
	var files []string
	for _, path := range o.paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			found, _ := filepath.Glob(filepath.Join(path, "*.jsonl"))
			if len(found) == 0 {
				o.wrong("%s: there is no *.jsonl file in this folder", path)
			}
			files = append(files, found...)
			continue
		}
		files = append(files, path)
	}
	from := ""
	for _, file := range files {
		head, runs, size, err := readShard(file)
		switch {
		case err != nil:
			o.wrong("%v", err)
			continue
		case size == 0:
			o.wrong("%s is empty: make the shard again", file)
			continue
		case from == "":
			first, from = head, file
		}
		if why := head.sameStudy(first); why != "" {
			o.wrong("%s is of %s than %s", file, why, from)
		}
		all = append(all, runs...)
	}
	return first, all
}

// mergedScenario loads the scenario of the shards, which has to be as it was.
func (o *simOptions) mergedScenario(head shardHead) *scenario.Scenario {
	s, err := scenario.Load(head.File)
	if err != nil {
		o.wrong("the scenario of the shards: %v", err)
		return nil
	}
	now, err := headOf(s, sim.Options{Seed: head.Seed, Runs: head.Runs, Exactly: head.Exactly, Variants: head.Variants},
		sim.Shard{Number: head.Shard, Of: head.Of})
	if err != nil {
		o.wrong("the scenario of the shards: %v", err)
	} else if why := head.sameStudy(now); why != "" {
		o.wrong("the shards are of %s than there is now", why)
	}
	return s
}

// checkShard finds what goes with neither a shard nor a merge.
func (o *simOptions) checkShard() {
	refuse := func(with string, names ...string) {
		for _, name := range names {
			if o.given[name] {
				o.wrong("--%s does not go with %s", name, with)
			}
		}
	}
	switch shard := o.given["shard"]; {
	case o.merge:
		refuse("merge: the shards say it", "seeds", "seed", "variant", "shard", "o")
		refuse("merge", "explain", "schema", "validate")
		if len(o.paths) == 0 {
			o.wrong("merge: no shard is named; for example: abate sim merge s1 s2 s3")
		}
	case o.given["o"] && !shard:
		o.wrong("-o is the file of a shard; without --shard, write --json or --html")
	case shard:
		refuse("--shard: give it to merge", "html", "json", "junit", "markdown", "margin", "advice", "map", "fast")
		refuse("--shard", "explain", "schema", "validate")
		switch {
		case o.shardFile == "":
			o.wrong("--shard needs -o FILE, or a folder, to write the runs to")
		case slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(o.shardFile)):
			o.wrong("-o: %q looks like a scenario, which would be overwritten", o.shardFile)
		case strings.HasPrefix(o.shardFile, "-"):
			o.wrong("-o: %q looks like a flag; a file of that name is written ./%s", o.shardFile, o.shardFile)
		}
	}
}
