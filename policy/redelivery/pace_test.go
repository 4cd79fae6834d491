package redelivery_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// second is where the tests' clock begins: anywhere but at 0.
const second = 1000 * time.Second

// serve lets deliveries succeed at a steady rate for a while, and returns when that ends.
func serve(p *redelivery.Pace, now time.Duration, perSecond int, lasting time.Duration) time.Duration {
	end, gap := now+lasting, time.Second/time.Duration(perSecond)
	for ; now < end; now += gap {
		if wait := p.Start(now); wait == 0 {
			p.Done(now, 1, true)
		}
	}
	return end
}

// ill is a pace that knows what is normal, and has trouble.
func ill(c redelivery.Drain, normal int) (*redelivery.Pace, time.Duration) {
	p := redelivery.NewPace(c)
	now := serve(p, second, normal, 30*time.Second)
	p.Trouble(now)
	return p, now
}

// succeed is a delivery that may start at once, and succeeds.
func succeed(t *testing.T, p *redelivery.Pace, now time.Duration) {
	t.Helper()
	if wait := p.Start(now); wait != 0 {
		t.Fatalf("a delivery that should start must wait for %v", wait)
	}
	p.Done(now, 1, true)
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*max(want, 1) }

func TestPaceBoundsNothingBeforeTrouble(t *testing.T) {
	p := redelivery.NewPace(redelivery.Drain{MaxRate: 1})
	for i := range 10_000 {
		if wait := p.Start(second); wait != 0 {
			t.Fatalf("delivery %d waits for %v", i, wait)
		}
		p.Done(second, 1, i%2 == 0)
	}
	if s := p.State(second); s.Draining || s.Limit != 0 {
		t.Errorf("%+v", s)
	}
}

func TestPaceLearnsTheBusiestTenSecondsOfTenMinutes(t *testing.T) {
	for name, row := range map[string]struct {
		life func(p *redelivery.Pace, now time.Duration) time.Duration
		want float64
	}{
		"steady": {func(p *redelivery.Pace, now time.Duration) time.Duration { return serve(p, now, 50, time.Minute) }, 50},
		"a busy ten seconds": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			return serve(p, busyTen(p, now), 50, time.Minute)
		}, 100},
		"a spike of one second": {spike, 68}, // (9 × 20 + 500) / 10
		"a spike at first": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			// of the first second nothing is learnt
			return serve(p, serve(p, serve(p, now, 500, time.Second), 500, time.Second), 50, time.Minute)
		}, 95},
		"too long ago": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			return serve(p, busyTen(p, now), 50, 11*time.Minute)
		}, 50},
		"long pauses are not": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			return serve(p, now, 50, 20*time.Second) + 5*time.Minute
		}, 50},
		"a pause of a day is not": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			return serve(p, now, 50, 20*time.Second) + 24*time.Hour
		}, 50},
		"two long pauses are not": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			now = serve(p, now, 50, 20*time.Second) + 24*time.Hour
			p.Done(now, 1, true)
			return now + 24*time.Hour
		}, 50},
		"the first seconds after a pause": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			return serve(p, serve(p, now, 50, 20*time.Second)+24*time.Hour, 3, 4*time.Second)
		}, 50},
		"ten seconds after a pause": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			return serve(p, serve(p, now, 50, 20*time.Second)+24*time.Hour, 3, 12*time.Second)
		}, 3},
		"three seconds only": {func(p *redelivery.Pace, now time.Duration) time.Duration {
			return serve(p, now, 50, 3*time.Second)
		}, 50},
		"nothing": {func(p *redelivery.Pace, now time.Duration) time.Duration { return now }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := redelivery.NewPace(redelivery.Drain{})
			now := row.life(p, second)
			if s := p.State(now); !near(s.Normal, row.want) {
				t.Errorf("before the trouble %v is normal, want %v", s.Normal, row.want)
			}
			p.Trouble(now)
			if s := p.State(now); !near(s.Normal, row.want) || !near(s.Limit, row.want*1.2*0.1) || !s.Draining {
				t.Errorf("%+v, want normal %v", s, row.want)
			}
		})
	}
}

