package dlq_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func TestLedgerGrantsOneReplayAtATime(t *testing.T) {
	start := func(s int, id, session string) *dlq.Action {
		return &dlq.Action{Time: at(s), Kind: dlq.ReplayStart, ID: id, Session: session, By: "ann", Spec: &dlq.Spec{}}
	}
	sign := func(s int, kind dlq.Kind, id, session string) *dlq.Action {
		return &dlq.Action{Time: at(s), Kind: kind, ID: id, Session: session, Progress: &dlq.Progress{Phase: dlq.Running}}
	}
	taking := start(10, "r-2", "b")
	taking.TakeOver = true
	for _, test := range []struct {
		what    string
		actions []*dlq.Action
		holds   string // ID/session, empty for nobody
	}{
		{"the first", []*dlq.Action{start(0, "r-1", "a")}, "r-1/a"},
		{"a second while it is alive", []*dlq.Action{start(0, "r-1", "a"), start(59, "r-2", "b")}, "r-1/a"},
		{"a second after it was silent for a minute", []*dlq.Action{start(0, "r-1", "a"), start(60, "r-2", "b")}, "r-2/b"},
		{"a second after a sign of life", []*dlq.Action{
			start(0, "r-1", "a"), sign(50, dlq.ReplayAlive, "r-1", "a"), start(109, "r-2", "b"),
		}, "r-1/a"},
		{"a sign of life of a stranger", []*dlq.Action{
			start(0, "r-1", "a"), sign(50, dlq.ReplayAlive, "r-1", "x"), start(60, "r-2", "b"),
		}, "r-2/b"},
		{"the first comes back too late", []*dlq.Action{
			start(0, "r-1", "a"), start(60, "r-2", "b"), sign(61, dlq.ReplayAlive, "r-1", "a"),
		}, "r-2/b"},
		{"its end", []*dlq.Action{start(0, "r-1", "a"), sign(1, dlq.ReplayStop, "r-1", "a")}, ""},
		{"the end that a stranger tells", []*dlq.Action{start(0, "r-1", "a"), sign(1, dlq.ReplayStop, "r-1", "x")}, "r-1/a"},
		{"a second after its end", []*dlq.Action{
			start(0, "r-1", "a"), sign(1, dlq.ReplayStop, "r-1", "a"), start(2, "r-2", "b"),
		}, "r-2/b"},
		{"the late end of the first", []*dlq.Action{
			start(0, "r-1", "a"), start(60, "r-2", "b"), sign(61, dlq.ReplayStop, "r-1", "a"),
		}, "r-2/b"},
		{"resumed while it runs", []*dlq.Action{start(0, "r-1", "a"), start(5, "r-1", "b")}, "r-1/a"},
		{"resumed after silence", []*dlq.Action{
			start(0, "r-1", "a"), start(60, "r-1", "b"), sign(61, dlq.ReplayStop, "r-1", "a"),
		}, "r-1/b"},
		{"taken over", []*dlq.Action{start(0, "r-1", "a"), taking}, "r-2/b"},
		{"a start without a spec", []*dlq.Action{{Time: at(0), Kind: dlq.ReplayStart, ID: "r-1", Session: "a"}}, ""},
	} {
		l := dlq.NewLedger("payments-dlq")
		for _, a := range test.actions {
			l.Fold(a)
		}
		held := ""
		for _, id := range []string{"r-1", "r-2"} {
			for _, session := range []string{"a", "b", "x"} {
				if granted, _ := l.Held(id, session); granted {
					held += id + "/" + session
				}
			}
		}
		if held != test.holds {
			t.Errorf("%s: %q holds it, not %q", test.what, held, test.holds)
		}
	}
}

