package kafkatools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/cmd/internal/cli"
)

const replayUsage = `Usage: abate dlq replay [--dry-run | --yes] [FLAGS] [P/O]

Sends dead letters back to their topics: key, value and headers byte for byte, into the original
partition, with the current time. It sends batches of 1, 2, 5, 10, ... 10000. After each batch it
waits until the consumer group has committed an offset behind all of them, so that each was handled
or has failed again. It stops as soon as too many have failed again. If nobody reads the topic, it
ends and says how many still wait. It records each message that it sent in the audit topic, so a
replay that ended for any reason can be resumed. A topic has one replay at a time.

  --dry-run           only say what would be sent
  --yes               needed for more than one dead letter
  --to TOPIC          send them there instead
  --rate N            messages per second at most (default 100)
  --reader GROUP      the consumer group that reads them there (default: the one that failed at
                      them; with --to, every group that reads that topic)
  --settle D          how long to wait if nobody reads (default 5s)
  --patience D        how long to wait while the group's commits stand still (default 5m)
  --unjudged          go on without the group's commits, --settle after each batch: for readers that
                      commit nothing; only messages that fail again stop it
  --max-failures S    the share of a batch, or of all, that may fail again (default 0.1)
  --max-replays N     leave out what was replayed this often already (default 3)
  --watch TOPICS      where messages that fail again arrive, besides the dead-letter topic
                      (default: every topic called like the target with -...retry..., -...dlq,
                      -...dlt or .DLT)
  --resume ID         go on with a replay that was stopped, cancelled or killed: with its dead
                      letters, its target, and its settings unless others are given
  --take-over         begin although another replay seems to run, because its process is dead;
                      not needed once that one has shown no sign of life for a minute
  --edit FILE         send one dead letter with the content of FILE as its value; the copy names
                      the dead letter in its header abate-edited-from

  abate dlq replay --topic payments-dlq 3/1042
  abate dlq replay --topic payments-dlq --group 1a2b --dry-run
  abate dlq replay --topic payments-dlq --group 1a2b --rate 20 --yes
  abate dlq replay --topic payments-dlq --resume r-5f0c11aa

Exit code: 0 if all was sent and judged (with --unjudged: sent), else 1, also if some still wait for
their consumer; --resume reports what became of those.

After a crash between sending and recording, a resumed replay repeats at most what was sent in a
tenth of a second, and at most 100 messages. Ctrl-C ends it cleanly.
`

func defineReplay(f *dlqFlags, set *flag.FlagSet) {
	set.BoolVar(&f.dryRun, "dry-run", false, "")
	set.BoolVar(&f.yes, "yes", false, "")
	set.StringVar(&f.replay.To, "to", "", "")
	set.Float64Var(&f.replay.Rate, "rate", 0, "")
	set.DurationVar(&f.replay.Settle, "settle", 0, "")
	set.StringVar(&f.replay.Reader, "reader", "", "")
	set.DurationVar(&f.replay.Patience, "patience", 0, "")
	set.BoolVar(&f.replay.Unjudged, "unjudged", false, "")
	set.Float64Var(&f.replay.MaxFailures, "max-failures", 0, "")
	set.IntVar(&f.replay.MaxReplays, "max-replays", 0, "")
	set.StringVar(&f.replay.Resume, "resume", "", "")
	set.BoolVar(&f.replay.TakeOver, "take-over", false, "")
	set.StringVar(&f.edit, "edit", "", "")
	set.Func("watch", "", func(s string) error {
		f.replay.Watch = strings.Split(s, ",")
		return nil
	})
}

func runReplay(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	f.replay.Filter = f.filter
	if f.given["max-failures"] && f.replay.MaxFailures == 0 {
		f.replay.MaxFailures = -1 // zero means the default there
	}
	if f.edit != "" {
		return editLetter(ctx, f, d, stdout, stderr)
	}
	if f.replay.Resume != "" {
		for _, name := range []string{"group", "where", "from", "until", "partition", "offsets", "state", "max", "dry-run"} {
			if f.given[name] || len(f.words) > 0 {
				return f.fail(stderr,
					errors.New("--resume goes on with the letters that the replay was begun with: name no others, and no --dry-run"))
			}
		}
	} else {
		if code, ready := f.plan(ctx, d, stdout, stderr); !ready {
			return code
		}
	}
	f.replay.Progress = progressTo(stderr)
	p, err := d.Replay(ctx, f.replay)
	if p.Phase.Ended() {
		f.tellEnd(&p, stdout)
	}
	if err != nil {
		return f.fail(stderr, err)
	}
	sent := p.Phase == dlq.Done || p.Phase == dlq.Pending && f.replay.Unjudged
	if !sent || p.Chosen == 0 || p.Phase == dlq.Done && p.Why != "" || p.Failed > 0 {
		return 1
	}
	return 0
}

