package kafkatools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/cmd/internal/cli"
)

const tailUsage = `Usage: abate dlq tail [FLAGS]

Prints dead letters as they arrive, until Ctrl-C.

  abate dlq tail --topic payments-dlq --json | your-alert
`

const deleteUsage = `Usage: abate dlq delete [--dry-run | --yes] [FLAGS] [P/O]

Marks dead letters as deleted, in the audit topic: they are not listed and not replayed any more.
They stay in the topic until its retention removes them, and can be restored until then.

  --dry-run           only say how many
  --yes               needed for more than one dead letter

  abate dlq delete --topic payments-dlq 3/1042
  abate dlq delete --topic payments-dlq --where 'class == "test"' --yes
`

const restoreUsage = `Usage: abate dlq restore [--dry-run | --yes] [FLAGS] [P/O]

Undoes deletions: the dead letters wait again, or count as replayed if they did before. With
--state replayed, dead letters that were replayed wait again.

  --dry-run           only say how many
  --yes               needed for more than one dead letter

  abate dlq restore --topic payments-dlq 3/1042
`

const exportUsage = `Usage: abate dlq export [--out FILE] [FLAGS] [P/O]

Writes dead letters as JSON lines with everything known: what failed, and the DLQ record byte for
byte. Keys and values are {"text": "..."} if they are UTF-8, else {"base64": "..."}; null is null.

  --out FILE          where to (default: standard output)

  abate dlq export --topic payments-dlq --state any --out letters.jsonl
`

const importUsage = `Usage: abate dlq import [--again] [FLAGS] FILE

Writes exported lines into the dead-letter topic as new dead letters, in one transaction: all of
them, or none if one line is wrong. "-" reads standard input.

  --again             import even if the same lines were imported before

  abate dlq import --topic payments-dlq letters.jsonl
`

const auditUsage = `Usage: abate dlq audit [--id ID] [FLAGS]

Prints who did what to the dead letters, the oldest first.

  --id ID             only this replay, import, deletion, ...

  abate dlq audit --topic payments-dlq
`

const cancelUsage = `Usage: abate dlq cancel [FLAGS] ID

Ends a replay, wherever it runs, within a second or two. It can be resumed.

  abate dlq cancel --topic payments-dlq r-5f0c11aa
`

const noteUsage = `Usage: abate dlq note [FLAGS] GROUP TEXT

Attaches a note to a group, where everybody sees it. An empty TEXT removes it.

  abate dlq note --topic payments-dlq 1a2b3c4d5e "the bank is down, ticket 4711"
`

func runTail(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if !f.json {
		fmt.Fprintf(stderr, "waiting for dead letters of %s\n", d.Topic())
	}
	err := d.Tail(ctx, func(e *dlq.Entry) {
		if f.json {
			printJSON(stdout, dlq.NewLine(e))
			return
		}
		fmt.Fprintln(stdout, letterLine(e, time.Now()))
	})
	if err != nil {
		return f.fail(stderr, err)
	}
	return 0
}

func defineYes(f *dlqFlags, set *flag.FlagSet) {
	set.BoolVar(&f.yes, "yes", false, "")
	set.BoolVar(&f.dryRun, "dry-run", false, "")
}

func runDelete(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	return f.mark(ctx, d, "delete", "deleted", d.Delete, stdout, stderr)
}

func runRestore(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if f.filter.State == "" {
		f.filter.State = dlq.Deleted
	}
	return f.mark(ctx, d, "restore", "restored", d.Restore, stdout, stderr)
}

// mark changes the state of letters: of more than one only with --yes.
func (f *dlqFlags) mark(ctx context.Context, d *dlq.Desk, verb, done string,
	do func(context.Context, dlq.Filter) (int, error), stdout, stderr io.Writer) int {
	if f.dryRun || !f.yes {
		n := 0
		if err := d.Each(ctx, f.filter, func(*dlq.Entry) bool { n++; return true }); err != nil {
			return f.fail(stderr, err)
		}
		if f.dryRun {
			f.tellCount(stdout, n, "%s would be %s", cli.Count(n, "letter"), done)
			return found(n)
		}
		if n > 1 {
			return f.fail(
				stderr, fmt.Errorf("this would %s %s: look at them with \"abate dlq ls --letters\", and say --yes to do it", verb,
					cli.Count(n, "letter")))
		}
	}
	n, err := do(ctx, f.filter)
	if n > 0 || err == nil {
		f.tellCount(stdout, n, "%s %s", cli.Count(n, "letter"), done)
	}
	if err != nil {
		return f.fail(stderr, err)
	}
	return found(n)
}

