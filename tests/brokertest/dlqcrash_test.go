package brokertest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// replayChild is the variable with which a test runs itself as a process that replays: an address and a topic.
const replayChild = "ABATE_REPLAY_CHILD"

// TestReplayInAProcess is the process that other tests kill.
func TestReplayInAProcess(t *testing.T) {
	addr, topic, ok := strings.Cut(os.Getenv(replayChild), " ")
	if !ok {
		return // nobody wants it
	}
	d, err := dlq.Open(t.Context(), dlq.Config{Brokers: []string{addr}, Topic: topic, By: "child"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := quick()
	r.Rate = 500
	p, err := d.Replay(t.Context(), r)
	t.Logf("%+v %v", p, err)
}

func TestReplayThatIsKilledLosesNothingAndRepeatsAChunkAtMost(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		const letters, chunk = 2000, 50 // a tenth of a second's worth at 500/s
		c := newChain(t, b, 3)
		c.seed(t, letters, 3)
		d := c.desk(t)
		for _, further := range []int{1, 30, 60, 110} {
			before := c.records(t, c.main)
			child := exec.Command(os.Args[0], "-test.run", "^TestReplayInAProcess$", "-test.v")
			child.Env = append(os.Environ(), replayChild+"="+c.addr+" "+c.dead)
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "some more letters in the main topic", func() bool { return c.records(t, c.main) >= before+further })
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = child.Wait()                                               // killed
			eventually(t, "the child's replay in the audit", func() bool { // of a topic that has just been created
				list, err := d.Replays(within(t))
				return err == nil && len(list) > 0 && list[0].By == "child" && !list[0].Phase.Ended()
			})
			if _, err := d.Replay(within(t), quick()); err == nil ||
				!strings.Contains(err.Error(), "is being replayed by child") {
				t.Errorf("a replay within a minute: %v", err)
			}
			// The child's place is free after a minute; the next of them takes it, as somebody would who knows that it is dead.
			stop := dlq.All()
			stop.Where = "at.offset < 0"
			if p := replay(t, d, dlq.Replay{Filter: stop, TakeOver: true, Settle: time.Millisecond}); p.Phase != dlq.Done ||
				p.Chosen != 0 {
				t.Errorf("%+v", p)
			}
		}
		list, err := d.Replays(within(t))
		if err != nil {
			t.Fatal(err)
		}
		first := list[len(list)-1]
		if first.Phase != dlq.Stopped || !strings.Contains(first.Why, "no sign of life") {
			t.Errorf("%+v", first)
		}
		if p := replay(t, d, dlq.Replay{Resume: first.ID, Rate: 100_000, Settle: time.Millisecond}); !over(p) ||
			p.Waiting != p.Sent {
			t.Errorf("%+v", p)
		}
		times := map[string]int{}
		for _, m := range c.everything(t, c.main) {
			times[string(m.Value)]++
		}
		repeats := 0
		for _, n := range times {
			repeats += n - 1
		}
		if len(times) != letters || repeats > 4*chunk {
			t.Errorf("%d of %d letters came, %d repeats after 4 crashes", len(times), letters, repeats)
		}
		t.Logf("%d letters, 4 kills: lost 0, repeated %d", letters, repeats)
	})
}

// records is how many records a topic has.
func (c chain) records(t *testing.T, topic string) (n int) {
	t.Helper()
	ends, err := c.admin(t).ListEndOffsets(within(t), topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range ends[topic] {
		n += int(end.Offset)
	}
	return n
}

func TestReplayThatIsTakenOverStops(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 1)
		c.seed(t, 100, 1)
		r := quick()
		r.Rate = 1 // it would take a minute and more
		began := make(chan struct{})
		tell := sync.OnceFunc(func() { close(began) })
		r.Progress = func(p dlq.Progress) {
			if p.Sent == 1 && p.Phase == dlq.Settling {
				tell()
			}
		}
		ended := make(chan error, 1)
		first := c.desk(t)
		go func() { _, err := first.Replay(within(t), r); ended <- err }()
		<-began
		second := quick()
		second.TakeOver = true
		if p := replay(t, c.desk(t), second); !over(p) || p.Chosen >= 100 {
			t.Errorf("%+v", p)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "another replay has taken its place") {
			t.Error(err)
		}
		if left := every(t, c.desk(t), dlq.All()); len(left) > 0 {
			t.Errorf("%d letters wait still", len(left))
		}
	})
}

func TestReplaySurvivesABrokerThatIsKilled(t *testing.T) {
	eachBrokerOfItsOwn(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		const letters = 200
		c.seed(t, letters, 2)
		d := c.desk(t, func(c *dlq.Config) {
			c.Options = []kgo.Opt{kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond })}
		})
		r := quick()
		r.Rate = 300
		began := make(chan struct{})
		tell := sync.OnceFunc(func() { close(began) })
		r.Progress = func(p dlq.Progress) {
			if p.Sent >= 60 {
				tell()
			}
		}
		ended := make(chan dlq.Progress, 1)
		go func() {
			p, err := d.Replay(within(t), r)
			if err != nil {
				t.Logf("it has to be resumed: %v", err)
			}
			ended <- p
		}()
		<-began
		b.kill(t)
		b.restart(t)
		p := <-ended
		if !over(p) {
			ctx, cancel := context.WithTimeout(within(t), patience)
			defer cancel()
			again, err := c.desk(t).Replay(ctx, dlq.Replay{
				Resume: p.ID, Rate: 100_000, Settle: time.Millisecond, TakeOver: true,
			})
			if err != nil || !over(again) {
				t.Fatalf("%v %+v", err, again)
			}
		}
		times := map[string]int{}
		for _, m := range c.everything(t, c.main) {
			times[string(m.Value)]++
		}
		repeats := 0
		for _, n := range times {
			repeats += n - 1
		}
		if len(times) != letters || repeats > 30 {
			t.Errorf("%d of %d letters came, %d repeats", len(times), letters, repeats)
		}
	})
}
