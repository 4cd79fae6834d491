package abatekafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMessageIDNamesThePlaceTheTimestampAndTheContent(t *testing.T) {
	rec := &kgo.Record{Topic: "payments", Partition: 3, Offset: 1042, Timestamp: time.UnixMilli(1760000000000)}
	m := abatekafka.Message{
		Topic: "payments", Partition: 3, Offset: 1042, Key: []byte("k"), Value: []byte("v"), Record: rec,
	}
	if m.ID() != "payments/3/1042@1760000000000~FmDMML540UsY-EO0" {
		t.Errorf("%q", m.ID())
	}
}

func FuzzRingKeepsEveryUnfinishedRecord(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 0, 1, 1, 255, 3})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var r abatekafka.Ring
		var first, next uint64
		for _, step := range steps {
			for range step { // as many come
				r.Put(first, next, int64(next)*3)
				next++
			}
			first += min(uint64(step/2), next-first)
			for seq := first; seq < next; seq++ {
				if got := r.At(seq); got != int64(seq)*3 {
					t.Fatalf("number %d of %d to %d has offset %d", seq, first, next, got)
				}
			}
		}
	})
}

func TestBacklogGivesRecordsInOrderAndCountsThem(t *testing.T) {
	var b abatekafka.Backlog
	rnd := rand.New(rand.NewPCG(1, 2))
	in, out := int64(0), int64(0)
	for range 1000 {
		var batch []*kgo.Record
		for range rnd.IntN(20) {
			batch = append(batch, &kgo.Record{Offset: in, Value: make([]byte, rnd.IntN(100))})
			in++
		}
		b.Push(batch)
		for n := min(rnd.IntN(25), b.Len()); n > 0; n-- {
			if got := b.Pop().Offset; got != out {
				t.Fatalf("offset %d came after %d", got, out-1)
			}
			out++
		}
		if b.Len() != int(in-out) {
			t.Fatalf("%d records, want %d", b.Len(), in-out)
		}
	}
	for b.Len() > 0 {
		b.Pop()
	}
	if b.Bytes() != 0 {
		t.Errorf("%d bytes of nothing", b.Bytes())
	}
}

func TestForwardThatCameTwiceIsKnown(t *testing.T) {
	var r abatekafka.Recent
	if r.Note("a", 1) || r.Note("b", 2) || !r.Note("a", 3) || r.Note("a", 1) {
		t.Error("the second copy of a forward is one at another offset")
	}
	for i := range abatekafka.MaxRecent {
		r.Note(fmt.Sprint(i), int64(i+10))
	}
	if r.Note("a", 9999) {
		t.Error("it remembers more than it may")
	}
	if !r.Note(fmt.Sprint(abatekafka.MaxRecent-1), 1) {
		t.Error("it has forgotten the newest")
	}
}

func TestForwardKeepsItsPartitionNumberIfTheTopicHasIt(t *testing.T) {
	p := abatekafka.Partitioner("payments-retry-30s")
	for i := range int32(8) {
		if got := p.Partition(&kgo.Record{Partition: i, Key: []byte("k")}, 8); got != int(i) {
			t.Errorf("partition %d became %d", i, got)
		}
	}
	first := p.Partition(&kgo.Record{Partition: 9, Key: []byte("k")}, 8)
	for range 10 {
		if got := p.Partition(&kgo.Record{Partition: 9, Key: []byte("k")}, 8); got != first || got < 0 || got > 7 {
			t.Errorf("a key went to partitions %d and %d", first, got)
		}
	}
	if !p.RequiresConsistency(&kgo.Record{}) {
		t.Error("a partition that is away for a moment would change the numbers")
	}
}

// head is the beginning of a batch.
func head(first int64, span int32, magic byte) []byte {
	b := make([]byte, 61)
	binary.BigEndian.PutUint64(b, uint64(first))
	binary.BigEndian.PutUint32(b[23:], uint32(span))
	b[16] = magic
	return b
}

func TestEndOfABatchIsReadFromItsHead(t *testing.T) {
	for _, tt := range []struct {
		name  string
		batch []byte
		from  int64
		want  int64 // 0: an error
	}{
		{"from its beginning", head(100, 9, 2), 100, 110},
		{"from its middle", head(100, 9, 2), 105, 110},
		{"its last", head(100, 9, 2), 109, 110},
		{"one record", head(100, 0, 2), 100, 101},
		{"it ends before", head(100, 9, 2), 110, 0},
		{"it begins after", head(101, 9, 2), 100, 0},
		{"an older format", head(100, 9, 1), 100, 0},
		{"a span below zero", head(100, -5, 2), 100, 0},
		{"a span that cannot be", head(100, 1<<30, 2), 100, 0},
		{"the end of all offsets", head(1<<63-1, 0, 2), 1<<63 - 1, 0},
		{"cut off", head(100, 9, 2)[:26], 100, 0},
		{"nothing", nil, 100, 0},
	} {
		got, err := abatekafka.LastOfBatch(tt.batch, tt.from)
		if (err != nil) != (tt.want == 0) || err == nil && got != tt.want {
			t.Errorf("%s: %d, %v; want %d", tt.name, got, err, tt.want)
		}
	}
}

