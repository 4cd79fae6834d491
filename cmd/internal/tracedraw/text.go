package tracedraw

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	bars   = 48 // columns of the drawing
	labels = 36 // columns of the names
)

// text draws with characters.
func (d *drawing) text(w io.Writer) {
	fmt.Fprintf(w, "trace %s, %s\n\n", d.trace, round(d.took))
	for _, l := range d.lines {
		name := fit(strings.Repeat("  ", l.depth)+l.label, labels)
		from, to := d.column(l.from, bars), d.column(l.to, bars)
		mark := "━"
		if l.wait {
			mark = "╌"
		} else if l.failed {
			mark = "▒"
		}
		bar := strings.Repeat(" ", from) + strings.Repeat(mark, max(to-from, 1))
		fmt.Fprintf(w, "%s %s  %s\n", pad(name, labels), pad(bar, bars+1), l.about)
	}
}

// column is where a time is, among so many.
func (d *drawing) column(at time.Duration, columns int) int {
	if d.took <= 0 {
		return 0
	}
	share := float64(at) / float64(d.took) // far outside if the times of a file make no sense
	return int(min(max(share, 0), 1) * float64(columns))
}

func fit(s string, columns int) string {
	if utf8.RuneCountInString(s) <= columns {
		return s
	}
	return string([]rune(s)[:columns-1]) + "…"
}

func pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(columns-utf8.RuneCountInString(s), 0))
}