func busyTen(p *redelivery.Pace, now time.Duration) time.Duration {
	return serve(p, serve(p, now, 50, time.Minute), 100, 10*time.Second)
}

func spike(p *redelivery.Pace, now time.Duration) time.Duration {
	now = serve(p, serve(p, now, 20, time.Minute), 500, time.Second)
	return serve(p, now, 20, time.Minute)
}

func TestTheSecondOfTheTroubleIsNotLearnt(t *testing.T) {
	p := redelivery.NewPace(redelivery.Drain{})
	now := serve(p, second, 50, 3500*time.Millisecond)
	p.Trouble(now)
	succeed(t, p, now)
	now += 10 * time.Second
	p.Behind(now, 0)
	if s := p.State(now); s.Draining || !near(s.Normal, 50) {
		t.Errorf("%+v", s)
	}
}

func TestPaceLearnsOnlyFromWhatTheServiceHasHandled(t *testing.T) {
	p := redelivery.NewPace(redelivery.Drain{})
	now := second
	for range 3000 {
		now += 10 * time.Millisecond
		p.Done(now, 0, true)
		p.Done(now, 1, false)
	}
	if s := p.State(now); s.Normal != 0 {
		t.Errorf("normal is %v, though the service has handled nothing", s.Normal)
	}
}

func TestPaceRampsUpFromTheFirstSuccess(t *testing.T) {
	p, now := ill(redelivery.Drain{RampUp: 20 * time.Second}, 100)
	check := func(after time.Duration, want float64) {
		t.Helper()
		if s := p.State(now + after); !near(s.Limit, want) || !near(s.Normal, 100) {
			t.Errorf("%v after: %+v, want the limit %v", after, s, want)
		}
	}
	check(time.Minute, 12)
	p.Done(now, 1, true)
	check(time.Minute, 12) // the success of a delivery from before the trouble says nothing
	p.Start(now)
	p.Done(now, 1, false)
	check(time.Minute, 12) // a failure is no recovery
	p.Done(now, 0, true)
	check(time.Minute, 12) // nor is a message that was recognised without asking the service
	p.Done(now, 1, true)
	check(0, 12)
	check(10*time.Second, 66)
	check(20*time.Second, 120)
	now += 15 * time.Second
	p.Trouble(now)
	p.Done(now, 1, true)
	check(time.Minute, 12) // anew, and what is normal is from before
	succeed(t, p, now)
	p.Done(now+5*time.Second, 1, true) // only the first counts
	check(20*time.Second, 120)
}

func TestPaceKeepsToTheMaximumRate(t *testing.T) {
	p, now := ill(redelivery.Drain{MaxRate: 50}, 100)
	if s := p.State(now); !near(s.Limit, 12) {
		t.Errorf("a tenth of what was learnt is below the maximum: %+v", s)
	}
	succeed(t, p, now)
	if s := p.State(now + time.Minute); !near(s.Limit, 50) {
		t.Errorf("%+v", s)
	}
	unknown := redelivery.NewPace(redelivery.Drain{MaxRate: 50})
	unknown.Trouble(second)
	if s := unknown.State(second); !near(s.Limit, 5) {
		t.Errorf("where nothing is known the maximum ramps up: %+v", s)
	}
	succeed(t, unknown, second)
	for after, want := range map[time.Duration]float64{10 * time.Second: 50, time.Hour: 50} {
		if s := unknown.State(second + after); !near(s.Limit, want) {
			t.Errorf("after %v: %+v", after, s)
		}
	}
}

func TestPaceBoundsNothingWhenItKnowsNothing(t *testing.T) {
	p := redelivery.NewPace(redelivery.Drain{})
	p.Trouble(second)
	for range 1000 {
		if wait := p.Start(second); wait != 0 {
			t.Fatalf("waits for %v", wait)
		}
		p.Done(second, 4, false)
	}
	if s := p.State(second); !s.Draining || s.Limit != 0 {
		t.Errorf("%+v", s)
	}
	succeed(t, p, second)
	if p.Behind(second+10*time.Second, 0); p.State(second).Draining {
		t.Error("a drain without a bound does not end")
	}
}

