package kafkatools

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/cmd/internal/cli"
)

const showUsage = `Usage: abate dlq show [--full] [FLAGS] P/O

Shows one dead letter, partition P, offset O: what failed and how often, where it came from, its
headers, key and value (bytes as a hex dump), the trace, and the command that replays it.

  --full              all of a value that is longer than 16 KB

  abate dlq show --topic payments-dlq 3/1042
`

// longestShown is what show prints of a value, in bytes.
const longestShown = 16 << 10

func defineShow(f *dlqFlags, set *flag.FlagSet) { set.BoolVar(&f.full, "full", false, "") }

func runShow(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if len(f.words) == 0 {
		return f.fail(stderr, errors.New("which letter? Write its partition and offset, for example 3/1042: \"abate dlq ls "+
			"--letters\" lists them"))
	}
	at, err := dlq.ParsePlace(d.Topic(), f.words[0])
	if err != nil {
		return f.fail(stderr, err)
	}
	e, err := d.Get(ctx, at.Partition, at.Offset)
	if err != nil {
		f.fail(stderr, err)
		return 1
	}
	if f.json {
		printJSON(stdout, dlq.NewLine(e))
		return 0
	}
	showFacts(stdout, e, time.Now())
	showContent(stdout, e, f.full)
	if e.State == dlq.Waiting {
		fmt.Fprintf(stdout, "\nReplay it:  abate dlq replay %s %d/%d\n", f.desk(), at.Partition, at.Offset)
	}
	return 0
}

// showFacts prints what is known of the failure.
func showFacts(w io.Writer, e *dlq.Entry, now time.Time) {
	l := &e.Letter
	row := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.TrimSpace(text) != "" {
			fmt.Fprintf(w, "%-11s %s\n", name, text)
		}
	}
	fmt.Fprintf(w, "%s\n\n", e.At)
	state := string(e.State)
	if !e.Changed.IsZero() {
		state += ", " + ago(now, e.Changed) + " by " + short(e.By, 60)
	}
	if e.Replay != "" {
		state += " (" + short(e.Replay, 40) + ")"
	}
	row("state", "%s", state)
	written := stamp(e.Written) + ", " + ago(now, e.Written)
	if !e.Purge.IsZero() {
		written += ", gone in " + span(e.Purge.Sub(now))
	}
	row("written", "%s", written)
	row("class", "%s", short(l.Class, 300))
	row("message", "%s", short(l.Message, 2000))
	failed := cli.Count(l.Failures, "failure")
	if !l.First.IsZero() {
		failed += ", the first " + stamp(l.First)
	}
	if !l.Last.IsZero() {
		failed += ", the last " + stamp(l.Last)
	}
	row("failed", "%s", failed)
	row("reason", "%s", short(l.Reason, 100))
	row("dialect", "%s", orNone(string(l.Dialect), l.Dialect == "", "no headers about a failure"))
	if l.Original.Topic != "" {
		row("from", "%s, %s %s", l.Original, stamp(l.Timestamp), short(l.TimestampType, 30))
	}
	if l.Identity.Known() {
		row("identity", "%s", l.Identity)
	}
	row("consumers", "%s", short(l.Group, 200))
	row("group", "%s", e.Group)
	if l.Replays > 0 {
		row("replayed", "%s before, the last time from %s", cli.Count(l.Replays, "time"), l.ReplayedFrom)
	}
	if l.Pointer {
		row("value", "was too large for the letter: it is still at %s, until retention takes it", l.Original)
	}
	for _, p := range e.Problems {
		row("problem", "%s", short(p.Error(), 300))
	}
	for i, p := range l.History {
		name := ""
		if i == 0 {
			name = "history"
		}
		row(name, "%s  %s  %s", stamp(p.At), short(p.Topic, 100), short(p.Class, 100))
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

// showContent prints headers, key, value and trace.
func showContent(w io.Writer, e *dlq.Entry, full bool) {
	l := &e.Letter
	if len(l.Headers) > 0 {
		fmt.Fprintln(w, "\nheaders")
	}
	for _, h := range l.Headers {
		switch {
		case h.Value == nil:
			fmt.Fprintf(w, "  %s: (null)\n", short(h.Key, 100))
		case readable(h.Value):
			fmt.Fprintf(w, "  %s: %s\n", short(h.Key, 100), short(string(h.Value), 1000))
		default:
			fmt.Fprintf(w, "  %s: 0x%x\n", short(h.Key, 100), h.Value[:min(len(h.Value), 100)])
		}
	}
	showBytes(w, "key", l.Key, full)
	showBytes(w, "value", l.Value, full)
	if l.Trace != "" {
		fmt.Fprintln(w, "\ntrace")
		for line := range strings.Lines(l.Trace) {
			fmt.Fprintf(w, "  %s\n", short(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    "), 300))
		}
	}
}

func showBytes(w io.Writer, name string, b []byte, full bool) {
	if b == nil {
		fmt.Fprintf(w, "\n%s (null)\n", name)
		return
	}
	fmt.Fprintf(w, "\n%s (%s)\n", name, cli.Count(len(b), "byte"))
	b, _ = dlq.Indent(b)
	cut := 0
	if !full && len(b) > longestShown {
		b, cut = b[:longestShown], len(b)-longestShown
	}
	if readable(bytes.ToValidUTF8(b, nil)) && (utf8.Valid(b) || cut > 0) {
		for line := range strings.Lines(string(bytes.ToValidUTF8(b, nil))) {
			fmt.Fprintf(w, "  %s\n", strings.TrimRight(line, "\r\n"))
		}
	} else {
		for line := range strings.Lines(hex.Dump(b)) {
			fmt.Fprint(w, "  ", line)
		}
	}
	if cut > 0 {
		fmt.Fprintf(w, "  ... %s more: --full\n", cli.Count(cut, "byte"))
	}
}

// readable reports whether text can be printed on a terminal without harm.
func readable(b []byte) bool {
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) // a lone \r has what follows write over what stands before it
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r)
	})
}
