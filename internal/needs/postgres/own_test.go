package postgres_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs/postgres"
)

func TestAServerThatHasEndedByItselfIsStartedAgain(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	s := postgres.Own(t)
	if err := s.Drain(); err != nil { // nobody is connected: it ends
		t.Fatal(err)
	}
	eventually(t, "the end of the server", func() bool { return !listens(t, s.DSN()) })
	if err := s.Start(); err != nil || !listens(t, s.DSN()) {
		t.Errorf("%v; its log:\n%s", err, s.Log())
	}
	held, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	// does it speak TLS? The answer is that of a process of its own, for which the server waits
	_, _ = held.Write([]byte("\x00\x00\x00\x08\x04\xd2\x16\x2f"))
	if _, err := held.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(); err != nil {
		t.Error(err)
	}
	if err := s.Start(); err != nil || !s.Answers() {
		t.Errorf("while it was stopping: %v", err)
	}
	s.Stop()
	if err := s.Drain(); err == nil {
		t.Error("a server that does not run was drained")
	}
}

func TestAStandbyIsThereOnceItIsWhatItWillBe(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	s := postgres.Shared(t)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	open, closed := s.Standby(t), s.Standby(t, "hot_standby=off")
	starting, proceed := s.Starting(t)
	for name, c := range map[string]struct {
		s       *postgres.Server
		answers bool
	}{"open": {open, true}, "closed": {closed, false}, "starting": {starting, false}} {
		if !listens(t, c.s.DSN()) || c.s.Answers() != c.answers {
			t.Errorf("%s: it lets us in: %v", name, c.s.Answers())
		}
	}
	proceed()
	closed.Promote(t)
	eventually(t, "both to let us in", func() bool { return starting.Answers() && closed.Answers() })
	for _, c := range []*postgres.Server{closed, starting} { // what they have become stays
		c.Crash()
		if err := c.Start(); err != nil {
			t.Error(err)
		}
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	over, tick := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}
