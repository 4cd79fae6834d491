package storetest

import (
	"errors"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

func firstRuns(s *suite) {
	token := s.run("key", long)
	b := s.begin("key", long)
	if b.State != idempotency.Running {
		s.Fatalf("second Begin: %s, want running", b.State)
	}
	if b.Lease <= 0 || b.Lease > long {
		s.Errorf("the lease of the first goes on for %v, want more than 0 and at most %v", b.Lease, long)
	}
	want := answer("done")
	s.complete("key", token, want)
	for _, when := range []string{"first repeat", "second repeat"} {
		s.replays("key", want, when)
	}
	s.run("another key", long)
}

func mismatch(s *suite) {
	want := func(state idempotency.State, when string) {
		s.Helper()
		if got := s.beginAs("key", printB, long).State; got != state {
			s.Fatalf("%s: another request with the key gets %s, want %s", when, got, state)
		}
	}
	s.run("key", short)
	want(idempotency.Mismatch, "while the lease is or was just running")
	s.elapse(short)
	want(idempotency.Mismatch, "after the lease: the effect of the first may have happened")
	b := s.begin("key", long)
	if b.State != idempotency.Run {
		s.Fatalf("the same request after all these: %s, want run", b.State)
	}
	want(idempotency.Mismatch, "while it runs")
	s.complete("key", b.Token, answer("a"))
	want(idempotency.Mismatch, "when it is done")
	s.replays("key", answer("a"), "the same request after all these")
}

func takeover(s *suite) {
	first := s.run("key", short)
	s.elapse(short)
	b := s.begin("key", long)
	if b.State != idempotency.Run || !b.TakenOver {
		s.Fatalf("after the lease: %s, taken over %v; want run, true", b.State, b.TakenOver)
	}
	if b.Token <= first {
		s.Errorf("the token after %d is %d; one that comes later must be greater", first, b.Token)
	}
	s.want("key", idempotency.Running, "after the takeover")
	s.complete("key", b.Token, answer("second"))
	s.replays("key", answer("second"), "after the second try")
}

func loser(s *suite) {
	first := s.run("key", short)
	s.elapse(short)
	second := s.begin("key", long).Token
	s.lost("key", first, "while the second runs")
	s.want("key", idempotency.Running, "after all that the loser tried")
	s.complete("key", second, answer("second"))
	s.lost("key", first, "when the second is done")
	s.replays("key", answer("second"), "after all that the loser tried")

	// Two losers.
	first = s.run("other", short)
	s.elapse(short)
	second = s.begin("other", short).Token
	s.elapse(short)
	third := s.begin("other", long)
	if third.State != idempotency.Run || !third.TakenOver || third.Token <= second {
		s.Fatalf("third try: %+v, want run, taken over, a token above %d", third, second)
	}
	s.lost("other", first, "the first, while the third runs")
	s.lost("other", second, "the second, while the third runs")
	s.complete("other", third.Token, answer("third"))
	s.replays("other", answer("third"), "after three tries")
}

func lateInTime(s *suite) {
	token := s.run("completed", short)
	renewed := s.run("renewed", short)
	failed := s.run("failed", short)
	s.elapse(short)
	s.complete("completed", token, answer("late"))
	s.replays("completed", answer("late"), "completed after the lease, but before anybody else began")
	if err := s.Renew(s.ctx, "renewed", renewed, long); err != nil {
		s.Errorf("renewed after the lease, but before anybody else began: %v", err)
	}
	s.want("renewed", idempotency.Running, "renewed after the lease")
	if err := s.Fail(s.ctx, "failed", failed); err != nil {
		s.Errorf("failed after the lease, but before anybody else began: %v", err)
	}
	s.run("failed", long)
}

func renews(s *suite) {
	token := s.run("key", short)
	if err := s.Renew(s.ctx, "key", token, long); err != nil {
		s.Fatalf("Renew: %v", err)
	}
	s.elapse(short)
	s.want("key", idempotency.Running, "after the first lease, with the second")
	if err := s.Renew(s.ctx, "key", token, short); err != nil { // a lease counts from now, and may be shorter
		s.Fatalf("second Renew: %v", err)
	}
	s.elapse(short)
	b := s.begin("key", long)
	if b.State != idempotency.Run || !b.TakenOver || b.Token <= token {
		s.Fatalf("after the last lease: %+v, want run, taken over, a token above %d", b, token)
	}
}

func fails(s *suite) {
	first := s.run("key", long)
	if err := s.Fail(s.ctx, "key", first); err != nil {
		s.Fatalf("Fail: %v", err)
	}
	b := s.beginAs("key", printB, long) // the request may be another by now
	if b.State != idempotency.Run || b.TakenOver {
		s.Fatalf("after Fail: %s, taken over %v; want run, false", b.State, b.TakenOver)
	}
	if b.Token == first {
		s.Errorf("the token %d is given out twice", first)
	}
	s.lost("key", first, "a try that failed, while the next one runs")
	s.complete("key", b.Token, answer("second"))
	s.lost("key", first, "a try that failed, when the next one is done")
	if b = s.beginAs("key", printB, long); b.State != idempotency.Replay || !same(b.Response, answer("second")) {
		s.Fatalf("after the second try: %s with %s, want replay of its answer", b.State, brief(b.Response))
	}
}

// The first attempt crashed, so its effect may have happened. Whoever took over and failed can speak for itself only.
func failsTakenOver(s *suite) {
	first := s.run("key", short)
	s.elapse(short)
	for _, when := range []string{"second", "third", "fourth"} {
		if got := s.beginAs("key", printB, long).State; got != idempotency.Mismatch {
			s.Fatalf("before the %s try another request with the key gets %s, want mismatch", when, got)
		}
		b := s.begin("key", long)
		if b.State != idempotency.Run || !b.TakenOver {
			s.Fatalf("%s try: %s, taken over %v; want run, true", when, b.State, b.TakenOver)
		}
		s.want("key", idempotency.Running, when+" try")
		if err := s.Fail(s.ctx, "key", b.Token); err != nil {
			s.Fatalf("Fail of the %s try: %v", when, err)
		}
		s.lost("key", b.Token, when+" try, which failed")
		s.lost("key", first, "first try")
		s.lost("key", 0, "nobody's token")
	}
	b := s.begin("key", long)
	s.complete("key", b.Token, answer("at last"))
	s.replays("key", answer("at last"), "in the end")
}

func endsOnce(s *suite) {
	token := s.run("done", long)
	s.complete("done", token, answer("done"))
	s.ended("done", token, "a try that is done")
	s.complete("done", token, answer("recorded again"))
	s.complete("done", token, idempotency.Response{Status: 500, Truncated: true})
	s.replays("done", answer("done"), "after all that it tried")
	token = s.run("failed", long)
	if err := s.Fail(s.ctx, "failed", token); err != nil {
		s.Fatalf("Fail: %v", err)
	}
	s.lost("failed", token, "a try that failed")
	s.run("failed", long)
}

// A stream is marked as done before its first part is given out, and its answer stored when there is all of it.
func completesMarked(s *suite) {
	token := s.run("key", long)
	s.complete("key", token, idempotency.Response{Status: 201, Truncated: true})
	if b := s.begin("key", long); b.State != idempotency.Replay || !b.Response.Truncated {
		s.Fatalf("marked: %s with %s, want replay, truncated", b.State, brief(b.Response))
	}
	s.complete("key", token, answer("whole"))
	s.replays("key", answer("whole"), "with the answer")
	s.complete("key", token, answer("another"))
	s.replays("key", answer("whole"), "recorded once more")
	if err := s.Complete(s.ctx, "key", token+1, answer("of another"), long); !errors.Is(err, idempotency.ErrLost) {
		s.Errorf("completed by a token nobody was given: %v, want ErrLost", err)
	}
}

// restores is for stores that can lose what they have confirmed.
func restores(s *suite) {
	r, ok := s.Store.(idempotency.Restorer)
	if !ok {
		return
	}
	restore := func(key string, token uint64, over bool, want error, when string) {
		s.Helper()
		err := r.Restore(s.ctx, key, printA, idempotency.Begun{Token: token, TakenOver: over}, long)
		if !errors.Is(err, want) {
			s.Fatalf("%s: Restore returned %v, want %v", when, err, want)
		}
	}
	token := s.run("held", long)
	restore("held", token, false, nil, "a key that is held by the token")
	restore("held", token+1, false, idempotency.ErrLost, "a key that is held by another")
	s.complete("held", token, answer("held"))
	restore("held", token, false, idempotency.ErrLost, "a key that is done")
	s.replays("held", answer("held"), "after all that")

	token = s.run("failed", long)
	if err := s.Fail(s.ctx, "failed", token); err != nil {
		s.Fatalf("Fail: %v", err)
	}
	restore("failed", token, false, idempotency.ErrLost, "a key whose try failed")

	const ahead = 1 << 52 // as if the server had lost its last minutes, and its clock were behind
	restore("gone", ahead, true, nil, "a key that nobody knows")
	s.want("gone", idempotency.Running, "restored")
	if got := s.beginAs("gone", printB, long).State; got != idempotency.Mismatch {
		s.Fatalf("restored, another request with the key gets %s, want mismatch", got)
	}
	s.complete("gone", ahead, answer("gone"))
	s.replays("gone", answer("gone"), "restored and completed")

	restore("behind", ahead, false, nil, "another key that nobody knows")
	if err := s.Renew(s.ctx, "behind", ahead, 0); err != nil {
		s.Fatalf("Renew: %v", err)
	}
	if b := s.begin("behind", long); b.State != idempotency.Run || !b.TakenOver || b.Token <= ahead {
		s.Fatalf("after a restored try: %+v, want run, taken over, a token above %d", b, uint64(ahead))
	}
	s.lost("behind", ahead, "the restored try, which was taken over")
	restore("behind", ahead, false, idempotency.ErrLost, "a try that was taken over")
}

func neverBegan(s *suite) {
	token := s.run("key", long)
	for _, other := range []uint64{0, token, token + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		s.lost("never begun", other, "a key nobody began")
	}
	for _, other := range []uint64{0, token - 1, token + 1, 1<<63 + token, 1<<64 - 1} {
		s.lost("key", other, "a token nobody was given")
	}
	s.want("key", idempotency.Running, "after all these")
	s.complete("key", token, answer("a"))
	s.replays("key", answer("a"), "the one who began it")
}

func expires(s *suite) {
	token := s.run("key", long)
	if err := s.Complete(s.ctx, "key", token, answer("old"), short); err != nil {
		s.Fatalf("Complete: %v", err)
	}
	other := s.run("other", long)
	s.complete("other", other, answer("kept"))
	s.elapse(short)
	var b idempotency.Begun
	s.eventually("the end of the retention", func() bool {
		b = s.beginAs("key", printB, long)
		return b.State != idempotency.Mismatch
	})
	if b.State != idempotency.Run || b.TakenOver {
		s.Fatalf("after the retention another request gets %s, taken over %v; want run, false", b.State, b.TakenOver)
	}
	s.lost("key", token, "the token of a forgotten try")
	s.replays("other", answer("kept"), "a key with a longer retention")

	// The end of the retention counts, not that of the lease before it.
	token = s.run("lease", short)
	s.complete("lease", token, answer("kept"))
	s.elapse(2*short + time.Millisecond)
	s.replays("lease", answer("kept"), "after the end of the lease in which it was done")
}
