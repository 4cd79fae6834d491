// Package kafkatools has the commands that need a Kafka client.
package kafkatools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/cmd/internal/cli"
)

const dlqUsage = `Usage: abate dlq COMMAND --brokers HOST:PORT[,...] --topic TOPIC [FLAGS] [ARGS]

Manages the dead letters of a Kafka topic: those of Abate, Spring Kafka, Kafka Connect, Kafka
Streams and share groups. It only reads the topic, and records what people do in TOPIC-audit.

  ls              list dead letters in groups by error and trace, the largest first
  show P/O        print one dead letter in full: partition P, offset O
  tail            print dead letters as they arrive, until Ctrl-C
  replay          send dead letters back to their topics, in growing batches that are checked
  delete          mark dead letters as deleted; they stay until the topic's retention removes them
  restore         make deleted dead letters wait again
  export, import  write and read dead letters as JSON lines, byte for byte
  audit           print who did what
  cancel ID       end a replay, wherever it runs
  note ID TEXT    attach a note to a group
  serve           serve the same as a page for the browser

"abate dlq COMMAND -h" explains a command. All of them take:

  --brokers LIST          addresses of some brokers; default $ABATE_BROKERS
  --topic TOPIC           the dead-letter topic; without it, the command lists those that exist
  --audit TOPIC           the audit topic (default TOPIC-audit)
  --by NAME               who acts, for the audit (default: user@host of this process)
  --consumer-group NAME   only dead letters of this consumer group
  --tls                   connect with TLS
  --ca FILE               certificates of the authorities to trust, PEM (default: the system's)
  --cert FILE, --key FILE the client's certificate and key, PEM
  --sasl KIND             plain, scram-256 or scram-512, with --user and --password-file
  --user NAME
  --password-file FILE    its first line is the password
  --json                  JSON lines instead of text

For example, at 3 a.m.:

  export ABATE_BROKERS=kafka-1:9092
  abate dlq ls --topic payments-dlq
  abate dlq ls --topic payments-dlq --letters --group 1a2b
  abate dlq show --topic payments-dlq 3/1042
  abate dlq replay --topic payments-dlq --group 1a2b --dry-run
  abate dlq replay --topic payments-dlq --group 1a2b --yes

Exit code: 0 done, 1 nothing was found, or a replay stopped, 2 wrong usage, or the brokers cannot be
reached.
`

// filterUsage is a part of several helps.
const filterUsage = `Which dead letters (all conditions must hold; default: all that wait):

  --group ID          those of one group, or of all groups whose ID begins with ID
  --where EXPRESSION  see below
  --from T, --until T written at or after, before: 2026-01-31T10:20:30Z, 2026-01-31 or 2h (ago)
  --partition N       of the dead-letter topic
  --offsets A..B      in it, A included and B not; either may be missing
  --state S           waiting, replayed, deleted or any
  --max N             the first N only
  P/O                 the one at this partition and offset

`

// dlqAction is one of the commands of "abate dlq".
type dlqAction struct {
	name, usage string
	most        int // words
	filters     bool
	define      func(f *dlqFlags, set *flag.FlagSet)
	run         func(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int
}

// dlqActions are those that work on an open desk and end. "serve" is apart.
func dlqActions() []dlqAction {
	return []dlqAction{
		{"ls", lsUsage, 1, true, defineLs, runLs},
		{"show", showUsage, 1, false, defineShow, runShow},
		{"tail", tailUsage, 0, false, nil, runTail},
		{"replay", replayUsage, 1, true, defineReplay, runReplay},
		{"delete", deleteUsage, 1, true, defineYes, runDelete},
		{"restore", restoreUsage, 1, true, defineYes, runRestore},
		{"export", exportUsage, 1, true, defineExport, runExport},
		{"import", importUsage, 1, false, defineImport, runImport},
		{"audit", auditUsage, 0, false, defineAudit, runAudit},
		{"cancel", cancelUsage, 1, false, nil, runCancel},
		{"note", noteUsage, 2, false, nil, runNote},
	}
}

// DlqCommand is "abate dlq".
func DlqCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, dlqUsage)
		return 2
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, dlqUsage)
		return 0
	case "serve":
		return dlqServe(ctx, args[1:], stdout, stderr)
	}
	for _, a := range dlqActions() {
		if a.name == args[0] {
			return a.command(ctx, args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "abate dlq: there is no command %q\n\n%s", args[0], dlqUsage)
	return 2
}

// help is the whole help of a command.
func (a *dlqAction) help() string {
	text := a.usage
	if a.filters {
		text += "\n" + filterUsage + dlq.ExpressionHelp
	}
	return text + "\n\"abate dlq -h\" has the flags that all commands take.\n"
}

func (a *dlqAction) command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseDLQ(a, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, a.help())
		return 0
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "abate dlq %s: %s\n", a.name, strings.TrimSuffix(strings.TrimPrefix(line, "dlq: "), "\n"))
		}
		fmt.Fprintf(stderr, "\n\"abate dlq %s -h\" explains it.\n", a.name)
		return 2
	}
	if ok := f.findTopic(ctx, stderr); !ok {
		return 2
	}
	d, err := dlq.Open(ctx, f.config)
	if err != nil {
		return f.fail(stderr, err)
	}
	defer d.Close()
	return a.run(ctx, f, d, stdout, stderr)
}

// fail prints an error and returns the exit code for it.
func (f *dlqFlags) fail(stderr io.Writer, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "abate dlq %s: %s\n", f.action, strings.TrimSuffix(strings.TrimPrefix(line, "dlq: "), "\n"))
	}
	return 2
}

// findTopic finds the dead-letter topic if none was named: the only one there is. Else it lists them.
func (f *dlqFlags) findTopic(ctx context.Context, stderr io.Writer) bool {
	if f.config.Topic != "" {
		return true
	}
	topics, err := dlq.Topics(ctx, f.config)
	switch {
	case err != nil:
		f.fail(stderr, err)
		return false
	case len(topics) == 0:
		fmt.Fprintf(stderr, "abate dlq %s: no topic's name ends with -dlq, -dlt or .DLT: name one with --topic\n", f.action)
		return false
	case len(topics) == 1:
		f.config.Topic = topics[0].Name
		return true
	}
	fmt.Fprintf(stderr, "abate dlq %s: which topic? Say --topic and one of:\n\n", f.action)
	for _, t := range topics {
		fmt.Fprintf(stderr, "  %-40s %s\n", t.Name, cli.Count(int(t.Records), "record"))
	}
	return false
}
