package pacing_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

// middle draws what jitter neither shortens nor stretches.
const middle = 1 << 63

// begins is how many attempts may begin at now, of callers who have waited for long.
func begins(o *pacing.Opener, now time.Duration, most int) (n int) {
	for n < most && o.Enter(now, now-time.Hour, middle, false) == 0 {
		n++
	}
	return n
}

func TestBeforeAFailureNobodyWaits(t *testing.T) {
	o := pacing.NewOpener()
	if n := begins(o, 0, 1000); n != 1000 {
		t.Errorf("%d of 1000 may begin", n)
	}
	for range 1000 {
		o.Leave(5*ms, 0, pacing.Opened)
	}
	for i := range 100 { // who has only just come, too, while all is well
		if wait := o.Enter(6*ms, 6*ms, middle, false); wait != 0 {
			t.Fatalf("caller %d waits %v", i, wait)
		}
	}
}

func TestBeforeAFailureCallersWaitAMomentForWordOfTheFirstTwo(t *testing.T) {
	o := pacing.NewOpener()
	o.Enter(0, 0, middle, false)
	o.Enter(0, 0, middle, false)
	wait := o.Enter(0, 0, middle, false)
	if wait <= 0 || wait > 20*ms {
		t.Errorf("the third waits %v", wait)
	}
	if wait := o.Enter(20*ms, 0, middle, false); wait != 0 {
		t.Errorf("after 20 ms it waits another %v", wait)
	}
	o.Leave(20*ms, 0, pacing.Opened)
	if wait := o.Enter(20*ms, 20*ms, middle, false); wait != 0 {
		t.Errorf("after a success somebody waits %v", wait)
	}
}

// back is an Opener after an outage of two seconds: a round is one second.
func back(t *testing.T) *pacing.Opener {
	t.Helper()
	o := pacing.NewOpener()
	o.Enter(0, 0, middle, false)
	o.Leave(0, 0, pacing.Failed)
	if n := begins(o, 50*ms, 10); n != 0 {
		t.Errorf("%d begin before the first round is over", n)
	}
	if o.Enter(2*s-10*ms, 0, middle, false) != 0 {
		t.Fatal("no probe after two seconds")
	}
	if n := begins(o, 2*s-5*ms, 10); n != 0 {
		t.Errorf("%d begin beside the probe", n)
	}
	o.Leave(2*s, 2*s-10*ms, pacing.Opened)
	return o
}

// during is how many begin from then on until then, of callers who have waited for so long, if all of them succeed.
func during(o *pacing.Opener, from, until, waited time.Duration) (n int) {
	for now := from; now < until; now += 10 * ms {
		got := 0
		for got < 100 && o.Enter(now, now-waited, middle, false) == 0 {
			got++
		}
		for range got {
			o.Leave(now, now-10*ms, pacing.Opened)
		}
		n += got
	}
	return n
}

func TestAfterAnOutageEachRoundHasTwiceAsMany(t *testing.T) {
	o := back(t)
	for i, want := range []int{0, 2, 4, 8} {
		began := 2*s + time.Duration(i)*s + 50*ms
		if n := during(o, began, began+s, 50*ms); n < want || n > want+want/2+1 {
			t.Errorf("round %d: %d begin, want about %d", i, n, want)
		}
	}
}

// A round is for the other instances of a fleet. Who has waited for nearly as long waits for too few connections.
func TestWhoWaitsForARoundHasRoundsOfATenthOfASecondFromThenOn(t *testing.T) {
	o := back(t)
	if n := during(o, 2*s+10*ms, 2*s+840*ms, time.Hour); n != 0 {
		t.Errorf("%d begin in the first 840 ms, want none", n)
	}
	if n := during(o, 2*s+850*ms, 2*s+1250*ms, time.Hour); n < 2+4+8 {
		t.Errorf("%d begin in the 400 ms after that, want 2, 4, 8 and most of 16", n)
	}
}

