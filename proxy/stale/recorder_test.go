package stale_test

import (
	"fmt"
	"runtime"
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

func TestMemoryIsGivenBackAsSoonAsItIsOfNoUse(t *testing.T) {
	s := stale.New(1 << 20)
	r := s.Record(key("/"), nil, 200, lines("Content-Length: 5"))
	r.Write([]byte("hello!"))
	if s.Bytes() != 0 {
		t.Errorf("%d bytes in use for a body longer than announced", s.Bytes())
	}
	r = s.Record(key("/"), nil, 200, nil)
	r.Write(make([]byte, 1000))
	r.Write(make([]byte, 1000))
	if s.Bytes() > 3000 {
		t.Errorf("%d bytes in use for a body of 2000", s.Bytes())
	}
	huge := make([]byte, 1<<20)
	dropped := testing.AllocsPerRun(100, func() { s.Record(key("/"), nil, 200, nil).Drop() })
	written := testing.AllocsPerRun(100, func() { s.Record(key("/"), nil, 200, nil).Write(huge) })
	if written != dropped {
		t.Errorf("%v allocations for a piece that is too large, %v without", written, dropped)
	}
	announced := lines("Content-Length: 3000")
	in := func(pieces int) float64 {
		return testing.AllocsPerRun(100, func() {
			r := s.Record(key("/"), nil, 200, announced)
			for range pieces {
				r.Write(huge[:3000/pieces])
			}
			r.Drop()
		})
	}
	if in(3) != in(1) {
		t.Errorf("%v allocations for a body of known length in three pieces, %v in one", in(3), in(1))
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
	for _, limit := range []int{4 << 10, 1 << 16} {
		for _, piece := range []int{1, 100, 1000, 30_000, limit} {
			s, most := stale.New(int64(16*limit)), 0
			for n := limit / 2; n <= limit; n += limit / 128 {
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
	before := heap()
	var forgotten []*stale.Recorder // by the proxy, but some stuck connection may hold on to them
	for i := range 5000 {
		r := s.Record(key(fmt.Sprintf("/%d", i)), nil, 200, nil)
		r.Write(make([]byte, 10_000))
		if got := s.Bytes(); got > size/4+1000 {
			t.Fatalf("%d bytes in use", got)
		}
		forgotten = append(forgotten, r)
	}
	if used := heap() - before; used > 4*size {
		t.Errorf("%d bytes are really in use", used)
	}
	expect(t, s, "/kept", nil, "kept")
	// Those who go on get the memory of those who do not.
	for i := range 5000 {
		put(s, fmt.Sprintf("/%d", i), nil, nil, strings.Repeat("x", 40_000), noon)
	}
	if s.Len() < 15 {
		t.Errorf("%d kept", s.Len())
	}
	runtime.KeepAlive(forgotten)
}

// crowd starts recorders until there is no room for another.
func crowd(t *testing.T, s *stale.Store) (started []*stale.Recorder) {
	t.Helper()
	for i := range 5000 {
		r := s.Record(key(fmt.Sprintf("/crowd/%d", i)), nil, 200, nil)
		if r == nil {
			return started
		}
		started = append(started, r)
	}
	t.Fatal("there is room for any number of recorders")
	return nil
}

func TestNewRecordersTakeTheRoomOfOldOnesOnlyAfterAWhile(t *testing.T) {
	s := stale.New(1 << 20)
	crowd(t, s)
	for i := range 5000 {
		if r := s.Record(key("/"), nil, 200, nil); r != nil {
			if i < 100 {
				t.Errorf("the %d. newcomer has pushed one out", i)
			}
			return
		}
	}
	t.Error("abandoned recorders are in everybody's way for ever")
}

func TestANewRecorderNeedsRoomForAllThatItsResponseAnnounces(t *testing.T) {
	s := stale.New(1 << 20)
	for _, path := range []string{"/1", "/2"} {
		s.Record(key(path), nil, 200, nil).Write(make([]byte, 40_000))
	}
	if s.Record(key("/"), nil, 200, lines("Content-Length: 60000")) != nil {
		t.Error("there is room for less than 60000 bytes before others that grow run short")
	}
	if s.Record(key("/"), nil, 200, lines("Content-Length: 40000")) == nil {
		t.Error("there is room for 40000 bytes")
	}
}

func TestOneThatGrowsPushesNoneOutThatIsYounger(t *testing.T) {
	s := stale.New(1 << 20)
	var old []*stale.Recorder
	for i := range 10 {
		old = append(old, s.Record(key(fmt.Sprintf("/%d", i)), nil, 200, nil))
	}
	young := crowd(t, s)
	for _, r := range old {
		r.Write(make([]byte, 20_000))
	}
	for _, r := range append(young, old...) {
		r.Commit(noon)
	}
	if n := s.Len() - len(young); n < 5 || n > 7 {
		t.Errorf("%d of %d that started later were kept, and at most %d of those that grew", s.Len()-n, len(young), n)
	}
}

func TestManySlowClientsDoNotStarveEachOther(t *testing.T) {
	s := stale.New(1 << 20) // 256 KiB under way
	var working []*stale.Recorder
	for i := range 500 {
		working = append(working, s.Record(key(fmt.Sprintf("/%d", i)), nil, 200, nil))
		for _, r := range working {
			r.Write(make([]byte, 1000))
		}
		if len(working) == 50 {
			working[0].Commit(noon)
			working = working[1:]
		}
	}
	if s.Len() < 10 {
		t.Errorf("%d of 450 were kept", s.Len())
	}
}

func TestAForgottenRecorderThatWakesUpDoesNothing(t *testing.T) {
	s := stale.New(1 << 20)
	var sleepers []*stale.Recorder
	for i := range 6 {
		sleepers = append(sleepers, s.Record(key(fmt.Sprintf("/sleeper/%d", i)), nil, 200, nil))
	}
	for _, r := range sleepers {
		r.Write(make([]byte, 40_000))
	}
	for range 2000 {
		put(s, "/", nil, nil, "x", noon)
	}
	expect(t, s, "/", nil, "x") // half of the sleepers had to go for it
	sleepers[0].Write([]byte("x"))
	sleepers[1].Drop()
	for _, r := range sleepers {
		r.Commit(noon)
	}
	for i := range sleepers {
		_, ok := s.Get(key(fmt.Sprintf("/sleeper/%d", i)), nil, noon, forever)
		if want := i >= 3; ok != want {
			t.Errorf("sleeper %d kept: %v, want %v", i, ok, want)
		}
	}
}
