package abateredis

import (
	"context"
	"errors"
	"math"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// refill is a flight in the background: for another batch, or to bring back what was not used.
type refill struct {
	limiter  *Limiter
	bucket   *bucket
	flight   *flight
	giveBack bool
}

// pipelined is how many buckets are asked about in one round trip at most, and queued how many may wait for it.
const (
	pipelined = 128
	queued    = 1024
)

// refilling fetches batches until the fleet is closed. While one round trip is under way the next ones gather.
func (f *Fleet) refilling() {
	for {
		select {
		case <-f.ctx.Done():
			return
		case r := <-f.refills:
			all := []refill{r}
			for len(all) < pipelined && len(f.refills) > 0 {
				all = append(all, <-f.refills) // nobody else receives
			}
			f.refill(f.ctx, all)
		}
	}
}

// abandon ends the flights that have not begun when the fleet is closed, so that nobody waits for them.
func (f *Fleet) abandon() {
	for len(f.refills) > 0 {
		r := <-f.refills // nobody else receives any more
		r.bucket.arrive(r.flight, errClosed)
	}
}

// refill asks about many buckets at once.
func (f *Fleet) refill(ctx context.Context, all []refill) {
	now := core.Now()
	questions := make([]question, len(all))
	for i, r := range all {
		if questions[i] = (question{limiter: r.limiter, bucket: r.bucket}); r.giveBack {
			questions[i].Question = r.bucket.lease.GiveBack(now, r.limiter.terms)
		} else {
			questions[i] = r.limiter.question(r.bucket, now, 0)
		}
	}
	replies := make([]taken, len(all))
	errs := make([]error, len(all))
	sendErr := f.ask(ctx, "refill", func(ctx context.Context, l *link) error {
		return takeMany(ctx, l, questions, replies, errs)
	})
	now = core.Now()
	for i, r := range all {
		err := errs[i]
		if sendErr != nil {
			err = sendErr
		}
		switch {
		case err == nil:
			r.limiter.answer(now, questions[i], replies[i])
		case errors.Is(err, abate.ErrCircuitOpen): // not sent, so nothing is lost
			r.bucket.lease.Unsent(questions[i].Question)
			fallthrough
		default:
			r.limiter.watch(r.bucket) // what is owed, or has not been brought back, is still to be
			r.bucket.lease.Failed(now)
		}
		r.bucket.arrive(r.flight, err)
	}
}

// arguments are those of take.lua.
func (q question) arguments() []any {
	t := q.limiter.terms
	return []any{t.Burst(), t.Rate() * 1000, q.Need, q.Want, q.Back, int64(math.Ceil(q.Debt)), int64(q.Most), t.Deepest()}
}

func (f *Fleet) take(q question) (reply taken, err error) {
	err = f.ask(f.ctx, "take", func(ctx context.Context, l *link) error {
		v, err := takeScript.Run(ctx, l.client, []string{l.key(q.bucket.redis, "")}, q.arguments()...).Result()
		if err == nil {
			reply, err = parseTaken(v, q.Need, q.Want, q.limiter.terms.Deepest(), q.limiter.terms.Burst())
		}
		return err
	})
	if errors.Is(err, abate.ErrCircuitOpen) {
		q.bucket.lease.Unsent(q.Question)
	}
	return reply, err
}

// takeMany asks about many buckets in one round trip. It returns an error if none of them got an answer.
func takeMany(ctx context.Context, l *link, questions []question, replies []taken, errs []error) error {
	results := runAll(ctx, l, takeScript, takeText, len(questions), func(i int) (string, []any) {
		return l.key(questions[i].bucket.redis, ""), questions[i].arguments()
	})
	answered := false
	for i, q := range questions {
		v, err := results[i].Result()
		if err == nil {
			replies[i], err = parseTaken(v, 0, q.Want, q.limiter.terms.Deepest(), q.limiter.terms.Burst())
		}
		errs[i] = err
		answered = answered || err == nil
	}
	if answered {
		return nil
	}
	return errs[0]
}