func FuzzEndOfABatchIsNeverBehind(f *testing.F) {
	f.Add(head(100, 9, 2), int64(105))
	f.Add(head(1<<63-1, 1, 2), int64(1<<63-1))
	f.Fuzz(func(t *testing.T, batch []byte, from int64) {
		if from < 0 {
			return
		}
		if to, err := abatekafka.LastOfBatch(batch, from); err == nil && to <= from {
			t.Errorf("from %d it goes on at %d", from, to)
		}
	})
}

func TestOnlyBytesThatCannotBeReadArePoison(t *testing.T) {
	for _, err := range []error{
		kerr.TopicAuthorizationFailed, kerr.UnknownTopicID, &kgo.ErrDataLoss{}, &kgo.ErrGroupSession{Err: io.EOF},
		kgo.ErrClientClosed, context.Canceled,
		context.DeadlineExceeded, &net.OpError{Op: "read", Err: io.EOF},
	} {
		if abatekafka.Undecodable(err) {
			t.Errorf("%v is taken for a poison batch", err)
		}
	}
	if !abatekafka.Undecodable(errors.New("encoded crc 1 does not match calculated crc 2")) {
		t.Error("a wrong checksum is not")
	}
}

// What a drain is told is what could be delivered: it goes by that when it ends, and what it says it will take.
func TestBehindIsWhatIsDueAndNotHeldByAFlood(t *testing.T) {
	over, flooded, later := abatekafka.Waiting{Due: -time.Minute}, abatekafka.Waiting{Due: -time.Hour / 2, Flooded: true},
		abatekafka.Waiting{Due: time.Minute}
	for _, test := range []struct {
		what   string
		window []abatekafka.Waiting
		more   int
		want   int64
	}{
		{"all overdue", []abatekafka.Waiting{over, over, over}, 4, 7},
		{"the head overdue, the rest not due", []abatekafka.Waiting{over, later, later}, 4, 1},
		{"held by a flood, the rest not due", []abatekafka.Waiting{flooded, flooded, later}, 4, 0},
		{"held by a flood, with one overdue among them", []abatekafka.Waiting{flooded, over, flooded}, 2, 3},
		{"nothing due", []abatekafka.Waiting{later}, 4, 0},
	} {
		if got := abatekafka.Behind(test.window, test.more); got != test.want {
			t.Errorf("%s: %d, not %d", test.what, got, test.want)
		}
	}
}

func TestReloadChangesWhatIsNotFixed(t *testing.T) {
	names := redelivery.Config{Tiers: []time.Duration{time.Second}}.WithDefaults()
	next := redelivery.Config{
		Tiers:            []time.Duration{time.Minute},
		Naming:           redelivery.NamingSpring,
		Order:            redelivery.ParkKey,
		ExactlyOnce:      true,
		DLTStrategy:      redelivery.DropLast,
		HandlerTimeout:   time.Hour,
		NeverRetryErrors: []string{"x"},
		Timeout:          5 * time.Hour,
		Concurrency:      7,
	}.WithDefaults()
	got := abatekafka.KeepNames(next, names)
	if !reflect.DeepEqual(got.Tiers, names.Tiers) || got.Naming != names.Naming || got.Order != names.Order ||
		got.ExactlyOnce || got.DLTStrategy != names.DLTStrategy {
		t.Errorf("what topics and clients depend on has changed: %+v", got)
	}
	if got.HandlerTimeout != time.Hour || len(got.NeverRetryErrors) != 1 || got.Timeout != 5*time.Hour ||
		got.Concurrency != 7 {
		t.Errorf("what can change has not: %+v", got)
	}
}

func TestContextOfADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(context.Background())
		defer cancel()

		ctx, end := abatekafka.DeliveryContext(parent, time.Second)
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != time.Second {
			t.Errorf("deadline in %v", time.Until(deadline))
		}
		if ctx.Err() != nil {
			t.Errorf("new and %v", ctx.Err())
		}
		child, stop := context.WithCancel(ctx)
		defer stop()
		<-child.Done() // in virtual time: after the second
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("after its time: %v, %v", ctx.Err(), child.Err())
		}
		end()

		ctx, end = abatekafka.DeliveryContext(parent, time.Second)
		end()
		<-ctx.Done() // also when asked for the first time after the end
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("after its end: %v", ctx.Err())
		}

		ctx, end = abatekafka.DeliveryContext(parent, time.Second)
		defer end()
		cancel()
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("after its partition's end: %v", ctx.Err())
		}
	})
}