// storm lets callers ask, wait as they are told and ask again, and returns when deliveries began and how often somebody
// asked. Each delivery takes as long and as many attempts as done says.
func storm(p *redelivery.Pace, now, end time.Duration, callers int,
	done func() (took time.Duration, attempts int, ok bool)) (starts []time.Duration, attempts, asked int) {
	type caller struct {
		at       time.Duration
		attempts int // of the delivery that ends then; 0: it asks
		ok       bool
	}
	queue := make([]caller, callers)
	for i := range queue {
		queue[i].at = now
	}
	for {
		next := 0
		for i := range queue {
			if queue[i].at < queue[next].at {
				next = i
			}
		}
		c := &queue[next]
		if c.at >= end {
			return starts, attempts, asked
		}
		if c.attempts > 0 {
			p.Done(c.at, c.attempts, c.ok)
			c.attempts = 0
			continue
		}
		asked++
		if wait := p.Start(c.at); wait > 0 {
			c.at += wait
			continue
		}
		starts = append(starts, c.at)
		var took time.Duration
		took, c.attempts, c.ok = done()
		attempts += c.attempts
		c.at += took
	}
}

func TestLoadOfADrainIsBoundedForAnyNumberOfCallers(t *testing.T) {
	for _, callers := range []int{1, 10, 1000} {
		for _, normal := range []int{2, 100, 1000} {
			p, now := ill(redelivery.Drain{RampUp: 2 * time.Second}, normal)
			r := rand.New(rand.NewPCG(uint64(callers), uint64(normal)))
			end := now + 8*time.Second
			limit := 1.2 * float64(normal)
			// so that they could do twice the limit
			longest := min(20*time.Millisecond, time.Duration(float64(callers)/limit*float64(time.Second)))
			starts, _, asked := storm(p, now, end, callers, func() (time.Duration, int, bool) {
				return time.Duration(r.Int64N(int64(longest))), 1, true
			})
			most := limit + max(limit/20, 1)
			for i, from := range starts {
				to, _ := slices.BinarySearch(starts, from+time.Second)
				if n := to - i; float64(n) > most {
					t.Fatalf("%d callers, normal %d: %d deliveries in the second from %v, want at most %v", callers, normal,
						n, from-now, most)
				}
			}
			// All of it is used: in the second half, at full rate.
			half, _ := slices.BinarySearch(starts, now+3*time.Second)
			if n := float64(len(starts) - half); n < 0.9*limit*5 {
				t.Errorf("%d callers, normal %d: %v deliveries in 5 s at the limit %v: callers wait longer than they must", callers,
					normal, n, limit)
			}
			if per := float64(asked-len(starts)) / 8 / float64(callers); per > max(15, 2*limit/float64(callers)) {
				t.Errorf("%d callers, normal %d: each asks %v times a second in vain", callers, normal, per)
			}
		}
	}
}

func TestAttemptsThatTheGuardAddsAreCharged(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 100)
	succeed(t, p, now)
	r := rand.New(rand.NewPCG(1, 1))
	from, end := now+10*time.Second, now+110*time.Second
	_, attempts, _ := storm(p, from, end, 50, func() (time.Duration, int, bool) {
		return time.Duration(r.Int64N(int64(10 * time.Millisecond))), 1 + r.IntN(4), true
	})
	if most := 120.0*100 + 6 + 50*4; float64(attempts) > most || float64(attempts) < 0.9*120*100 {
		t.Errorf("%d attempts in 100 s, want at most %v and nearly as many", attempts, most)
	}
}

