package idempotency_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

var errAway = errors.New("away")

// carry does what h wants for as long as it wants something before until, and the store says err.
func carry(h *idempotency.Holder, now, until time.Duration, err func(idempotency.Task) error) (tasks []idempotency.Task,
	at []time.Duration) {
	for {
		task, due := h.Next()
		if now = max(now, due); task == idempotency.Sleep || task == idempotency.Over || now > until {
			return tasks, at
		}
		tasks, at = append(tasks, task), append(at, now)
		h.Record(task, now, now+1, err(task), 1)
	}
}

func always(err error) func(idempotency.Task) error {
	return func(idempotency.Task) error { return err }
}

func TestAHolderTriesOftenEnoughToKeepItsLease(t *testing.T) {
	for _, lease := range []time.Duration{100 * time.Millisecond, time.Second, 30 * time.Second, time.Hour} {
		h := idempotency.NewHolder(0, lease, false)
		_, at := carry(&h, 0, 10*lease, always(errAway))
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap < 0 || gap > max(lease/6, 2*time.Millisecond)+1 {
				t.Errorf("lease %v: %v between two tries to renew", lease, gap)
			}
		}
		if len(at) < 10 || at[0] != lease/3 {
			t.Errorf("lease %v: %d tries, the first at %v", lease, len(at), at[0])
		}
	}
}

func TestAHolderRecordsUntilItIsToldThatItIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		fate idempotency.Fate
	}{"stored": {nil, idempotency.Recorded}, "taken over": {idempotency.ErrLost, idempotency.Lost}, "away": {
		errAway, idempotency.Undecided,
	}} {
		h := idempotency.NewHolder(0, time.Second, false)
		h.Done(0)
		carry(&h, 0, time.Hour, always(errAway))
		if task, _ := h.Next(); task == idempotency.Over || h.Fate() != idempotency.Undecided {
			t.Errorf("%s: after an hour: %v, fate %v", name, task, h.Fate())
		}
		carry(&h, time.Hour, 30*time.Hour, always(c.err))
		if task, _ := h.Next(); task != idempotency.Over || h.Fate() != c.fate {
			t.Errorf("%s: after more than a day: %v, fate %v, want %v", name, task, h.Fate(), c.fate)
		}
	}
}

func TestAHolderTellsAStoreWhatItHasForgotten(t *testing.T) {
	forgotten := true
	store := func(task idempotency.Task) error {
		if task == idempotency.ToRestore {
			forgotten = false
		}
		if forgotten {
			return idempotency.ErrLost
		}
		return nil
	}
	h := idempotency.NewHolder(0, time.Second, true)
	h.Done(0)
	if tasks, _ := carry(&h, 0, time.Minute, store); len(tasks) != 3 || tasks[1] != idempotency.ToRestore ||
		h.Fate() != idempotency.Recorded {
		t.Errorf("%v, fate %v", tasks, h.Fate())
	}
	h = idempotency.NewHolder(0, time.Second, true)
	h.Done(0)
	if tasks, _ := carry(&h, 0, time.Minute, always(idempotency.ErrLost)); len(tasks) != 2 ||
		h.Fate() != idempotency.Lost {
		t.Errorf("taken over: %v, fate %v", tasks, h.Fate())
	}
}

// The store has recorded the end, and its reply is lost. After that it knows no holder: it is neither to be renewed nor
// to be made again, and yet nobody has taken over.
func TestAHolderWhoseReplyWasLostLearnsThatItIsRecorded(t *testing.T) {
	for fate, now := range map[idempotency.Fate]error{
		idempotency.Recorded: nil, idempotency.Lost: idempotency.ErrLost,
	} {
		h := idempotency.NewHolder(0, time.Second, true)
		carry(&h, 0, 400*time.Millisecond, always(nil))
		h.Done(time.Second / 2)
		renewed := false // the route is back when it asks for another lease
		tasks, _ := carry(&h, time.Second/2, time.Minute, func(task idempotency.Task) error {
			switch {
			case task != idempotency.ToComplete:
				renewed = true
				return idempotency.ErrLost
			case renewed:
				return now
			}
			return errAway
		})
		if h.Fate() != fate {
			t.Errorf("fate %v after %v, want %v", h.Fate(), tasks, fate)
		}
	}
}

func FuzzHolder(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 4 {
		var program []byte
		for range 60 {
			program = binary.LittleEndian.AppendUint32(program, random.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		now := time.Duration(0)
		h := idempotency.NewHolder(0, time.Second, len(program)%2 == 0)
		confirmed := false // somebody may have been told
		for ; len(program) >= 2; program = program[2:] {
			before := h.Fate()
			switch op := program[0]; {
			case op < 20:
				h.Mark(now)
			case op < 30:
				h.Unmark(now)
			case op < 40:
				h.Done(now)
			case op < 50:
				h.Failed(now)
			default:
				task, at := h.Next()
				if task == idempotency.Sleep || task == idempotency.Over {
					continue
				}
				if task == idempotency.ToFail && confirmed {
					t.Fatal("a try whose end was confirmed fails")
				}
				sent := max(now, at)
				now = sent + time.Duration(program[1])*time.Millisecond
				err := []error{nil, errAway, errAway, idempotency.ErrLost}[op%4]
				h.Record(task, sent, now, err, float64(op)/255)
				records := task == idempotency.ToComplete || task == idempotency.ToMark
				if h.Fate() == idempotency.Recorded && before != idempotency.Recorded && (!records || err != nil) {
					t.Fatalf("recorded by %v with %v", task, err)
				}
			}
			if before == idempotency.Recorded && h.Fate() != before {
				t.Fatalf("what was recorded is %v", h.Fate())
			}
			confirmed = confirmed || h.Fate() == idempotency.Recorded
			if _, again := h.Next(); again < 0 {
				t.Fatalf("due at %v", again)
			}
		}
	})
}
