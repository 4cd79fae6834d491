package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// promise is one number to reach: abate's middle value, as a ratio to a peer's when there is one, is at most limit.
type promise struct {
	what    string
	metric  metric
	of      string // the target, if it is not abate
	peer    string
	limit   float64
	atLeast bool // at least limit instead
	more    bool // so much more than the peer's instead of a ratio
}

// verdict is what the rows say about one promise.
type verdict struct {
	promise
	ours, peers float64
	value       float64 // what is compared with the limit
	word        string
}

// judge compares every promise with the rows.
func judge(promises []promise, rows []row) []verdict {
	all := make([]verdict, len(promises))
	for i, p := range promises {
		all[i] = p.judge(rows)
	}
	return all
}

func (p promise) judge(rows []row) verdict {
	v := verdict{promise: p, word: "not measured"}
	of := ourProxy
	if p.of != "" {
		of = p.of
	}
	ours, ok := find(rows, of).middle(p.metric)
	if !ok {
		return v
	}
	v.ours, v.value = ours, ours
	if p.peer != "" {
		peers, ok := find(rows, p.peer).middle(p.metric)
		if !ok || peers == 0 {
			v.word = p.peer + " was not measured"
			return v
		}
		if v.peers, v.value = peers, ours/peers; p.more {
			v.value = ours - peers
		}
	}
	v.word = "MISS"
	if p.atLeast && v.value >= p.limit || !p.atLeast && v.value <= p.limit {
		v.word = "ok"
	}
	return v
}

func writeVerdicts(w io.Writer, all []verdict) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "target of the project\tabate\tmeasured\twanted\tverdict")
	for _, v := range all {
		sign, times := "<=", ""
		if v.atLeast {
			sign = ">="
		}
		switch {
		case v.more:
			times = " more than " + v.peer
		case v.peer != "":
			times = " × " + v.peer
		}
		ours, value := "-", "-"
		if v.word == "ok" || v.word == "MISS" {
			ours, value = fmt.Sprintf("%.4g", v.ours), fmt.Sprintf("%.2f%s", v.value, times)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s %.2f%s\t%s\n", v.what, ours, value, sign, v.limit, times, v.word)
	}
	return tw.Flush()
}