func TestLedgerRemembersWhoAskedForTheEnd(t *testing.T) {
	l := dlq.NewLedger("payments-dlq")
	l.Fold(&dlq.Action{Time: at(0), Kind: dlq.ReplayStart, ID: "r-1", Session: "a", Spec: &dlq.Spec{}})
	l.Fold(&dlq.Action{Time: at(1), Kind: dlq.CancelAsked, ID: "r-2", By: "eve"})
	if _, by := l.Held("r-1", "a"); by != "" {
		t.Errorf("cancelled by %q", by)
	}
	l.Fold(&dlq.Action{Time: at(1), Kind: dlq.CancelAsked, ID: "r-1", By: "bob"})
	if granted, by := l.Held("r-1", "a"); !granted || by != "bob" {
		t.Errorf("cancelled by %q", by)
	}
	l.Fold(&dlq.Action{Time: at(2), Kind: dlq.ReplayStop, ID: "r-1", Session: "a"})
	l.Fold(&dlq.Action{Time: at(3), Kind: dlq.ReplayStart, ID: "r-1", Session: "b", Spec: &dlq.Spec{}})
	if granted, by := l.Held("r-1", "b"); !granted || by != "" {
		t.Errorf("resumed: %v %q", granted, by)
	}
}

func TestLedgerKeepsTheLastStateOfALetter(t *testing.T) {
	l := dlq.NewLedger("payments-dlq")
	state := func(offset int64) string {
		e := &dlq.Entry{At: letter.Place{Topic: "payments-dlq", Offset: offset}}
		l.Tell(e)
		return fmt.Sprint(e.State, " ", e.By, " ", e.Replay)
	}
	for i, step := range []struct {
		action dlq.Action
		want   string
	}{
		{dlq.Action{Kind: dlq.Delete, ID: "delete-1", By: "ann", Place: "payments-dlq/0/7"}, "deleted ann delete-1"},
		{dlq.Action{Kind: dlq.Restore, ID: "restore-1", By: "bob", Place: "payments-dlq/0/7"}, "waiting bob restore-1"},
		{dlq.Action{Kind: dlq.Sent, ID: "r-1", By: "bob", Place: "payments-dlq/0/7"}, "replayed bob r-1"},
		{dlq.Action{Kind: dlq.Delete, By: "eve", Place: "other-dlq/0/7"}, "replayed bob r-1"},
		{dlq.Action{Kind: dlq.Delete, By: "eve", Place: "payments-dlq/0"}, "replayed bob r-1"},
		{dlq.Action{Kind: "something new", By: "eve", Place: "payments-dlq/0/7"}, "replayed bob r-1"},
	} {
		step.action.Time = at(i)
		l.Fold(&step.action)
		if got := state(7); got != step.want {
			t.Errorf("step %d: %s", i, got)
		}
	}
	if !l.Sent("r-1", 0, 7) || l.Sent("r-2", 0, 7) || l.Sent("r-1", 0, 8) || state(8) != "waiting  " {
		t.Error("who has sent what")
	}
	if l.Prune(7); !l.Sent("r-1", 0, 7) {
		t.Error("it forgets a letter that is still there")
	}
	if l.Prune(8); l.Sent("r-1", 0, 7) || state(7) != "waiting  " {
		t.Error("it remembers a letter that retention has taken")
	}
}

// The order of the audit says what was done last, for every record of a letter: the broker that stamps it now may have
// a clock that is behind.
func TestClocksDoNotSayWhatWasDoneToALetterLast(t *testing.T) {
	const same = "000102030405060708090a0b0c0d0e0f"
	l := dlq.NewLedger("payments-dlq")
	l.Fold(&dlq.Action{Time: at(100), Kind: dlq.Delete, By: "ann", Place: "payments-dlq/0/7", Twin: same})
	l.Fold(&dlq.Action{Time: at(40), Kind: dlq.Restore, By: "bob", Place: "payments-dlq/0/9", Twin: same})
	for _, offset := range []int64{7, 9, 11} {
		e := (&dlq.Entry{At: letter.Place{Topic: "payments-dlq", Offset: offset}}).Twin(same)
		if l.Tell(e); e.State != dlq.Waiting || e.By != "bob" {
			t.Errorf("its record at %d is %s by %s", offset, e.State, e.By)
		}
	}
}