// tellCount says what was done, with --json only to how many letters.
func (f *dlqFlags) tellCount(w io.Writer, n int, format string, args ...any) {
	if f.json {
		printJSON(w, map[string]int{"count": n})
		return
	}
	fmt.Fprintf(w, format+"\n", args...)
}

func defineExport(f *dlqFlags, set *flag.FlagSet) { set.StringVar(&f.out, "out", "", "") }

func runExport(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if f.out == "" {
		n, err := d.Export(ctx, f.filter, stdout)
		if err != nil {
			return f.fail(stderr, err)
		}
		return found(n)
	}
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // customers' data
	if err != nil {
		return f.fail(stderr, fmt.Errorf("--out: %w", err))
	}
	n, err := d.Export(ctx, f.filter, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return f.fail(stderr, fmt.Errorf("%s is not complete: %w", f.out, err))
	}
	f.tellCount(stdout, n, "%s written to %s", cli.Count(n, "letter"), f.out)
	return found(n)
}

func defineImport(f *dlqFlags, set *flag.FlagSet) { set.BoolVar(&f.again, "again", false, "") }

func runImport(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if len(f.words) == 0 {
		return f.fail(stderr, errors.New("which file? Name what \"abate dlq export\" wrote, or - for standard input"))
	}
	file, err := openTwice(f.words[0])
	if err != nil {
		return f.fail(stderr, err)
	}
	defer file.Close()
	n, err := d.Import(ctx, file, f.again)
	if err != nil {
		return f.fail(stderr, err)
	}
	f.tellCount(stdout, n, "%s imported into %s", cli.Count(n, "letter"), d.Topic())
	return found(n)
}

// openTwice opens what is read twice: to check it, and to send it.
func openTwice(name string) (*os.File, error) {
	if name == cli.StdinName {
		return spool(os.Stdin)
	}
	return os.Open(name)
}

// spool copies a stream into a file that has no name.
func spool(r io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "abate-dlq-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // where that is not possible while it is open, it stays in the temporary folder
	if _, err = io.Copy(file, r); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func defineAudit(f *dlqFlags, set *flag.FlagSet) { set.StringVar(&f.id, "id", "", "") }

func runAudit(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	n := 0
	err := d.Actions(ctx, func(a *dlq.Action) bool {
		if f.id != "" && a.ID != f.id {
			return true
		}
		if n++; f.json {
			printJSON(stdout, a)
		} else {
			fmt.Fprintln(stdout, auditLine(a))
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return f.fail(stderr, err)
	}
	return found(n)
}

func auditLine(a *dlq.Action) string {
	text := fmt.Sprintf("%s  %-20s %-13s", stamp(a.Time), short(a.By, 40), short(string(a.Kind), 20))
	for _, part := range []string{a.ID, a.Place, a.Group} {
		if part != "" {
			text += " " + short(part, 300)
		}
	}
	if a.To != "" {
		text += " to " + short(a.To, 300)
	}
	if p := a.Progress; p != nil {
		text += fmt.Sprintf(" %s, %s", short(string(p.Phase), 20), standing(p))
	} else if a.Count > 0 {
		text += " " + cli.Count(a.Count, "letter")
	}
	if a.Text != "" {
		text += ": " + short(a.Text, 300)
	}
	return text
}

// standing says how the letters of a replay stand.
func standing(p *dlq.Progress) string {
	text := fmt.Sprintf("sent %d of %d: handled %d, failed again %d, still waiting %d", p.Sent, p.Chosen, p.Handled,
		p.Back, p.Waiting)
	if p.ETASeconds > 0 {
		text += " (about " + (time.Duration(p.ETASeconds) * time.Second).String() + " more)"
	}
	if p.Gone > 0 {
		text += fmt.Sprintf(", gone with their topic %d", p.Gone)
	}
	return text + fmt.Sprintf("; left out %d", p.Skipped)
}

func runCancel(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if len(f.words) == 0 {
		return f.fail(stderr, errors.New("which replay? Write its ID: \"abate dlq audit\" shows them"))
	}
	if err := d.Cancel(ctx, f.words[0]); err != nil {
		f.fail(stderr, err)
		return 1
	}
	fmt.Fprintf(stdout, "replay %s was asked to end\n", f.words[0])
	return 0
}

func runNote(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if len(f.words) < 2 {
		return f.fail(
			stderr, errors.New("a note needs the ID of a group and a text in quotes: \"abate dlq ls\" shows the groups"))
	}
	if err := d.Note(ctx, f.words[0], f.words[1]); err != nil {
		return f.fail(stderr, err)
	}
	fmt.Fprintf(stdout, "noted at group %s\n", f.words[0])
	return 0
}
