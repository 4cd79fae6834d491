package brokertest_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/internal/needs"
)

// TestNumbers takes the measures that we promise. `make kafka` sets ABATE_KAFKA_NUMBERS: on a real Kafka, at full size,
// against the targets. Without it the same programs run in small, and only what must be right at any size is checked:
// whether everything came, once, and in time.
func TestNumbers(t *testing.T) {
	full := os.Getenv("ABATE_KAFKA_NUMBERS") != ""
	measure := func(t *testing.T, b broker) {
		n := &numbers{b: b, full: full, failed: make(chan error, 1)}
		t.Run("throughput", n.throughput)
		t.Run("lateness", n.lateness)
		if !testing.Short() {
			t.Run("outage", n.outage) // which takes its time
		}
		if full {
			n.print(t)
		}
	}
	if full {
		measure(t, newReal(t, true))
		return
	}
	needs.Whole(t)
	each(t, false, nil, measure) // with nothing beside it
}

// numbers are measures of one broker.
type numbers struct {
	b      broker
	full   bool
	rows   []row
	failed chan error // what ended a consumer
}

// row is one line of the table.
type row struct {
	what, target, got string
	reached           bool
}

func (n *numbers) add(what, target string, reached bool, got string, more ...any) {
	n.rows = append(n.rows, row{what, target, fmt.Sprintf(got, more...), reached})
}

func (n *numbers) print(t *testing.T) {
	var table strings.Builder
	for _, r := range n.rows {
		verdict := "reached"
		if !r.reached {
			verdict = "MISSED"
			t.Errorf("%s: %s, want %s", r.what, r.got, r.target)
		}
		if r.target == "" {
			verdict = ""
		}
		fmt.Fprintf(&table, "  %-62s %-28s %-60s %s\n", r.what, r.target, r.got, verdict)
	}
	t.Logf("on a real Kafka, %d CPUs for everything:\n%s", cpus(), table.String())
}

// size is the full one or the small one.
func (n *numbers) size(full, small int) int {
	if n.full {
		return full
	}
	return small
}

// guard makes one for a service that is only reached through Kafka.
func (n *numbers) guard(t *testing.T, p abate.Policy) *abate.Guard {
	t.Helper()
	g, err := abate.New("ledger", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// quietLog formats all logs, as in production, and writes them nowhere.
func quietLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// running is a consumer that runs until the end of the test, or until it is stopped.
func (n *numbers) running(t *testing.T, c *abatekafka.Consumer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
			select {
			case n.failed <- err:
			default: // one is enough
			}
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// numbered are records whose value begins with their number and is of some length, made of noise that does not
// compress.
func numbered(from, count, length int) []*kgo.Record {
	records := make([]*kgo.Record, count)
	for i := range records {
		value := make([]byte, length)
		_, _ = rand.Read(value)
		binary.BigEndian.PutUint64(value, uint64(from+i))
		records[i] = &kgo.Record{Value: value}
	}
	return records
}

func number(value []byte) int { return int(binary.BigEndian.Uint64(value)) }

// fill writes numbered records into a topic, on its partition 0.
func (n *numbers) fill(t *testing.T, topic string, count, length int) {
	t.Helper()
	for from := 0; from < count; from += 10000 {
		n.b.produce(t, topic, numbered(from, min(10000, count-from), length)...)
	}
}

// median sorts the values.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// quantile sorts the values.
func quantile[T interface{ ~int64 | ~float64 }](values []T, q float64) T {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// once counts how often each message was handled.
type once struct {
	mu    sync.Mutex
	times []int
	ends  time.Time
	all   chan struct{} // closed when every one was handled
	left  int
}

func newOnce(count int) *once {
	return &once{times: make([]int, count), left: count, all: make(chan struct{})}
}

func (o *once) handled(i int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.times[i]++; o.times[i] > 1 {
		return
	}
	if o.left--; o.left == 0 {
		o.ends = time.Now()
		close(o.all)
	}
}

// wait waits until every message was handled, and fails the test for those that were handled more than once.
func (o *once) wait(t *testing.T, failed <-chan error, limit time.Duration) (twice int) {
	t.Helper()
	select {
	case <-o.all:
	case err := <-failed:
		t.Fatal(err)
	case <-time.After(limit):
		t.Fatalf("%d of %d messages were not handled within %v", o.left, len(o.times), limit)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, times := range o.times {
		twice += max(times-1, 0)
	}
	if twice > 0 {
		t.Errorf("%d messages were handled more than once", twice)
	}
	return twice
}