func TestRestoredLetterIsWhatItWas(t *testing.T) {
	for _, test := range []struct {
		kinds []dlq.Kind
		want  dlq.State
	}{
		{[]dlq.Kind{dlq.Delete, dlq.Restore}, dlq.Waiting},
		{[]dlq.Kind{dlq.Sent, dlq.Delete, dlq.Restore}, dlq.Replayed},
		{[]dlq.Kind{dlq.Edited, dlq.Delete, dlq.Delete, dlq.Restore}, dlq.Replayed},
		{[]dlq.Kind{dlq.Sent, dlq.Restore}, dlq.Waiting},
		{[]dlq.Kind{dlq.Sent, dlq.Delete, dlq.Restore, dlq.Restore}, dlq.Waiting},
		{[]dlq.Kind{dlq.Sent, dlq.Restore, dlq.Delete, dlq.Restore}, dlq.Waiting},
	} {
		l := dlq.NewLedger("payments-dlq")
		for i, kind := range test.kinds {
			l.Fold(&dlq.Action{Time: at(i), Kind: kind, ID: "x", Place: "payments-dlq/0/7"})
		}
		e := &dlq.Entry{At: letter.Place{Topic: "payments-dlq", Offset: 7}}
		if l.Tell(e); e.State != test.want {
			t.Errorf("%v: %s, not %s", test.kinds, e.State, test.want)
		}
	}
}

func TestLedgerForgetsATopicThatHadTheSameName(t *testing.T) {
	l := dlq.NewLedger("payments-dlq")
	// by a version that did not say the topic's ID
	l.Fold(&dlq.Action{Time: at(0), Kind: dlq.Sent, ID: "r-1", Place: "payments-dlq/0/1"})
	l.Fold(&dlq.Action{Time: at(0), Kind: dlq.Sent, ID: "r-1", Place: "payments-dlq/0/2", TopicID: "first"})
	for _, step := range []struct {
		id   string
		want [2]bool
	}{{"first", [2]bool{true, true}}, {"second", [2]bool{true, false}}, {"first", [2]bool{true, true}}} {
		l.Called(step.id)
		if got := [2]bool{l.Sent("r-1", 0, 1), l.Sent("r-1", 0, 2)}; got != step.want {
			t.Errorf("topic %s: %v", step.id, got)
		}
	}
}

// FuzzLedger folds any lines: at most one session holds the topic, and only one that asked.
func FuzzLedger(f *testing.F) {
	f.Add([]byte(`{"action":"replay-start","id":"r","session":"s","spec":{}}` + "\n" +
		`{"action":"replay-alive","id":"r","session":"s","progress":{"phase":"running"}}`))
	f.Add([]byte(`{"action":"replayed","id":"r","place":"d/0/1"}` + "\n" + `{"action":"delete","place":"d/0/1"}` + "\n" +
		`{"action":"note","group":"g","text":"t"}`))
	f.Add([]byte(`{"action":"cancel","id":"r"}` + "\n" + `{"action":"replay-stop","id":"r","session":"s"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := dlq.NewLedger("d")
		now := noon
		asked := map[string]bool{}
		for len(text) > 0 {
			var line []byte
			for i, c := range text {
				if c == '\n' || i == len(text)-1 {
					line, text = text[:i+1], text[i+1:]
					break
				}
			}
			a := new(dlq.Action)
			if json.Unmarshal(line, a) != nil {
				continue
			}
			now = now.Add(time.Duration(len(line)%100) * time.Second)
			a.Time = now
			before := l.Active()
			l.Fold(a)
			if a.Kind == dlq.ReplayStart {
				asked[a.ID] = true
			}
			if id := l.Active(); id != "" && !asked[id] || id != before && a.Kind != dlq.ReplayStart &&
				a.Kind != dlq.ReplayStop {
				t.Fatalf("%q holds the topic after %s", id, line)
			}
			e := &dlq.Entry{At: letter.Place{Topic: "d", Offset: 1}}
			if l.Tell(e); e.State != dlq.Waiting && e.State != dlq.Replayed && e.State != dlq.Deleted {
				t.Fatalf("state %q", e.State)
			}
		}
	})
}
