package validation

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// job is some runs of one experiment.
type job struct{ experiment, from, to int }

// pieces is in how many jobs an experiment is cut, so that all processors have work to the end.
const pieces = 8

// jobs cuts all experiments, in the same way on any number of processors.
func jobs(all []experiment) []job {
	var list []job
	for i := range all {
		n := min(pieces, all[i].runs)
		for p := range n {
			list = append(list, job{i, p * all[i].runs / n, (p + 1) * all[i].runs / n})
		}
	}
	return list
}

// Run makes all experiments, GOMAXPROCS runs at a time, and returns their rows, always in the same order and with the
// same numbers. It takes less than a minute on two cores. progress, which may be nil, is told how many of all runs are
// done, never by two goroutines at once. When ctx is done Run returns no rows, and why.
func Run(ctx context.Context, progress func(done, of int)) ([]Row, error) {
	return run(ctx, experiments(), progress)
}

func run(ctx context.Context, all []experiment, progress func(done, of int)) ([]Row, error) {
	results := make([][][]float64, len(all))
	total := 0
	for i := range all {
		results[i] = make([][]float64, all[i].runs)
		total += all[i].runs
	}
	list := jobs(all)
	errs := make([]error, len(list))
	waiting := make(chan int, len(list))
	for i := range list {
		waiting <- i
	}
	close(waiting)
	var (
		mu      sync.Mutex
		done    int
		workers sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range waiting {
				if ctx.Err() != nil {
					return
				}
				j := list[i]
				errs[i] = all[j.experiment].measure(j.from, j.to, results[j.experiment], func() bool { return ctx.Err() != nil })
				mu.Lock()
				if done += j.to - j.from; progress != nil {
					progress(done, total)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return rows(all, results), nil
}

// rows judges all claims.
func rows(all []experiment, results [][][]float64) []Row {
	var list []Row
	for i := range all {
		x := &all[i]
		for c := range x.claims {
			values := make([]float64, x.runs)
			for run := range values {
				values[run] = results[i][run][c]
			}
			list = append(list, judge(x.source, &x.claims[c], values))
		}
	}
	return list
}