// What is asked again too late is not known in time.
func TestWhoWaitsIsToldToAskWhenHeHasWaitedForLong(t *testing.T) {
	o := back(t)
	wait := o.Enter(2*s+10*ms, 2*s+10*ms, middle, false)
	if again := 2*s + 10*ms + wait; again < 2*s+850*ms || again > 2*s+870*ms+100*ms {
		t.Errorf("to be asked again after %s, want some 850 ms", wait)
	}
}

func TestARefusalMakesRoundsAsLongAsBefore(t *testing.T) {
	o := back(t)
	if o.Enter(2*s+860*ms, 0, middle, false) != 0 {
		t.Fatal("nothing begins after 860 ms")
	}
	o.Leave(2*s+870*ms, 2*s+860*ms, pacing.Refused)
	if n := during(o, 2*s+880*ms, 3*s+700*ms, time.Hour); n != 0 {
		t.Errorf("%d begin in the second after a refusal", n)
	}
	if n := during(o, 3*s+700*ms, 4*s+700*ms, time.Hour); n < 1 || n > 3 {
		t.Errorf("%d begin in the second after that, want 1 or 2", n)
	}
}

func TestASlowSuccessMakesTheRoundAsLongAsItShouldBe(t *testing.T) {
	o := back(t)
	if o.Enter(2*s+860*ms, 0, middle, false) != 0 {
		t.Fatal("nothing begins after 860 ms")
	}
	o.Leave(2*s+870*ms, 2*s, pacing.Opened) // took most of a second
	n := 0
	for now := 2*s + 880*ms; now < 3*s+700*ms; now += 10 * ms {
		n += begins(o, now, 9)
	}
	if n != 1 {
		t.Errorf("%d begin in the rest of the round after a slow success, want the other of two", n)
	}
	if n := during(o, 3*s+860*ms, 4*s+100*ms, time.Hour); n < 2 {
		t.Errorf("%d begin in the next rounds", n)
	}
}

func TestStateSaysWhenAShortRoundIsOver(t *testing.T) {
	o := back(t)
	during(o, 2*s+10*ms, 2*s+860*ms, time.Hour)
	for now := 2*s + 860*ms; now < 3*s; now += 10 * ms {
		during(o, now, now+1, time.Hour)
		if got := o.State(now); got.Wait > 100*ms {
			t.Fatalf("%+v, want at most a tenth of a second", got)
		}
	}
}

func TestOnceNobodyWaitsForLongRoundsAreAsLongAsBefore(t *testing.T) {
	o := back(t)
	during(o, 2*s+10*ms, 3*s, time.Hour)
	during(o, 3*s, 3*s+100*ms, 50*ms)
	if n := during(o, 3*s+100*ms, 3*s+800*ms, 50*ms); n > 16 {
		t.Errorf("%d begin in most of a whole round, want 16 at most", n)
	}
}

// A server that has restarted on a busy machine takes ten times as long for every connection as before, however few are
// opened: that is not the work of those who open them.
func TestAServerThatComesBackSlowerIsNotTakenForOverloaded(t *testing.T) {
	o := pacing.NewOpener()
	o.Enter(0, 0, middle, false)
	o.Leave(5*ms, 0, pacing.Opened)
	o.Enter(s, s, middle, false)
	o.Leave(s, s, pacing.Failed)
	if o.Enter(3*s-50*ms, 0, middle, false) != 0 {
		t.Fatal("no probe after two seconds")
	}
	o.Leave(3*s, 3*s-50*ms, pacing.Opened)
	n := 0
	for now := 3 * s; now < 7*s; now += 50 * ms {
		got := begins(o, now, 100)
		for range got {
			o.Leave(now+50*ms, now, pacing.Opened)
		}
		n += got
	}
	if n < 12 {
		t.Errorf("%d connections are opened in four rounds, want 2 and 4 and 8", n)
	}
}

