package abateredis_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/policy/idempotency"
)

// value makes what a Redis may answer out of bytes: numbers, texts, nothing, lists of them.
func value(b []byte, depth int) (v any, rest []byte) {
	if len(b) == 0 {
		return nil, nil
	}
	kind, b := b[0], b[1:]
	size := min(int(kind>>3), len(b))
	switch kind & 7 {
	case 0:
		return nil, b
	case 1, 2:
		n := int64(0)
		for _, c := range b[:min(size, 8)] {
			n = n<<8 | int64(c)
		}
		return n, b[min(size, 8):]
	case 3, 4:
		return string(b[:size]), b[size:]
	case 5:
		return []string{"run", "running", "replay", "mismatch"}[kind>>3&3], b
	}
	list := make([]any, 0, size)
	for range min(size, 5) {
		if depth == 0 {
			break
		}
		v, b = value(b, depth-1)
		list = append(list, v)
	}
	return list, b
}

func FuzzReplies(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3<<3 | 7, 5, 4<<3 | 3, '1', '7', '9', '5', 1<<3 | 3, '0'})
	f.Add([]byte{2<<3 | 7, 1<<3 | 5, 2<<3 | 1, 1, 0})
	f.Add([]byte{2<<3 | 7, 2<<3 | 5, 2<<3 | 3, 2, 200})
	f.Add([]byte{1<<3 | 7, 3<<3 | 5})
	f.Add([]byte{2<<3 | 7, 1<<3 | 1, 5, 1<<3 | 1, 7})
	f.Add([]byte{1<<3 | 1, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _ := value(b, 3)
		tokens, left, err := abateredis.ParseTaken(v, 3, 10, 100)
		if err == nil && (tokens != 0 && tokens < 3 || tokens < 0 || tokens > 10 || left < 0 || left > 100) {
			t.Errorf("%v: %d, %d", v, tokens, left)
		}
		if n, err := abateredis.ParseCount(v, 1, 5); err == nil && (n < 1 || n > 5) {
			t.Errorf("%v: %d", v, n)
		}
		begun, err := abateredis.ParseBegun(v)
		if err == nil && (begun.Lease < 0 || begun.State == idempotency.Running && begun.Lease == 0) {
			t.Errorf("%v: %+v", v, begun)
		}
	})
}

func TestReplies(t *testing.T) {
	many := strings.Repeat("9", 30)
	for _, v := range []any{
		nil, "", int64(1), []any{}, []any{nil}, []any{"run"}, []any{"run", int64(1), "0"}, []any{"run", "1"},
		[]any{"run", "-1", "0"}, []any{"run", many, "0"},
		[]any{"run", "1", "2"}, []any{"running"}, []any{"running", "1"}, []any{"running", int64(0)}, []any{
			"running", int64(math.MaxInt64),
		},
		[]any{"replay"}, []any{"replay", nil}, []any{"replay", ""}, []any{"replay", "rubbish"}, []any{"mismatch", "x"},
		[]any{"else"},
	} {
		if b, err := abateredis.ParseBegun(v); err == nil {
			t.Errorf("%v is %+v", v, b)
		}
	}
	for _, v := range []any{nil, []any{}, []any{int64(1)}, []any{int64(1), "1"}, []any{int64(-1), int64(0)},
		[]any{int64(11), int64(0)},
		[]any{int64(2), int64(0)}, []any{int64(5), int64(-1)}, []any{int64(5), int64(101)}, []any{1.5, int64(0)},
		[]any{int64(5), int64(0), int64(0)}} {
		if tokens, left, err := abateredis.ParseTaken(v, 3, 10, 100); err == nil {
			t.Errorf("%v is %d, %d", v, tokens, left)
		}
	}
}

func FuzzFindings(f *testing.F) {
	for _, m := range []string{"", "a 1 b", "a 1000 payment service", "a -1 b", " 1 b", "a 4294967296 b",
		"a 1 " + strings.Repeat("x", abateredis.MaxName+1)} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, message string) {
		instance, guard, wait, ok := abateredis.ParseFinding(message)
		if !ok {
			return
		}
		if instance == "" || guard == "" || wait < 0 || wait > 50*24*time.Hour {
			t.Errorf("%q: %q %q %v", message, instance, guard, wait)
		}
		i, g, w, ok := abateredis.ParseFinding(abateredis.Message(instance, guard, wait))
		if !ok || i != instance || g != guard || w != wait {
			t.Errorf("%q: %q %q %v, again %q %q %v", message, instance, guard, wait, i, g, w)
		}
	})
}

func TestNamesInRedisHaveOneLengthAndOneTag(t *testing.T) {
	length := 0
	seen := map[string]bool{}
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"a", "b"}, {"ab"}, {"ab", ""}, {"a{b}"}, {"\r\n"}, {strings.Repeat("x", 10<<20)},
	} {
		key := abateredis.KeyOf("abate:", parts...)
		if length == 0 {
			length = len(key)
		}
		if len(key) != length || strings.Count(key, "{") != 1 || strings.Count(key, "}") != 1 || seen[key] {
			t.Errorf("%.20q: %q", parts, key)
		}
		seen[key] = true
	}
}

func TestTheTableIsBounded(t *testing.T) {
	places, buckets, found := abateredis.FillTable(1<<30, 200_000)
	if !found || places > abateredis.MaxSlots || buckets > places || buckets < places*9/10 {
		t.Errorf("%d buckets in %d places, found: %v", buckets, places, found)
	}
}
