package rehearse

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/sim"
)

// How often progress is shown: on a terminal, and in a log.
const (
	redraw  = 100 * time.Millisecond
	logging = 5 * time.Second
)

// simProgress shows how far the runs are: a bar on a terminal, else a line now and then, so that a log shows that
// something goes on and a quick study writes none.
type simProgress struct {
	cli.Live
	quiet bool
	now   func() time.Time
	last  time.Time // when something was shown
}

func newSimProgress(out io.Writer, quiet bool) *simProgress {
	return &simProgress{Live: cli.NewLive(out), quiet: quiet, now: time.Now, last: time.Now()}
}

// of returns what sim.Run tells about the i-th of n scenarios.
func (p *simProgress) of(file string, i, n int) func(sim.Progress) {
	name := filepath.Base(file)
	if n > 1 {
		name += fmt.Sprintf(" (%d of %d)", i, n)
	}
	began := p.now()
	return func(at sim.Progress) {
		now := p.now()
		wait := logging
		if p.Terminal {
			wait = redraw
		}
		if p.quiet || now.Sub(p.last) < wait {
			return
		}
		p.last = now
		elapsed := now.Sub(began)
		line := fmt.Sprintf("%s  %s: %s %d of %d after %.0f s", name, at.Variant, at.Stage, at.Done, at.Of, elapsed.Seconds())
		if p.Terminal {
			line = bar(name, at, elapsed)
		}
		p.Show(line)
	}
}

// bar is one line of at most 79 columns: one that wraps could not be drawn over.
func bar(name string, at sim.Progress, elapsed time.Duration) string {
	const cells, widest = 16, 79
	filled := 0
	if at.Of > 0 {
		filled = min(max(cells*at.Done/at.Of, 0), cells)
	}
	line := fmt.Sprintf("%s%s %d of %d  %.0f s", strings.Repeat("█", filled), strings.Repeat("░", cells-filled), at.Done,
		at.Of, elapsed.Seconds())
	if rate := float64(at.Events) / elapsed.Seconds() / 1e6; elapsed >= time.Second && rate >= 0.1 {
		line += fmt.Sprintf("  %.1f M events/s", rate)
	}
	line += fmt.Sprintf("  %s  %s: %s", at.Stage, name, at.Variant)
	if runes := []rune(line); len(runes) > widest {
		line = string(runes[:widest-1]) + "…"
	}
	return line
}
