package topology_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/topology"
)

func limit(d time.Duration) topology.Value[time.Duration] {
	return topology.Write(d, topology.Position{})
}

func repeating(tries int, on ...topology.Outcome) topology.Layer {
	return topology.Layer{Repeats: []topology.Repeat{{On: on, Tries: topology.Write(tries, topology.Position{})}}}
}

// The times of Envoy and nginx were measured on the real programs; docs/audit.md has the table.
func TestTriesOfAHang(t *testing.T) {
	for name, c := range map[string]struct {
		tries           int
		perTry, overall time.Duration
		startsOnly      bool
		first           time.Duration
		jitter          string
		want            int
		longest         time.Duration
		never           bool
	}{
		"Envoy, 0.5 s a try, no overall limit": {tries: 4, perTry: 500 * time.Millisecond, want: 4, longest: 2 * time.Second},
		"Envoy, cut by the route's limit": {tries: 6, perTry: 500 * time.Millisecond, overall: 1200 * time.Millisecond,
			want: 3, longest: 1200 * time.Millisecond},
		"a try that outlives the call": {tries: 4, perTry: 2 * time.Second, overall: 400 * time.Millisecond, want: 1,
			longest: 400 * time.Millisecond},
		"no limit of a try": {tries: 4, overall: time.Second, want: 1, longest: time.Second},
		"no limit at all":   {tries: 4, want: 1, never: true},
		"nginx, whose limit only forbids to start": {tries: 3, perTry: time.Second, overall: 1500 * time.Millisecond,
			startsOnly: true, want: 2, longest: 2 * time.Second},
		"a limit that only forbids to start, and waits that are drawn": {tries: 9, perTry: time.Second,
			overall: 4 * time.Second, startsOnly: true, first: time.Second, jitter: "full", want: 4,
			longest: 5 * time.Second},
		"a fixed wait counts": {tries: 9, perTry: time.Second, overall: 4 * time.Second, first: time.Second, want: 2,
			longest: 4 * time.Second},
		"a drawn wait may be nothing": {tries: 9, perTry: time.Second, overall: 4 * time.Second, first: time.Second,
			jitter: "full", want: 4, longest: 4 * time.Second},
		"no count": {tries: topology.Unbounded, perTry: time.Second, overall: time.Minute, want: 60, longest: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l := repeating(c.tries, topology.Hang)
			l.PerTry, l.Overall, l.StartsOnly = limit(c.perTry), limit(c.overall), c.startsOnly
			l.Backoff.First, l.Backoff.Jitter = limit(c.first), topology.Write(c.jitter, topology.Position{})
			if got := l.Tries(topology.Hang, topology.Safe); got.N != c.want || !got.Known {
				t.Errorf("tries %+v, want %d", got, c.want)
			}
			got, ends := l.Longest(topology.Hang, topology.Safe)
			if ends == c.never || got != c.longest {
				t.Errorf("longest %v, %v; want %v", got, ends, c.longest)
			}
		})
	}
}

func TestTheRuleWithTheMostTriesHolds(t *testing.T) {
	l := repeating(2, topology.Refused, topology.S503)
	l.Repeats = append(l.Repeats, topology.Repeat{On: []topology.Outcome{topology.S503}, Methods: topology.Safe,
		Tries: topology.Write(5, topology.Position{})})
	for _, c := range []struct {
		o    topology.Outcome
		m    topology.Methods
		want int
	}{{topology.S503, topology.Safe, 5}, {topology.S503, topology.Unsafe, 2}, {topology.Refused, topology.Safe, 2},
		{topology.S500, topology.Safe, 1}} {
		if got := l.Tries(c.o, c.m); got.N != c.want {
			t.Errorf("%v %v: %d tries, want %d", c.o, c.m, got.N, c.want)
		}
	}
}

// HAProxy waits a second before it connects to a server again, and not at all before it sends a request again.
func TestARuleHasAWaitOfItsOwn(t *testing.T) {
	l := repeating(4, topology.S503)
	l.Repeats = append(l.Repeats, topology.Repeat{On: []topology.Outcome{topology.Refused}, Wait: limit(time.Second),
		Tries: topology.Write(4, topology.Position{})})
	for o, want := range map[topology.Outcome]time.Duration{topology.S503: 0, topology.Refused: 3 * time.Second} {
		if got, ends := l.Longest(o, topology.Safe); got != want || !ends {
			t.Errorf("%v: %v, %v; want %v", o, got, ends, want)
		}
	}
	l.Overall = limit(1500 * time.Millisecond)
	if got := l.Tries(topology.Refused, topology.Safe); got.N != 2 || !got.Cut {
		t.Errorf("%+v within 1.5 s, want 2", got)
	}
}

func TestWhatCouldNotBeReadMakesTheCountUnknown(t *testing.T) {
	l := topology.Layer{Repeats: []topology.Repeat{{On: []topology.Outcome{topology.S503},
		Tries: topology.NotKnown[int]("a template", at(1, 1))}}}
	if got := l.Tries(topology.S503, topology.Safe); got.Known || got.N != 1 {
		t.Errorf("got %+v, want at least 1, not known", got)
	}
	hung := repeating(4, topology.Hang)
	hung.PerTry = topology.NotKnown[time.Duration]("a template", at(1, 1))
	if got := hung.Tries(topology.Hang, topology.Safe); got.Known || got.N != 1 {
		t.Errorf("with an unknown limit of a try: %+v, want at least 1, not known", got)
	}
}
