package harm

import (
	"fmt"
	"strings"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// rows is how many rows a timeline has, about.
const rows = 40

// Timeline runs one system and shows, row by row of time, which share of the requests that began then was answered in
// time under each policy, and beside it how many the gates of the service with the trouble let in at once. A row with a
// star is during the trouble. It ends with how requests ended.
func Timeline(s *System, policies []Policy, seed uint64) (string, error) {
	text := s.Text(policies, nil)
	parsed, err := scenario.Parse(fmt.Sprintf("system-%d.yaml", s.Number), []byte(text))
	if err != nil {
		return "", err
	}
	records := make([]*engine.Record, len(policies))
	for i := range parsed.Variants {
		e, err := engine.New(parsed, &parsed.Variants[i])
		if err == nil {
			records[i], err = e.Run(seed, false, nil)
		}
		if err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString(text + "\n")
	course(&b, s, policies, records)
	b.WriteString("\n")
	ends(&b, policies, records)
	return b.String(), nil
}

// course shows a row for each stretch of time.
func course(b *strings.Builder, s *System, policies []Policy, records []*engine.Record) {
	w := columns(b)
	fmt.Fprint(w, "from\toffered\t")
	for i := range policies {
		fmt.Fprintf(w, "%s\t", policies[i].Name)
		if policies[i].Gate != "" {
			fmt.Fprintf(w, "limit of %s\t", s.Services[s.Target].Name)
		}
	}
	fmt.Fprintln(w)
	first := records[0]
	bins := len(first.Fleets[0].Offered)
	step := max(1, bins/rows)
	for from := 0; from < bins; from += step {
		to := min(from+step, bins)
		at := time.Duration(from) * first.Bin
		mark := ""
		if at >= first.Begin && at < first.End {
			mark = "*"
		}
		fmt.Fprintf(w, "%s%v\t%.0f\t", mark, at, add(first.Fleets[0].Offered[from:to]))
		for i, r := range records {
			f := &r.Fleets[0]
			fmt.Fprintf(w, "%s\t", answered(add(f.Good[from:to]), add(f.Offered[from:to])))
			if policies[i].Gate != "" {
				fmt.Fprintf(w, "%d\t", r.Services[s.Target].Limit[to-1])
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

func answered(good, offered float64) string {
	if offered == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", perHundred*good/offered)
}

func add(series []uint32) float64 {
	var sum float64
	for _, n := range series {
		sum += float64(n)
	}
	return sum
}

// ends shows how requests ended, and how many attempts were sent.
func ends(b *strings.Builder, policies []Policy, records []*engine.Record) {
	w := columns(b)
	fmt.Fprint(w, "ended\t")
	for i := range policies {
		fmt.Fprintf(w, "%s\t", policies[i].Name)
	}
	fmt.Fprintln(w)
	for k := range engine.EndKinds {
		var sum int64
		for _, r := range records {
			sum += r.Fleets[0].Ends[k]
		}
		if sum == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t", k)
		for _, r := range records {
			fmt.Fprintf(w, "%d\t", r.Fleets[0].Ends[k])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "attempts\t")
	for _, r := range records {
		fmt.Fprintf(w, "%d\t", r.Attempts)
	}
	fmt.Fprintln(w)
	w.Flush()
}
