package kafkadrill

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/drill"
)

const (
	startLimit = 30 * time.Second // for topics and groups
	lastWait   = 3 * time.Second  // for what is left when nothing is written any more
	lookEvery  = 100 * time.Millisecond
)

// Run runs both acts at once and returns what came of them. When ctx is done it stops early: the result says so. It
// fails if c has problems, if there is no port or no broker, or if a topic does not take messages.
func Run(ctx context.Context, c Config) (*Result, error) {
	if problems := c.Problems(); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "\n"))
	}
	b, err := connect(ctx, c.Brokers)
	if b != nil {
		defer b.close()
	}
	var acts []*act
	if err == nil {
		for _, name := range []string{Unguarded, Guarded} {
			acts = append(acts, newAct(c, b, name))
		}
		err = c.run(ctx, acts)
	}
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	r := &Result{Setup: c.setup(), Interrupted: ctx.Err() != nil, Missed: []string{}}
	for _, a := range acts {
		if a.result != nil {
			r.Acts, r.LateSeconds = append(r.Acts, *a.result), max(r.LateSeconds, a.result.late)
		}
	}
	r.judge(c)
	return r, nil
}

func (c Config) run(ctx context.Context, acts []*act) error {
	d := drill.Drill{Length: c.length(), Drain: lastWait}
	if c.Progress != nil {
		d.EachSecond = func(at time.Duration) {
			p := Progress{Elapsed: at}
			for _, a := range acts {
				p.Acts = append(p.Acts, a.progress())
			}
			c.Progress(p)
		}
	}
	all := make([]drill.Act, len(acts))
	for i, a := range acts {
		all[i] = a
	}
	return d.Run(ctx, all...)
}
