package brokertest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// someCrashes reports whether nobody has asked for all of it.
func someCrashes() bool { return os.Getenv("ABATE_CRASH_ROUNDS") == "" }

// crashRounds is how often each crash test goes through its points: 1, or what ABATE_CRASH_ROUNDS says.
func crashRounds(t testing.TB) int {
	t.Helper()
	text := os.Getenv("ABATE_CRASH_ROUNDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("ABATE_CRASH_ROUNDS is %q; give a number of rounds from 1", text)
	}
	return n
}

// Consumers are killed at each point between poll and commit, one after the other on the same messages and their
// retries. In every other round they hang at the point before, long enough for a commit of all else. What is left after
// the last one: each message has had one effect or is a dead letter, as planned, and nothing is stuck.
func TestNothingIsLostOrDoneTwiceWhereverAConsumerIsKilled(t *testing.T) {
	crashes(t, false, eachBroker, func(t *testing.T, l *ledger, round int, points []point, random *rand.Rand) (
		crashed int) {
		for _, p := range points {
			l.write(t)
			c := l.child("member-0")
			c.At, c.Nth = p, 1+random.Int64N(often(p))
			if round%2 == 0 && !testing.Short() {
				c.Linger = 1500 * time.Millisecond
			}
			if m := start(t, c); m.killed(t) {
				crashed++
			}
		}
		l.finish(t)
		return crashed
	})
}

// A second member joins while the first is at a point. The first goes on, or is killed there.
func TestNothingIsLostOrDoneTwiceWhereverARebalanceBegins(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	crashes(t, someCrashes(), eachBroker, func(t *testing.T, l *ledger, round int, points []point, random *rand.Rand) (
		crashed int) {
		for i, p := range points {
			l.write(t)
			c := l.child("member-0")
			c.At, c.Nth, c.Hold, c.Session = p, 1+random.Int64N(often(p)), true, 2*time.Second
			first := start(t, c)
			first.hears(t, "at "+string(p))
			c = l.child("member-1")
			c.Session = 2 * time.Second
			second := start(t, c)
			second.hears(t, "joining")
			if (i+round)%2 == 1 {
				first.kill()
				crashed++
			} else {
				first.goOn(t)
			}
			l.settled(t)
			first.end(t)
			second.end(t)
		}
		return crashed
	})
}

// The broker is killed while a consumer is at a point, and comes back. The consumer goes on all the time, or is killed
// there too.
func TestNothingIsLostOrDoneTwiceWhereverTheBrokerIsKilled(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	crashes(t, someCrashes(), func(t *testing.T, fn func(*testing.T, broker)) { eachBrokerOfItsOwn(t, fn) },
		func(t *testing.T, l *ledger, round int, points []point, random *rand.Rand) (crashed int) {
			for i, p := range points {
				l.write(t)
				c := l.child("member-0")
				c.At, c.Nth, c.Hold = p, 1+random.Int64N(often(p)), true
				m := start(t, c)
				m.hears(t, "at "+string(p))
				l.b.kill(t)
				crashed++
				if (i+round)%3 == 0 {
					m.kill()
				} else {
					m.goOn(t)
				}
				l.b.restart(t)
				if (i+round)%3 == 0 {
					m = start(t, l.child("member-0"))
				}
				l.settled(t)
				m.end(t)
			}
			return crashed
		})
}

// often bounds at which of its visits something happens at a point: all messages of a write come by there, but commits
// come once a second and what is in a transaction comes together.
func often(p point) int64 {
	switch p {
	case polled, beforeEffect, decided:
		return 6
	case afterEffect, acknowledged:
		return 4
	case sent, offsetsSent, endSent, ended:
		return 2
	}
	return 1
}