func TestDebtOfADrainIsBounded(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 100)
	p.Done(now, 1_000_000, true)
	asked := 0
	for end := now + 30*time.Second; p.Start(now) > 0; asked++ {
		if now += 100 * time.Millisecond; now > end {
			t.Fatal("half a minute is not enough to pay what was owed")
		}
	}
	if asked < 20 {
		t.Errorf("the million attempts were paid after %d tenths of a second", asked)
	}
}

func TestARefusedDeliveryGivesItsTokenBack(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 10)
	for i := range 100 {
		if wait := p.Start(now); wait != 0 {
			t.Fatalf("after %d refusals there is a wait of %v", i, wait)
		}
		p.Done(now, 0, false)
	}
}

func TestAStormOfCallersIsSpreadOut(t *testing.T) {
	for _, normal := range []int{1, 10, 1000} {
		p, now := ill(redelivery.Drain{}, normal)
		told := map[time.Duration]int{}
		for range 1000 {
			wait := p.Start(now)
			if wait < 0 || wait > time.Second {
				t.Fatalf("told to wait %v", wait)
			}
			told[wait]++
		}
		for wait, n := range told {
			if n > 150 {
				t.Errorf("normal %d: %d of 1000 are told to come back in %v", normal, n, wait)
			}
		}
	}
}

func TestAPauseInADrainSavesNothingUp(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 1000)
	succeed(t, p, now)
	now += time.Minute
	at := 0
	for p.Start(now) == 0 {
		at++
	}
	if at != 23 { // 20 ms of 1176/s, which with a burst makes 1200 in a second
		t.Errorf("%d deliveries at once after a minute in which nobody asked", at)
	}
}

func TestADrainEndsWhenNothingIsBehindAndTheRampIsOver(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 100)
	draining := func(want bool, why string) {
		t.Helper()
		if p.State(now).Draining != want {
			t.Errorf("draining is %v %s", !want, why)
		}
	}
	now += time.Minute
	p.Behind(now, 0)
	draining(true, "though nothing has succeeded yet")
	succeed(t, p, now)
	now += 9 * time.Second
	p.Behind(now, 0)
	draining(true, "though the ramp is not over")
	now += 2 * time.Second
	p.Behind(now, 5000)
	draining(true, "with 5000 messages behind")
	p.Behind(now, 11)
	draining(true, "with more behind than a tenth of a second of what is normal")
	p.Behind(now, 10)
	draining(false, "with what is always on its way")
	for range 1000 {
		if wait := p.Start(now); wait != 0 {
			t.Fatalf("waits %v after the drain", wait)
		}
	}
}

func TestWhatIsNormalIsNotLearntFromADrain(t *testing.T) {
	p, now := ill(redelivery.Drain{Factor: 5, RampUp: time.Second}, 100)
	now = serve(p, now, 400, 20*time.Second)
	p.Behind(now, 0)
	if s := p.State(now); s.Draining || !near(s.Normal, 100) {
		t.Errorf("%+v", s)
	}
	now = serve(p, now, 50, 5*time.Second)
	p.Trouble(now)
	if s := p.State(now); !near(s.Normal, 100) {
		t.Errorf("after the second trouble: %+v", s)
	}
	now += 3 * time.Hour // an outage that outlives the memory
	succeed(t, p, now)
	now += 2 * time.Second
	p.Behind(now, 0)
	p.Trouble(now)
	if s := p.State(now); !near(s.Normal, 100) {
		t.Errorf("after three hours: %+v", s)
	}
	succeed(t, p, now)
	now += 20 * time.Minute
	p.Behind(now, 0)
	now = serve(p, now+time.Second/2, 40, 5*time.Second)
	if s := p.State(now); !near(s.Normal, 40) {
		t.Errorf("five seconds after a long drain: %+v", s)
	}
}

// wait asks until somebody must wait.
func wait(p *redelivery.Pace, now time.Duration) {
	for p.Start(now) == 0 {
	}
}

func TestTheLimitGrowsWhenADrainNeverCatchesUp(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 100)
	now += 2 * time.Hour // of outage: no reason for more
	succeed(t, p, now)
	want := 120.0
	for minute := range 60 {
		now += time.Minute
		wait(p, now)
		p.Behind(now, 5000)
		if minute >= 10 {
			want *= 1.1
		}
		if s := p.State(now); !near(s.Limit, want) {
			t.Fatalf("after %d min: %+v, want %v", minute+1, s, want)
		}
	}
}

