package kafkatools

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/cmd/internal/cli"
)

const lsUsage = `Usage: abate dlq ls [--letters] [FLAGS] [P/O]

Lists dead letters in groups, the largest first. The dead letters of a group have one class of error
and one trace, or without a trace one message; numbers, ids, times and quoted text do not count.

  --letters           list the dead letters instead of groups, in the order of the topic

  abate dlq ls --topic payments-dlq
  abate dlq ls --topic payments-dlq --letters --group 1a2b --max 20
  abate dlq ls --topic payments-dlq --from 2h --where 'failures > 3 && json("amount") > 100'
`

func defineLs(f *dlqFlags, set *flag.FlagSet) { set.BoolVar(&f.letters, "letters", false, "") }

func runLs(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	if f.letters {
		return listLetters(ctx, f, d, stdout, stderr)
	}
	groups, err := d.Groups(ctx, f.filter)
	if err != nil {
		return f.fail(stderr, err)
	}
	if f.json {
		for i := range groups {
			printJSON(stdout, &groups[i])
		}
		return found(len(groups))
	}
	total := 0
	for i := range groups {
		total += groups[i].Count
	}
	now := time.Now()
	fmt.Fprintf(stdout, "%s: %s%s\n", d.Topic(), cli.Count(total, "dead letter"), kept(d, total, len(groups)))
	if total == 0 {
		fmt.Fprintln(stdout, "\nNone wait. For those that were replayed or deleted: --state any")
		return 1
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nCOUNT\tLAST\tFIRST\tARRIVALS\tGROUP\tCLASS\tWHAT")
	for i := range groups {
		g := &groups[i]
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", g.Count, ago(now, g.Last), ago(now, g.First), spark(g.Arrivals), g.ID,
			short(g.Class, 40), short(g.Pattern, 100))
		if g.Traced && g.Message != "" {
			fmt.Fprintf(w, "\t\t\t\t\t\t%s\n", short(g.Message, 100))
		}
		if g.Again > 0 {
			fmt.Fprintf(w, "\t\t\t\t\t\t%s replayed before and here again\n", were(g.Again))
		}
		if g.Note != "" {
			fmt.Fprintf(w, "\t\t\t\t\t\tnote: %s\n", short(g.Note, 200))
		}
	}
	w.Flush()
	fmt.Fprintf(stdout, "\nLetters of a group:  abate dlq ls %s --letters --group %s\n", f.desk(), groups[0].ID)
	return 0
}

func were(n int) string {
	if n == 1 {
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
}

func kept(d *dlq.Desk, total, groups int) string {
	text := ""
	if total > 0 {
		text = " in " + cli.Count(groups, "group")
	}
	if r := d.Retention(); r > 0 {
		text += ", kept for " + span(r)
	}
	return text
}

func listLetters(ctx context.Context, f *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
	n, now := 0, time.Now()
	err := d.Each(ctx, f.filter, func(e *dlq.Entry) bool {
		if n++; f.json {
			printJSON(stdout, dlq.NewLine(e))
		} else {
			fmt.Fprintln(stdout, letterLine(e, now))
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return f.fail(stderr, err)
	}
	if n > 0 && !f.json {
		fmt.Fprintf(stdout, "\n%s. All of one:  abate dlq show %s PARTITION/OFFSET\n", cli.Count(n, "letter"), f.desk())
	}
	return found(n)
}

// letterLine is a letter in one line: its place, when, its group, key, class and message.
func letterLine(e *dlq.Entry, now time.Time) string {
	state := ""
	if e.State != dlq.Waiting {
		state = string(e.State) + "  "
	}
	return fmt.Sprintf("%-12s %-9s %s  %s%s  %s: %s", fmt.Sprintf("%d/%d", e.At.Partition, e.At.Offset),
		ago(now, e.Written), e.Group, state,
		short(orNone(string(e.Letter.Key), e.Letter.Key == nil, "no key"), 30),
		short(orNone(e.Letter.Class, e.Letter.Class == "", "no class"), 40), short(e.Letter.Message, 100))
}

func orNone(text string, none bool, instead string) string {
	if none {
		return "(" + instead + ")"
	}
	return text
}

// found is the exit code of commands that look for something.
func found(n int) int {
	if n == 0 {
		return 1
	}
	return 0
}

func printJSON(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // of types that can be; a closed pipe ends the program
}

// ago is how long before now, in one unit.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span(now.Sub(t)) + " ago"
}

// span is a duration in its largest unit.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

func spark(counts []int) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	top := 1
	for _, n := range counts {
		top = max(top, n)
	}
	var b strings.Builder
	for _, n := range counts {
		if n == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(levels[min(n*len(levels)/(top+1), len(levels)-1)])
	}
	return b.String()
}

// short is text of a stranger in one line of at most n characters: nothing in it can move the cursor or colour the
// screen.
func short(text string, n int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(text, "·")))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}