// The first success after an outage may have waited for the outage to end: what was sent into it is sent again after
// seconds. That is not what a connection takes.
func TestAFirstSuccessThatWaitedForTheServerDoesNotHideAnOverload(t *testing.T) {
	o := pacing.NewOpener()
	o.Enter(0, 0, middle, false)
	o.Leave(0, 0, pacing.Failed)
	if o.Enter(200*ms, 0, middle, false) != 0 {
		t.Fatal("nothing begins after 200 ms")
	}
	o.Leave(2*s, 200*ms, pacing.Opened) // 1.8 s
	if n := during(o, 2*s+10*ms, 4*s, 50*ms); n < 2 {
		t.Fatalf("%d begin in two rounds", n) // 10 ms each
	}
	n := begins(o, 4*s+50*ms, 100)
	for range n {
		o.Leave(4*s+550*ms, 4*s+50*ms, pacing.Opened)
	}
	if n == 0 {
		t.Fatal("nothing begins in the third round")
	}
	if got := o.State(4*s + 550*ms).AtOnce; got > 4 {
		t.Errorf("%d at once after %d successes that took 50 times what those before did, want 4", got, n)
	}
}

// Handshakes may take a millisecond or thirty, by where the server's certificate, the session or the replica is. That
// is noise, and no overload.
func TestThatSomeOpeningsAreQuickDoesNotMakeTheOthersSlow(t *testing.T) {
	o := back(t)
	n := 0
	for now := 2*s + 860*ms; now < 3300*ms; now += 10 * ms {
		for o.Enter(now, 0, middle, false) == 0 {
			took := []time.Duration{ms, 30 * ms}[n%2]
			o.Leave(now+took, now, pacing.Opened)
			n++
		}
	}
	if n < 2+4+8 {
		t.Errorf("%d begin in 440 ms, want 2, 4, 8 and more", n)
	}
}

func TestARefusalHalvesAndAFailureLeavesOne(t *testing.T) {
	o := pacing.NewOpener()
	begins(o, 0, 16)
	o.Leave(10*ms, 0, pacing.Refused)
	if got := o.State(10 * ms).AtOnce; got != 8 {
		t.Errorf("after a refusal %d at once, of 15; want 8", got)
	}
	o.Leave(11*ms, 0, pacing.Refused) // began before that was known
	if got := o.State(11 * ms).AtOnce; got != 8 {
		t.Errorf("after one of the same moment %d", got)
	}
	o.Leave(12*ms, 11*ms, pacing.Refused)
	if got := o.State(12 * ms).AtOnce; got != 4 {
		t.Errorf("after the next %d", got)
	}
	o.Leave(13*ms, 12*ms, pacing.Failed)
	if got := o.State(13 * ms).AtOnce; got != 1 {
		t.Errorf("after a failure %d", got)
	}
}

func TestASlowSuccessEarnsNothing(t *testing.T) {
	o := pacing.NewOpener()
	begins(o, 0, 3)
	o.Leave(10*ms, 0, pacing.Opened)
	o.Leave(10*ms, 0, pacing.Refused)
	before := o.State(11 * ms).AtOnce
	o.Leave(s, 0, pacing.Opened)
	if got := o.State(s).AtOnce; got != before {
		t.Errorf("%d at once after a slow success, %d before", got, before)
	}
}

func TestOnceNobodyHasWaitedForTwoRoundsTheOpenerLooksOn(t *testing.T) {
	o := pacing.NewOpener()
	o.Enter(0, 0, middle, false)
	o.Leave(0, 0, pacing.Failed)
	o.Enter(150*ms, 0, middle, false)
	o.Leave(160*ms, 150*ms, pacing.Opened)
	if n := begins(o, s, 1000); n != 1000 {
		t.Errorf("%d of 1000 may begin long after", n)
	}
	if got := o.State(s); got != (pacing.State{}) {
		t.Errorf("%+v", got)
	}
}

func TestWhoComesLaterThanHisPatienceIntoAnOutageWaitsForOneAttempt(t *testing.T) {
	o := pacing.NewOpener()
	if !o.Hopeful(0, 0) {
		t.Error("hopeless before a failure")
	}
	o.Leave(s, 0, pacing.Failed)
	o.Leave(10*s, 9*s, pacing.Failed)
	for _, row := range []struct {
		since, patience time.Duration
		want            bool
	}{{2 * s, 2 * s, true}, {4 * s, 2 * s, false}, {9 * s, 9 * s, true}, {11 * s, 2 * s, true}} {
		if got := o.Hopeful(row.since, row.patience); got != row.want {
			t.Errorf("since %v with a patience of %v: %v", row.since, row.patience, got)
		}
	}
	o.Leave(12*s, 11*s, pacing.Refused)
	if !o.Hopeful(4*s, 2*s) {
		t.Error("a server that is full is hopeless")
	}
}

