package letter

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrGone reports that a record is not in its topic any more: retention or compaction took it, or the topic was
// deleted.
var ErrGone error = goneError{}

type goneError struct{}

func (goneError) Error() string { return "the record is not there any more" }
func (goneError) Class() string { return "value-gone" }

// Fetch reads the one record that stands at a place, with a client of its own made from opts, which must not name
// topics or a group. It is for the values of letters that only point to them. It is as slow as connecting is; ctx
// bounds it. The error is ErrGone, for errors.Is, if the record is not there any more.
func Fetch(ctx context.Context, at Place, opts ...kgo.Opt) (*kgo.Record, error) {
	from := map[string]map[int32]kgo.Offset{at.Topic: {at.Partition: kgo.NewOffset().At(at.Offset)}}
	client, err := kgo.NewClient(append(opts[:len(opts):len(opts)], kgo.ConsumePartitions(from),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords())...) // so that something comes, whatever stands there
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	defer client.Close()
	if err := within(ctx, kadm.NewClient(client), at); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 1)
		for _, f := range fetches.Errors() {
			if errors.Is(f.Err, kerr.OffsetOutOfRange) { // since it was asked for
				return nil, fmt.Errorf("%s: %w", at, ErrGone)
			}
			return nil, fmt.Errorf("%s could not be read: %w", at, f.Err)
		}
		for _, r := range fetches.Records() {
			if r.Offset != at.Offset || r.Attrs.IsControl() {
				return nil, fmt.Errorf("%s: %w", at, ErrGone) // compacted
			}
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s could not be read in time: %w", at, context.Cause(ctx))
}

// Is reports whether a record that stands at Original is the message: timestamp and key are the same, as far as the
// letter has them. Another may stand there when the topic was deleted and made anew, and offsets began with 0 again.
func (l *Letter) Is(r *kgo.Record) bool {
	return (l.Timestamp.IsZero() || l.Timestamp.UnixMilli() == r.Timestamp.UnixMilli()) &&
		(l.Key == nil || bytes.Equal(l.Key, r.Key))
}

// within reports whether a place lies between the beginning and the end of a log: else a client would wait for it for
// ever.
func within(ctx context.Context, admin *kadm.Client, at Place) error {
	starts, err := admin.ListStartOffsets(ctx, at.Topic)
	ends, err2 := admin.ListEndOffsets(ctx, at.Topic)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	start, ok := starts.Lookup(at.Topic, at.Partition)
	end, ok2 := ends.Lookup(at.Topic, at.Partition)
	switch err := errors.Join(start.Err, end.Err); {
	case errors.Is(err, kerr.UnknownTopicOrPartition), err == nil && (!ok || !ok2),
		err == nil && (at.Offset < start.Offset || at.Offset >= end.Offset):
		return ErrGone
	default:
		return err
	}
}
