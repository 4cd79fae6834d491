package rehearse

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/summary"
)

// jobIndex is where Kubernetes says which pod of an Indexed Job a process is in, from 0.
const jobIndex = "JOB_COMPLETION_INDEX"

// mostShards is the most parts that a study can have.
const mostShards = 100_000

// shardHead is the first line of a shard's file: of which study it is a part. Every other line is a run.
type shardHead struct {
	Format   int      `json:"abateShard"`
	Build    string   `json:"build"`
	File     string   `json:"file"`
	Content  string   `json:"content"` // a hash of the scenario and of the policy files that it names
	Seed     uint64   `json:"seed"`
	Runs     int      `json:"runs"`
	Exactly  bool     `json:"exactly"`
	Variants []string `json:"variants"`
	Shard    int      `json:"shard"`
	Of       int      `json:"of"`
}

// parseShard reads 3/20 or, for the pod of an Indexed Job, job/20.
func parseShard(text string) (sim.Shard, error) {
	number, of, ok := strings.Cut(text, "/")
	parts, err := strconv.Atoi(of)
	if !ok || err != nil || parts < 1 || parts > mostShards {
		return sim.Shard{}, fmt.Errorf("%q is not a shard; write 3/20 for the third of twenty", text)
	}
	p := sim.Shard{Of: parts}
	if number == "job" {
		index, err := strconv.Atoi(os.Getenv(jobIndex))
		if err != nil {
			return p, fmt.Errorf("%q takes its number from %s, which is %q; it is set in the pods of an Indexed Job", text,
				jobIndex, os.Getenv(jobIndex))
		}
		p.Number = index + 1
	} else if p.Number, err = strconv.Atoi(number); err != nil {
		return p, fmt.Errorf("%q is not a shard; write 3/20 for the third of twenty", text)
	}
	if p.Number < 1 || p.Number > parts {
		return p, fmt.Errorf("%q: there is no shard %d of %d", text, p.Number, parts)
	}
	return p, nil
}

// headOf says of which study a shard is a part.
func headOf(s *scenario.Scenario, o sim.Options, part sim.Shard) (shardHead, error) {
	h := shardHead{Format: 1, Build: buildOf(), File: s.File, Seed: o.Seed, Runs: o.Runs, Exactly: o.Exactly,
		Variants: o.Variants, Shard: part.Number, Of: part.Of}
	if h.Runs == 0 {
		h.Runs = max(s.Runs, 1)
	}
	files := []string{s.File}
	for i := range s.Variants {
		if file := s.Variants[i].PolicyFile; file != "" {
			if !filepath.IsAbs(file) {
				file = filepath.Join(filepath.Dir(s.File), file)
			}
			files = append(files, file)
		}
	}
	sum := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return h, err
		}
		fmt.Fprintf(sum, "%d\n", len(text))
		sum.Write(text)
	}
	h.Content = hex.EncodeToString(sum.Sum(nil))
	return h, nil
}

// buildOf names the version of this program.
func buildOf() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			text += " " + s.Value
		}
	}
	return text
}

// sameStudy says in what two shards are not of the same study; nothing if they are.
func (h shardHead) sameStudy(other shardHead) string {
	switch {
	case h.Format != other.Format || h.Build != other.Build:
		return "another version of abate"
	case h.Content != other.Content:
		return "another scenario or policy file"
	case h.Of != other.Of:
		return "another number of shards"
	case h.Seed != other.Seed || h.Runs != other.Runs || h.Exactly != other.Exactly ||
		!slices.Equal(h.Variants, other.Variants):
		return "other flags (--seed, --seeds, --variant)"
	}
	return ""
}

// readShard reads the file of a shard. size is how much of it is whole: a process that was killed may have left half a
// line.
func readShard(file string) (h shardHead, runs []sim.ShardRun, size int64, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return h, nil, 0, err
	}
	for n := 1; ; n++ {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			break
		}
		var into any = &h
		if n > 1 {
			runs = append(runs, sim.ShardRun{})
			into = &runs[len(runs)-1]
		}
		if err := json.Unmarshal(text[:end], into); err != nil {
			return h, nil, 0, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if n == 1 && h.Format != 1 {
			return h, nil, 0, fmt.Errorf("%s is not a shard of a study", file)
		}
		size += int64(end) + 1
		text = text[end+1:]
	}
	if size == 0 && len(text) > 0 && !bytes.HasPrefix(text, []byte(`{"abateShard"`)) {
		return h, nil, 0, fmt.Errorf("%s is not a shard of a study", file)
	}
	return h, runs, size, nil
}

// shard makes one shard of a study and adds its runs to a file.
func (o *simOptions) shard(ctx context.Context, s *scenario.Scenario, stdout, stderr io.Writer) int {
	head, err := headOf(s, o.optionsOf(s), o.part)
	if err != nil {
		return written(stderr, err)
	}
	file := o.shardFile
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		width := len(strconv.Itoa(head.Of))
		file = filepath.Join(file, fmt.Sprintf("shard-%0*d-of-%d.jsonl", width, head.Shard, head.Of))
	}
	has, out, err := openShard(file, head)
	if err != nil {
		return written(stderr, err)
	}
	there, made := len(has), 0
	progress := newSimProgress(stderr, o.quiet)
	options := o.optionsOf(s)
	options.Progress = progress.of(s.File, 1, 1)
	err = sim.RunShard(ctx, s, options, o.part,
		func(variant string, run int) bool { return has[shardKey{variant, run}] },
		func(r sim.ShardRun) error {
			line, err := json.Marshal(r)
			if err == nil {
				_, err = out.Write(append(line, '\n')) // as one, so that a process that is killed leaves no half but the last
				made++
			}
			return err
		})
	progress.End("")
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil && ctx.Err() != nil {
		fmt.Fprintf(stderr, "abate sim: stopped; %s has %d runs; the same command goes on from there\n", file, there+made)
		return summary.ExitInterrupted
	}
	if err != nil {
		return written(stderr, fmt.Errorf("--shard %v: %w", o.part, err))
	}
	return written(stderr, say(stdout, fmt.Sprintf("shard %v of %s: %d runs in %s, %d of them new\n", o.part, s.File,
		there+made, file, made)))
}

type shardKey struct {
	variant string
	run     int
}

// openShard opens the file of a shard for adding to it, and says which runs it has.
func openShard(file string, head shardHead) (has map[shardKey]bool, out *os.File, err error) {
	has = map[shardKey]bool{}
	old, runs, size, err := readShard(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, nil, err
	case size > 0 && (old.sameStudy(head) != "" || old.Shard != head.Shard):
		why := old.sameStudy(head)
		if why == "" {
			why = fmt.Sprintf("shard %d", old.Shard)
		}
		return nil, nil, fmt.Errorf("%s is of %s; name another file, or remove it", file, why)
	}
	for _, r := range runs {
		has[shardKey{r.Variant, r.Run}] = true
	}
	if out, err = os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, nil, err
	}
	err = out.Truncate(size)
	if err == nil {
		_, err = out.Seek(size, io.SeekStart)
	}
	if err == nil && size == 0 {
		var line []byte
		if line, err = json.Marshal(head); err == nil {
			_, err = out.Write(append(line, '\n'))
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, out.Close())
	}
	return has, out, nil
}

// optionsOf are the options of a scenario's study.
func (o *simOptions) optionsOf(s *scenario.Scenario) sim.Options {
	options := o.options
	options.Variants = o.variantsOf(s)
	return options
}
