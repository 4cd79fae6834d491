package envoywords_test

import (
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func TestEveryKnownWordIsRead(t *testing.T) {
	for _, word := range envoywords.Known() {
		p := envoywords.Policy{Words: []source.Part{{Text: word}}, Codes: []source.Part{{Text: "503"}},
			Tries: topology.Write(2, topology.Position{})}
		repeats, remarks := p.Repeats()
		if len(repeats) == 0 {
			t.Errorf("%s repeats nothing", word)
		}
		for _, r := range remarks {
			if r.Rule != "F601" || word == "retriable-status-codes" {
				t.Errorf("%s: %+v", word, r)
			}
		}
	}
}

func TestStatusesAreTheNearestOutcomes(t *testing.T) {
	for code, want := range map[int]topology.Outcome{500: topology.S500, 501: topology.S500, 502: topology.S502,
		503: topology.S503, 504: topology.S504, 429: topology.S429, 408: topology.S408, 409: topology.S409,
		404: topology.S4xx} {
		if got, failure := envoywords.Status(code); got != want || !failure {
			t.Errorf("%d is %v, %v; want %v", code, got, failure, want)
		}
	}
	for _, code := range []int{-1, 0, 200, 302, 600} {
		if _, failure := envoywords.Status(code); failure {
			t.Errorf("%d is a failure", code)
		}
	}
}

// Waits of 12, 181, 37 and 735 ms were measured at a base of 100 ms.
func TestWaitsDoubleUpToTenTimesTheFirst(t *testing.T) {
	first := topology.Write(100*time.Millisecond, topology.Position{})
	b := envoywords.Backoff(first, topology.Value[time.Duration]{}, "Envoy", topology.Position{})
	var got []time.Duration
	for n := 1; n <= 5; n++ {
		least, most := b.Wait(n)
		if got = append(got, most/time.Millisecond); least != 0 {
			t.Errorf("wait %d is at least %v, want nothing", n, least)
		}
	}
	if want := []time.Duration{100, 200, 400, 800, 1000}; !slices.Equal(got, want) {
		t.Errorf("at most %v ms, want %v", got, want)
	}
}

func TestOneMoreThanTheRetries(t *testing.T) {
	at := topology.Position{File: "f", Line: 1}
	for _, c := range []struct{ retries, want topology.Value[int] }{
		{topology.Write(2, at), topology.Write(3, at)},
		{topology.Write(topology.Unbounded, at), topology.Write(topology.Unbounded, at)},
		{topology.NotKnown[int]("x", at), topology.NotKnown[int]("x", at)},
		{topology.Value[int]{}, topology.Value[int]{}},
	} {
		if got := envoywords.PlusOne(c.retries); got != c.want {
			t.Errorf("%s becomes %s", c.retries, got)
		}
	}
}

func FuzzPoliciesAreReadWithoutAPanic(f *testing.F) {
	f.Add("5xx,bogus", "503,many")
	f.Fuzz(func(t *testing.T, words, codes string) {
		p := envoywords.Policy{Hedged: true, Tries: topology.Write(2, topology.Position{})}
		p.Words, p.Codes = append(p.Words, source.Part{Text: words}), append(p.Codes, source.Part{Text: codes})
		repeats, _ := p.Repeats()
		for _, r := range repeats {
			if len(r.On) == 0 {
				t.Errorf("a rule about no outcome: %+v", r)
			}
		}
	})
}
