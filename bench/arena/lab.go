package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate/bench/program"
)

// lab is what all runs of one command share.
type lab struct {
	ctx   context.Context
	opt   options
	log   io.Writer // progress, for the person waiting
	dir   string    // temporary
	abate string    // the built binary
	cells []*cell   // by contender, then by day

	oneRun func(contender, day, uint64) (result, error) // run, but in tests
}

// playAll plays every day with everybody, and reports. complete reports whether nothing failed.
func playAll(ctx context.Context, opt options, stdout, stderr io.Writer) (complete bool, err error) {
	l, err := newLab(ctx, opt, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(l.dir)) }()
	if err := l.prepare(); err != nil {
		return false, err
	}
	if err := l.play(); err != nil {
		return false, err
	}
	text := l.report()
	if _, err := io.WriteString(stdout, text); err != nil {
		return false, err
	}
	if opt.write != "" {
		if err := writeInto(opt.write, text); err != nil {
			return false, err
		}
	}
	l.say("curves: %s", filepath.Join(opt.out, pageName))
	return !slices.ContainsFunc(l.cells, func(c *cell) bool { return c.failed != nil }), nil
}

func newLab(ctx context.Context, opt options, log io.Writer) (*lab, error) {
	if !program.Supported {
		return nil, errors.New("process groups are ended together, so this needs Linux")
	}
	if _, err := program.RaiseFileLimit(); err != nil {
		return nil, err
	}
	l := &lab{ctx: ctx, opt: opt, log: log}
	l.oneRun = l.run
	l.newCells()
	dir, err := os.MkdirTemp("", "abate-arena-")
	if err != nil {
		return nil, err
	}
	l.dir = dir
	// The workers of an nginx started as root are nobody, and pass through here to their own folders.
	return l, errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(opt.out, 0o755))
}

// newCells makes room for the results.
func (l *lab) newCells() {
	for _, c := range l.opt.contenders {
		for _, d := range l.opt.days {
			l.cells = append(l.cells, &cell{contender: c.name, day: d})
		}
	}
}

// prepare finds out who can take part, and builds abate if anybody needs it.
func (l *lab) prepare() error {
	for i, c := range l.opt.contenders {
		if c.available == nil {
			continue
		}
		err := c.available(l.ctx)
		if missing := program.Missing(""); errors.As(err, &missing) {
			l.say("%s: %s", c.name, missing)
			for j := range l.opt.days {
				l.cell(i, j).absent = missing.Error()
			}
		} else if err != nil {
			return err
		}
	}
	if slices.ContainsFunc(l.opt.contenders, func(c contender) bool { return strings.HasPrefix(c.name, ours) }) {
		l.abate = filepath.Join(l.dir, "abate")
		if err := program.BuildAbate(l.ctx, l.abate); err != nil {
			return err
		}
	}
	return l.ctx.Err()
}

// ours begins the names of abate's contenders.
const ours = "abate "

func (l *lab) say(format string, args ...any) { fmt.Fprintf(l.log, format+"\n", args...) }

func (l *lab) cell(contender, day int) *cell { return l.cells[contender*len(l.opt.days)+day] }

// play plays pass by pass, day by day, a few contenders beside each other: a slow minute hits all of them.
func (l *lab) play() error {
	l.say("%d contenders, %d days, %d times, %d at a time: about %v", len(l.opt.contenders), len(l.opt.days), l.opt.passes,
		l.opt.beside, l.opt.lasts().Round(time.Minute))
	for pass := range l.opt.passes {
		for j, d := range l.opt.days {
			var all []int
			for i := range l.opt.contenders {
				if c := l.cell(i, j); c.absent == "" && c.failed == nil {
					all = append(all, i)
				}
			}
			// Who plays beside whom changes from day to day and from pass to pass.
			for batch := range slices.Chunk(rotate(all, pass+j), l.opt.beside) {
				if err := l.batch(batch, j, l.opt.seed+uint64(pass*len(allDays)+j)); err != nil {
					return err
				}
			}
			l.sayDay(pass, d, j)
			if err := l.writePage(); err != nil {
				return err
			}
		}
	}
	return nil
}

// rotate begins a list at another place.
func rotate(all []int, by int) []int {
	if len(all) == 0 {
		return nil
	}
	by %= len(all)
	return append(slices.Clone(all[by:]), all[:by]...)
}

// outcome is one contender's run.
type outcome struct {
	result
	err error
}

// bad reports whether the run should be repeated: it was disturbed, or a program did not start or ended, which on a
// busy machine comes to the same.
func (o outcome) bad() bool { return o.err != nil || o.late.disturbs() }

// better reports whether it should count instead of an earlier one.
func (o outcome) better(than outcome) bool {
	return o.err == nil && (than.err != nil || than.late.worse(o.late))
}

// batch plays a day with some contenders at the same time, and again with those whose run was disturbed.
func (l *lab) batch(who []int, day int, seed uint64) error {
	best := make(map[int]outcome)
	for try := 0; len(who) > 0 && try <= l.opt.repeats; try++ {
		got := make([]outcome, len(who))
		var running sync.WaitGroup
		for n, i := range who {
			running.Go(func() { got[n].result, got[n].err = l.oneRun(l.opt.contenders[i], l.opt.days[day], seed) })
		}
		running.Wait()
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		var again []int
		for n, i := range who {
			c, now := l.cell(i, day), got[n]
			if now.err != nil {
				l.say("%s, %s: %v", c.contender, c.day.name, now.err)
			}
			if before, is := best[i]; !is || now.better(before) {
				best[i] = now
			}
			if best[i].bad() && try < l.opt.repeats {
				c.repeated++
				again = append(again, i)
			}
		}
		who = again
	}
	for i, o := range best {
		if c := l.cell(i, day); o.err != nil {
			c.failed = o.err
		} else {
			c.results = append(c.results, o.result)
		}
	}
	return nil
}

// sayDay is a line for the person waiting.
func (l *lab) sayDay(pass int, d day, j int) {
	parts := make([]string, 0, len(l.opt.contenders))
	for i, c := range l.opt.contenders {
		if n := len(l.cell(i, j).results); n > 0 {
			r := l.cell(i, j).results[n-1]
			parts = append(parts, fmt.Sprintf("%s %.1f/%s", c.name, 100*r.share(), backText(r.back(faultEnd))))
		}
	}
	l.say("pass %d of %d, %s: %s", pass+1, l.opt.passes, d.name, strings.Join(parts, ", "))
}
