package stale_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/stale"
)

func TestOnlyWhatIsCommittedIsKept(t *testing.T) {
	s := stale.New(1 << 20)
	r := s.Record(key("/"), nil, 200, nil)
	r.Write([]byte("half"))
	expect(t, s, "/", nil, "nothing")
	if s.Bytes() == 0 {
		t.Error("a response under way is not counted")
	}
	r.Drop()
	if s.Bytes() != 0 {
		t.Errorf("%d bytes in use after Drop", s.Bytes())
	}
	r.Write([]byte("more"))
	r.Commit(noon)
	r.Drop()
	expect(t, s, "/", nil, "nothing")
}

func TestAfterCommitARecorderDoesNothing(t *testing.T) {
	s := stale.New(1 << 20)
	r := s.Record(key("/"), nil, 200, nil)
	r.Write([]byte("all"))
	r.Commit(noon)
	before := s.Bytes()
	r.Write([]byte(" and more"))
	r.Commit(noon)
	r.Drop()
	expect(t, s, "/", nil, "all")
	if s.Len() != 1 || s.Bytes() != before {
		t.Errorf("%d bytes in %d responses, before %d", s.Bytes(), s.Len(), before)
	}
}

func TestANilRecorderDoesNothing(t *testing.T) {
	r := stale.New(1<<20).Record(key("/"), nil, 200, lines("Set-Cookie: a=b"))
	if r != nil {
		t.Fatal("a response with a cookie is recorded")
	}
	r.Write([]byte("x"))
	r.Commit(noon)
	r.Drop()
}

func TestABodyOfAnotherLengthThanAnnouncedIsNotKept(t *testing.T) {
	for _, c := range []struct{ length, body, want string }{
		{"5", "hello", "hello"}, {"5", "hell", "nothing"}, {"5", "hello!", "nothing"}, {"5", "", "nothing"},
		{"0", "", ""}, {"0", "x", "nothing"}, {"junk", "x", "nothing"}, {"-1", "x", "nothing"},
	} {
		s := stale.New(1 << 20)
		put(s, "/", nil, lines("Content-Length: "+c.length), c.body, noon)
		if got := body(s, "/", nil, noon); got != c.want {
			t.Errorf("Content-Length %s, body %q: got %q, want %q", c.length, c.body, got, c.want)
		}
		if c.want == "nothing" && s.Bytes() != 0 {
			t.Errorf("Content-Length %s, body %q: %d bytes in use", c.length, c.body, s.Bytes())
		}
	}
}

func TestABodyThatGrowsTooLargeIsGivenUp(t *testing.T) {
	s := stale.New(1 << 20) // 64 KiB for each
	r := s.Record(key("/"), nil, 200, nil)
	for i := range 100 {
		r.Write(make([]byte, 1<<10))
		if got := s.Bytes(); got > 1<<16 {
			t.Fatalf("%d bytes in use after %d KiB", got, i+1)
		}
	}
	if s.Bytes() != 0 {
		t.Errorf("%d bytes in use", s.Bytes())
	}
	r.Commit(noon)
	expect(t, s, "/", nil, "nothing")
}

func TestNearlyTheLimitCanBeUsed(t *testing.T) {
	const limit = 1 << 16
	for _, piece := range []int{1, 100, 1000, 30_000, limit} {
		s, most := stale.New(16*limit), 0
		for n := limit * 3 / 4; n <= limit; n += 512 {
			r := s.Record(key("/"), nil, 200, nil)
			for at := 0; at < n; at += piece {
				r.Write(make([]byte, min(piece, n-at)))
			}
			r.Commit(noon)
			if e, ok := s.Get(key("/"), nil, noon, forever); ok && len(e.Body) == n {
				most = n
			}
		}
		if most < limit*7/8-1024 || most >= limit {
			t.Errorf("in pieces of %d bytes %d of %d can be used", piece, most, limit)
		}
	}
}

func TestHeadsThatAreTooLargeAreNotRecorded(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	s := stale.New(1 << 20)
	if s.Record(key("/"), nil, 200, lines("X: "+long)) != nil {
		t.Error("a long field")
	}
	if s.Record(key("/"+long), nil, 200, nil) != nil {
		t.Error("a long key")
	}
	if s.Record(key("/"), lines("X: "+long), 200, lines("Vary: X")) != nil {
		t.Error("a long request field that Vary names")
	}
	if s.Record(key("/"), nil, 200, lines("Content-Length: 65000", "X: "+long[:1000])) != nil {
		t.Error("a body that leaves no room for its fields")
	}
	if s.Record(key("/"), lines("X: "+long), 200, nil) == nil {
		t.Error("a long request field that nothing names is in the way")
	}
}

func TestForgottenRecordersAreBoundedAndInNobodysWay(t *testing.T) {
	const size = 1 << 20
	s := stale.New(size)
	put(s, "/kept", nil, nil, "kept", noon)
	for i := range 5000 {
		r := s.Record(key(fmt.Sprintf("/%d", i)), nil, 200, nil)
		r.Write(make([]byte, 10_000))
		if got := s.Bytes(); got > size/4+1000 {
			t.Fatalf("%d bytes in use", got)
		}
	}
	expect(t, s, "/kept", nil, "kept")
	// Those who go on get the memory of those who do not.
	for i := range 5000 {
		put(s, fmt.Sprintf("/%d", i), nil, nil, strings.Repeat("x", 40_000), noon)
	}
	if s.Len() < 15 {
		t.Errorf("%d kept", s.Len())
	}
}

func TestRecordersPushNoneOutThatIsAtWork(t *testing.T) {
	s := stale.New(1 << 20) // 256 KiB under way
	piece := make([]byte, 1000)
	recorders := make([]*stale.Recorder, 100)
	for i := range recorders {
		recorders[i] = s.Record(key(fmt.Sprintf("/%d", i)), nil, 200, nil)
	}
	for range 50 {
		for _, r := range recorders {
			r.Write(piece)
		}
	}
	for _, r := range recorders {
		r.Commit(noon)
	}
	if s.Len() < 3 {
		t.Errorf("%d of 100 were kept, but 4 fit at the same time", s.Len())
	}
}

func TestAForgottenRecorderThatWakesUpDoesNothing(t *testing.T) {
	s := stale.New(1 << 20)
	var sleepers []*stale.Recorder
	for i := range 6 {
		r := s.Record(key(fmt.Sprintf("/sleeper/%d", i)), nil, 200, nil)
		r.Write(make([]byte, 40_000))
		sleepers = append(sleepers, r)
	}
	for range 2000 {
		put(s, "/", nil, nil, "x", noon)
	}
	put(s, "/large", nil, lines("Content-Length: 40000"), strings.Repeat("x", 40_000), noon)
	before := s.Bytes()
	if before > 6*42_000 {
		t.Errorf("%d bytes in use: no sleeper was pushed out", before)
	}
	sleepers[0].Write([]byte("x"))
	sleepers[0].Commit(noon)
	expect(t, s, "/sleeper/0", nil, "nothing")
	sleepers[1].Write([]byte("x"))
	sleepers[1].Commit(noon)
	if _, ok := s.Get(key("/sleeper/1"), nil, noon, forever); !ok {
		t.Error("more was pushed out than was needed")
	}
}
