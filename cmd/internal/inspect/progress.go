package inspect

import (
	"fmt"
	"io"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
)

// quietFor is how long nothing is shown: an audit of a small tree needs no progress.
const quietFor = time.Second

// progress shows how far an audit is.
type progress struct {
	cli.Live
	quiet bool
	began time.Time
	last  time.Time
}

func newProgress(out io.Writer, quiet bool) *progress {
	now := time.Now()
	return &progress{Live: cli.NewLive(out), quiet: quiet, began: now, last: now}
}

func (p *progress) files(n int) {
	now := time.Now()
	if !p.quiet && p.Terminal && now.Sub(p.began) > quietFor && now.Sub(p.last) > quietFor/10 {
		p.last = now
		p.Show(fmt.Sprintf("%d files read", n))
	}
}

func (p *progress) changes() {
	if !p.quiet && p.Terminal {
		p.Show("looking for the fewest numbers to change")
	}
}

func (p *progress) outage(service string, n, of int) {
	if !p.quiet {
		p.Show(fmt.Sprintf("playing the outage of %s (%d of %d)", service, n, of))
	}
}