// crashes runs rounds of a crash test, at least once and exactly once, and says what they came to. A round goes through
// all points, or through some of them.
func crashes(t *testing.T, some bool, each func(*testing.T, func(*testing.T, broker)),
	round func(t *testing.T, l *ledger, round int, points []point, random *rand.Rand) int) {
	rounds := crashRounds(t)
	each(t, func(t *testing.T, b broker) {
		for _, exactlyOnce := range []bool{false, true} {
			name := map[bool]string{false: "at least once", true: "exactly once"}[exactlyOnce]
			t.Run(name, func(t *testing.T) {
				var all verdict
				crashed, began := 0, time.Now()
				for n := 0; n < rounds && !t.Failed(); n++ {
					random := rand.New(rand.NewPCG(uint64(n), 7))
					points := pointsOf(exactlyOnce)
					random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
					switch {
					case testing.Short():
						points = points[:1]
					case some:
						points = points[:3]
					}
					l := newLedger(t, b, exactlyOnce)
					crashed += round(t, l, n, points, random)
					v := l.judge(t)
					all.add(v)
					if t.Failed() {
						t.Logf("round %d, points %q", n, points)
					}
				}
				t.Logf("%s, %s: %d rounds, %d crashes in %v; %v", b.name, name, rounds, crashed,
					time.Since(began).Round(time.Second), all)
			})
		}
	})
}

// finish lets a member do what is left, and some more.
func (l *ledger) finish(t testing.TB) {
	t.Helper()
	l.write(t)
	m := start(t, l.child("member-0"))
	l.settled(t)
	m.end(t)
}

// member is a child, seen from the test.
type member struct {
	child
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it says; closed at its end
	log   *tail
	dead  bool
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - 16<<10; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// start starts a member. It is killed at the end of the test, if it still runs, and its log shown if the test failed.
func start(t testing.TB, c child) *member {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{child: c, cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000), log: &tail{}}
	m.cmd.Env = append(os.Environ(), childData+"="+string(data))
	m.cmd.Stderr = m.log
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			m.lines <- in.Text()
		}
		close(m.lines)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s of group %s, for %q:\n%s", m.Instance, m.Group, m.At, m.log)
		}
		m.kill()
	})
	return m
}

// hears waits until the member says a line.
func (m *member) hears(t testing.TB, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		select {
		case line, ok := <-m.lines:
			if line == want {
				return
			}
			if !ok {
				t.Fatalf("%s ended (%v) before it said %q", m.Instance, m.cmd.Wait(), want)
			}
		case <-ctx.Done():
			t.Fatalf("%s did not say %q within %v", m.Instance, want, patience)
		}
	}
}

// killed waits until the member has killed itself.
func (m *member) killed(t testing.TB) bool {
	t.Helper()
	m.ends(t, fmt.Sprintf("being killed: it never was at %q for the time no. %d", m.At, m.Nth))
	m.dead = true
	_ = m.cmd.Wait()
	if status, _ := m.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() ||
		status.Signal() != syscall.SIGKILL {
		t.Fatalf("%s ended with %v instead of killing itself at %q", m.Instance, m.cmd.ProcessState, m.At)
	}
	return true
}

// ends waits until the member's output ends.
func (m *member) ends(t testing.TB, what string) {
	t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		select {
		case _, ok := <-m.lines:
			if !ok {
				return
			}
		case <-over.C:
			t.Fatalf("%s goes on after %v without %s", m.Instance, patience, what)
		}
	}
}

// goOn lets a member that is held at its point go on.
func (m *member) goOn(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(m.in, "go on\n"); err != nil {
		t.Fatal(err)
	}
}

// kill kills the member, if it still runs.
func (m *member) kill() {
	if m.dead {
		return
	}
	m.dead = true
	_ = m.cmd.Process.Kill()
	for range m.lines { // to its end
	}
	_ = m.cmd.Wait()
}

// end lets the member end by itself: it finishes what it has begun, and leaves its groups. One that was killed has
// ended.
func (m *member) end(t testing.TB) {
	t.Helper()
	if m.dead {
		return
	}
	_ = m.in.Close()
	m.ends(t, "the end that it was told to make")
	m.dead = true
	if err := m.cmd.Wait(); err != nil {
		t.Fatalf("%s ended with %v:\n%s", m.Instance, err, strings.TrimSpace(m.log.String()))
	}
}
