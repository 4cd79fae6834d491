package dlq

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Each calls fn for every dead letter that f chooses, in the order of the partitions and offsets, until it returns
// false. It reads to where the topic ends now. Cost: it reads what f's partition, offsets and From leave; all else is
// decided after reading.
func (d *Desk) Each(ctx context.Context, f Filter, fn func(*Entry) bool) error {
	s, spans, err := d.spans(ctx, f, nil)
	if err != nil {
		return err
	}
	left, going, once := s.Max, true, twins{}
	for _, p := range spans {
		err := d.scan(ctx, d.config.Topic, []span{p}, d.through(s, once, func(e *Entry) bool {
			left--
			going = fn(e) && left != 0
			return going
		}))
		if err != nil || !going {
			return err
		}
	}
	return nil
}

// choose is Each in any order of the partitions, which is faster. Max is then any so many.
func (d *Desk) choose(ctx context.Context, f Filter, fn func(*Entry) bool) error {
	s, spans, err := d.spans(ctx, f, nil)
	if err != nil {
		return err
	}
	left := s.Max
	return d.scan(ctx, d.config.Topic, spans, d.through(s, twins{}, func(e *Entry) bool {
		left--
		return fn(e) && left != 0
	}))
}

// through makes entries of records and calls fn for those that the filter chooses, of each letter for the first record
// only.
func (d *Desk) through(s *sieve, once twins, fn func(*Entry) bool) func(*kgo.Record) bool {
	return func(r *kgo.Record) bool {
		if !s.early(r) {
			return true
		}
		if e := d.entry(r); s.passes(e) && once.first(e.twin) {
			return fn(e)
		}
		return true
	}
}

// spans checks the filter, reads what is new in the audit, and finds what is to be read, by partition. ends, if there
// are any, bound it.
func (d *Desk) spans(ctx context.Context, f Filter, ends map[int32]int64) (*sieve, []span, error) {
	s, err := d.sieve(f)
	if err != nil {
		return nil, nil, err
	}
	if err := d.audit.sync(ctx); err != nil {
		return nil, nil, err
	}
	bounds, err := d.bounds(ctx, d.config.Topic)
	if err != nil {
		return nil, nil, err
	}
	if _, ok := bounds[f.Partition]; f.Partition >= 0 && !ok {
		return nil, nil, fmt.Errorf("dlq: %s has no partition %d: it has %d, from 0", d.config.Topic, f.Partition,
			len(bounds))
	}
	topics, err := d.admin.ListTopics(ctx, d.config.Topic) // it may have been created anew
	if err != nil {
		return nil, nil, fmt.Errorf("dlq: ask about topic %s: %w", d.config.Topic, err)
	}
	d.identify(topics)
	d.ledger.prune(bounds, time.Now(), d.retention)
	var after kadm.ListedOffsets
	if !f.From.IsZero() {
		if after, err = d.admin.ListOffsetsAfterMilli(ctx, f.From.UnixMilli(), d.config.Topic); err != nil {
			return nil, nil, fmt.Errorf("dlq: ask where the letters since %s begin: %w", f.From, err)
		}
	}
	var spans []span
	for partition, p := range bounds {
		p = s.narrow(p)
		if o, ok := after.Lookup(d.config.Topic, partition); ok && o.Err == nil {
			p.from = max(p.from, o.Offset)
		}
		if ends != nil {
			p.to = min(p.to, ends[partition])
		}
		if p.from < p.to {
			spans = append(spans, p)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.partition - b.partition) })
	return s, spans, nil
}

// Get reads one. It is an error if there is none at this place (any more).
func (d *Desk) Get(ctx context.Context, partition int32, offset int64) (*Entry, error) {
	if partition < 0 || offset < 0 {
		return nil, fmt.Errorf("dlq: %d/%d is not a place: write partition/offset, for example 3/1042", partition, offset)
	}
	var found *Entry
	err := d.Each(ctx, At(partition, offset), func(e *Entry) bool {
		found = e
		return false
	})
	if err == nil && found == nil {
		err = fmt.Errorf("dlq: there is no dead letter at %s/%d/%d: retention has taken it, or there never was one",
			d.config.Topic, partition, offset)
	}
	return found, err
}

// Tail calls fn for each dead letter that comes from now on, one call at a time, until ctx is done; then it returns
// nil.
func (d *Desk) Tail(ctx context.Context, fn func(*Entry)) error {
	bounds, err := d.bounds(ctx, d.config.Topic)
	if err != nil {
		return err
	}
	var spans []span
	for _, p := range bounds {
		spans = append(spans, span{p.partition, p.to, 1<<63 - 1})
	}
	once := twins{}
	err = d.scan(ctx, d.config.Topic, spans, func(r *kgo.Record) bool {
		if len(once) >= mostTailed {
			clear(once)
		}
		if e := d.entry(r); !once.first(e.twin) {
			return true
		} else if d.config.Group == "" || e.Letter.Group == "" || e.Letter.Group == d.config.Group {
			fn(e)
		}
		return true
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