func TestWhatIsClosedByHandComesBackInRounds(t *testing.T) {
	o := pacing.NewOpener()
	o.Restart(0)
	if n := begins(o, 0, 100); n != 1 {
		t.Errorf("%d begin at once", n)
	}
}

// Who waited before it has not waited since, and does not need the next round yet.
func TestWhatIsClosedByHandHasAWholeFirstRoundToo(t *testing.T) {
	o := pacing.NewOpener()
	o.Leave(0, 0, pacing.Failed)
	o.Restart(10 * s)
	n := 0
	for now := 10 * s; now < 10*s+740*ms; now += 10 * ms {
		if o.Enter(now, 9*s, middle, false) == 0 {
			o.Leave(now+ms, now, pacing.Opened)
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d begin in most of a second after it, want 1", n)
	}
}

// Two that are on their way hang. Nothing is gained by asking every few milliseconds until somebody gives up.
func TestWhoWaitsForAttemptsThatHangAsksSeldom(t *testing.T) {
	o, r := back(t), rand.New(rand.NewPCG(1, 2))
	next := make([]time.Duration, 100)
	for i := range next {
		next[i] = 2*s + time.Duration(i)*ms
	}
	asked := 0
	for now := 2 * s; now < 6*s; now += ms {
		for i := range next {
			if next[i] > now {
				continue
			}
			if wait := o.Enter(now, 2*s, r.Uint64(), false); wait > 0 {
				next[i] = now + wait
			} else {
				next[i] = time.Hour
			}
			if now >= 5*s {
				asked++
			}
		}
	}
	if asked > 2000 {
		t.Errorf("a hundred callers ask %d times in the fourth second, want at most 20 times each", asked)
	}
}

// FuzzOpener lets everything happen at any time: nobody waits for longer than the longest round, the places never grow
// out of nothing, and once all have left and time has passed the next one may begin.
func FuzzOpener(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 2, 0, 0, 3, 5, 5, 5})
	f.Add([]byte{0, 9, 1, 9, 2, 9, 3, 9, 4, 9, 0, 200, 1, 200, 0, 255})
	f.Fuzz(func(t *testing.T, ops []byte) {
		o, now := pacing.NewOpener(), time.Duration(0)
		var out []time.Duration
		for ; len(ops) >= 2; ops = ops[2:] {
			now += time.Duration(ops[1]) * time.Duration(ops[1]) * 100 * time.Microsecond
			draw := binary.LittleEndian.Uint64([]byte{ops[0], ops[1], 1, 2, 3, 4, ops[1], ops[0]})
			switch op := ops[0] % 6; {
			case op == 5:
				o.Restart(now)
			case op == 0 || len(out) == 0:
				if wait := o.Enter(now, now, draw, ops[0] > 200); wait == 0 {
					out = append(out, now)
				} else if wait < 0 || wait > 4*s {
					t.Fatalf("at %v somebody waits %v", now, wait)
				}
			default:
				o.Leave(now, out[0], pacing.Result(op-1))
				out = out[1:]
			}
			if got := o.State(now); got.Wait < 0 || got.Wait > 3*s || got.AtOnce < 0 {
				t.Fatalf("at %v: %+v", now, got)
			}
		}
		for _, began := range out {
			o.Leave(now, began, pacing.Neutral)
		}
		for range 4 {
			if now += 4 * s; o.Enter(now, now, 0, false) == 0 {
				return
			}
		}
		t.Fatalf("nobody may begin any more: %+v", o.State(now))
	})
}

func TestAnOpenerAllocatesNothing(t *testing.T) {
	o := pacing.NewOpener()
	if n := testing.AllocsPerRun(100, func() { o.Enter(0, 0, 0, false); o.Leave(0, 0, pacing.Opened) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