func TestReconfigureKeepsWhatWasLearnt(t *testing.T) {
	p, now := ill(redelivery.Drain{}, 100)
	succeed(t, p, now)
	now += time.Minute
	p.Reconfigure(redelivery.Drain{Factor: 2})
	if s := p.State(now); !near(s.Limit, 200) {
		t.Errorf("%+v", s)
	}
	p.Reconfigure(redelivery.Drain{Disabled: true})
	if s := p.State(now); s.Draining || p.Start(now) != 0 {
		t.Errorf("a drain that is disabled goes on: %+v", s)
	}
	p.Trouble(now)
	if s := p.State(now); s.Draining {
		t.Errorf("a drain that is disabled begins: %+v", s)
	}
}

func TestAPaceIsSafeForConcurrentUse(t *testing.T) {
	p, now := ill(redelivery.Drain{RampUp: time.Second}, 100)
	done := make(chan int)
	for g := range 8 {
		go func() {
			started := 0
			for i := range 2000 {
				at := now + time.Duration(i)*time.Millisecond
				if p.Start(at) == 0 {
					started++
					p.Done(at, 1, true)
				}
				switch {
				case g == 0 && i%100 == 0:
					p.Behind(at, int64(i))
					p.State(at)
				case g == 1 && i == 500:
					p.Reconfigure(redelivery.Drain{RampUp: time.Second})
				}
			}
			done <- started
		}()
	}
	all := 0
	for range 8 {
		all += <-done
	}
	if most := 120*2 + 6 + 1; all > most || all < 100 {
		t.Errorf("%d deliveries in 2 s, want at most %d", all, most)
	}
}

func FuzzPaceKeepsItsBound(f *testing.F) {
	f.Add([]byte{0, 10, 200, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1})
	f.Add([]byte{2, 255, 1, 0, 0, 255, 5, 5, 5, 5, 5, 5, 1, 2, 0, 9, 0, 9})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) < 2 {
			return
		}
		p := redelivery.NewPace(redelivery.Drain{
			MaxRate: float64(steps[0]), RampUp: time.Duration(steps[1]) * 100 * time.Millisecond,
		})
		now := second
		tokens, limit := 0.0, 0.0 // at least what the pace may have
		for i := 2; i+1 < len(steps); i += 2 {
			arg := time.Duration(steps[i+1])
			before := p.State(now)
			now += arg * arg * time.Millisecond
			s := p.State(now)
			if s.Limit < 0 || math.IsNaN(s.Limit) || s.Normal < 0 || s.Draining && s.Limit < before.Limit-1e-6 &&
				before.Draining {
				t.Fatalf("step %d: %+v after %+v", i, s, before)
			}
			limit = max(s.Limit, before.Limit)
			tokens = min(tokens+limit*(arg*arg*time.Millisecond).Seconds(), max(limit/20, 1))
			switch steps[i] % 6 {
			case 0, 1, 2:
				wait := p.Start(now)
				if wait < 0 || wait > time.Second || wait > 0 && (!s.Draining || s.Limit == 0) {
					t.Fatalf("step %d: told to wait %v: %+v", i, wait, s)
				}
				if s.Draining && s.Limit > 0 && wait == 0 {
					if tokens--; tokens < -1e-6 {
						t.Fatalf("step %d: one delivery too many: %+v", i, s)
					}
				}
			case 3:
				attempts := int(steps[i]) / 6 % 4
				p.Done(now, attempts, steps[i+1]%2 == 0)
				if attempts == 0 {
					tokens++
				}
			case 4:
				p.Trouble(now)
				if !s.Draining {
					tokens = max(p.State(now).Limit/20, 1)
				}
			case 5:
				p.Behind(now, int64(steps[i+1]))
			}
		}
	})
}