// plan prints what would be sent and reports whether to go on.
func (f *dlqFlags) plan(ctx context.Context, d *dlq.Desk, stdout, stderr io.Writer) (code int, ready bool) {
	dry := f.replay
	dry.DryRun = true
	targets := map[string]int{}
	dry.Report = func(e *dlq.Entry, to, skip string) {
		if skip != "" && f.dryRun && !f.json {
			fmt.Fprintf(stdout, "leave out %d/%d: %s\n", e.At.Partition, e.At.Offset, skip)
		}
		targets[to]++
	}
	p, err := d.Replay(ctx, dry)
	if err != nil {
		return f.fail(stderr, err), false
	}
	delete(targets, "")
	switch {
	case (f.dryRun || p.Sent == 0) && f.json:
		printJSON(stdout, &p)
		return found(p.Sent), false
	case f.dryRun || p.Sent == 0:
		fmt.Fprintf(stdout, "%s chosen; %s would be sent%s\n", cli.Count(p.Chosen, "letter"), cli.Count(p.Sent, "message"),
			where(targets))
		tellSkips(&p, stdout)
		return found(p.Sent), false
	case p.Sent > 1 && !f.yes:
		return f.fail(stderr, fmt.Errorf("this would send %s%s: look at them with --dry-run, and say --yes to do it",
			cli.Count(p.Sent, "message"), where(targets))), false
	}
	return 0, true
}

// where names targets: " to payments (12) and refunds (3)".
func where(targets map[string]int) string {
	var list []string
	for _, topic := range slices.Sorted(maps.Keys(targets)) {
		list = append(list, fmt.Sprintf("%s (%d)", topic, targets[topic]))
	}
	if len(list) == 0 {
		return ""
	}
	return " to " + strings.Join(list, ", ")
}

func tellSkips(p *dlq.Progress, w io.Writer) {
	for _, why := range slices.Sorted(maps.Keys(p.Skips)) {
		fmt.Fprintf(w, "  %s left out: %s\n", cli.Count(p.Skips[why], "letter"), why)
	}
}

// progressTo prints progress, a line for each phase and at most one a second.
func progressTo(w io.Writer) func(dlq.Progress) {
	var last time.Time
	var phase dlq.Phase
	return func(p dlq.Progress) {
		if p.Phase.Ended() || p.Phase == phase && time.Since(last) < time.Second || p.Batch == 0 {
			return
		}
		if phase == "" {
			fmt.Fprintf(w, "replay %s of %s; end it with Ctrl-C or \"abate dlq cancel %s\"\n", p.ID,
				cli.Count(p.Chosen, "letter"), p.ID)
		}
		phase, last = p.Phase, time.Now()
		why := ""
		if p.Why != "" {
			why = ": " + p.Why
		}
		fmt.Fprintf(w, "%-9s batch of %d, %s%s\n", p.Phase, p.Batch, standing(&p), why)
	}
}

func (f *dlqFlags) tellEnd(p *dlq.Progress, w io.Writer) {
	if f.json {
		printJSON(w, p)
		return
	}
	fmt.Fprintf(w, "%s: %s", p.Phase, standing(p))
	if p.Failed > 0 {
		fmt.Fprintf(w, ", could not be sent %d", p.Failed)
	}
	if p.Why != "" {
		fmt.Fprintf(w, "\n  %s", p.Why)
	}
	fmt.Fprintln(w)
	tellSkips(p, w)
	if p.Phase != dlq.Done {
		fmt.Fprintf(w, "Go on with:  abate dlq replay %s --resume %s\n", f.desk(), p.ID)
	}
}

func editLetter(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if len(f.words) == 0 || f.dryRun || f.replay.Resume != "" {
		return f.fail(stderr, errors.New("--edit sends one letter: write its partition and offset, for example 3/1042, and "+
			"neither --dry-run nor --resume"))
	}
	value, err := os.ReadFile(f.edit)
	if err != nil {
		return f.fail(stderr, fmt.Errorf("--edit: %w", err))
	}
	at := letter.Place{Topic: d.Topic(), Partition: f.filter.Partition, Offset: f.filter.FromOffset}
	to, err := d.Edit(ctx, at, dlq.Change{Value: value, To: f.replay.To})
	if err != nil {
		return f.fail(stderr, err)
	}
	fmt.Fprintf(stdout, "%s was sent as %s with another value of %s\n", at, to, cli.Count(len(value), "byte"))
	return 0
}
