package shed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/abate-go/abate/policy/shed"
)

// server is a driver: it knows the time and how to wait.
type server struct {
	shedder *shed.Shedder
	start   time.Time
}

func (s *server) now() time.Duration { return time.Since(s.start) }

// handle calls work if the shedder lets it.
func (s *server) handle(ctx context.Context, r shed.Request, work func()) shed.Reason {
	permit, verdict, reason := s.shedder.Admit(s.now(), r)
	if verdict == shed.Full {
		permit, verdict, reason = s.wait(ctx, r)
	}
	if verdict == shed.Refused { // in shadow mode there may be a reason, but no refusal
		return reason
	}
	result := shed.Ignored // if work panics
	defer func() { s.shedder.Release(s.now(), permit, result) }()
	work()
	result = shed.Done
	return shed.None
}

func (s *server) wait(ctx context.Context, r shed.Request) (shed.Permit, shed.Verdict, shed.Reason) {
	woken := make(chan struct{}, 1)
	w := &shed.Waiter{Wake: func() { woken <- struct{}{} }}
	now := s.now()
	verdict, until := s.shedder.Enqueue(now, w, r)
	if verdict == shed.Queued {
		timer := time.NewTimer(until - now)
		defer timer.Stop()
		select {
		case <-woken:
		case <-timer.C:
			s.shedder.Leave(s.now(), w, true)
		case <-ctx.Done():
			s.shedder.Leave(s.now(), w, false) // a permit that came meanwhile is used, and given back
		}
	}
	permit, reason := w.Outcome()
	if reason != shed.None {
		return permit, shed.Refused, reason
	}
	return permit, shed.Admitted, shed.None
}

func Example() {
	s := &server{shed.New(shed.Config{Concurrency: shed.Fixed, MaxConcurrency: 1, NoQueue: true}), time.Now()}
	ctx := context.Background()
	reason := s.handle(ctx, shed.Request{}, func() {
		fmt.Println("handled; at the same time another:", s.handle(ctx, shed.Request{}, func() {}))
	})
	fmt.Printf("refused for: %q\n", reason)
	// Output:
	// handled; at the same time another: queue-full
	// refused for: ""
}
