package letter_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

func TestCutKeepsUTF8AndTheLimit(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcdef", 5, "ab…"}, {"ääää", 7, "ää…"}, {"ääää", 6, "ä…"}, {"abc", 0, ""}, {"abc", 2, ""},
		{"", 5, ""},
		{"a\xffb", 5, "a�b"}, {"\xff\xff\xff", 5, "�"}, {"abc", -1, ""},
	} {
		if got := letter.Cut(c.s, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("äöü€𝄞\xff\x80", 7)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit %= 64
		got := letter.Cut(s, limit)
		if !utf8.ValidString(got) || len(got) > max(limit, 0) {
			t.Errorf("Cut(%q, %d) = %q", s, limit, got)
		}
		if again := letter.Cut(got, limit); again != got {
			t.Errorf("cut again: %q, then %q", got, again)
		}
		if utf8.ValidString(s) && len(s) <= limit && got != s {
			t.Errorf("Cut(%q, %d) = %q although it fits", s, limit, got)
		}
	})
}

func TestWhatIsWrittenIsBounded(t *testing.T) {
	l := sample()
	huge := strings.Repeat("ä", 1<<20)
	l.Class, l.Message, l.Trace, l.Reason = huge, huge, huge, huge
	l.History = nil
	for i := range 1000 {
		l.History = append(l.History, letter.Past{Topic: "payments", At: ms(1760000000000 + int64(i)), Class: "class"})
	}
	total := 0
	for _, h := range l.AppendHeaders(nil, letter.Abate) {
		total += len(h.Key) + len(h.Value)
	}
	if limit := letter.MaxTrace + letter.MaxMessage + 3*letter.MaxClass + letter.MaxHistory + 2048; total > limit {
		t.Errorf("%d bytes of headers, want at most %d", total, limit)
	}
	got, problems := letter.Read(record(&l, letter.Abate))
	if problems != nil {
		t.Error(problems)
	}
	if n := len(got.History); n < 30 || got.History[n-1] != l.History[999] || got.History[0] != l.History[1000-n] {
		t.Errorf("%d entries of history, the newest %v: want as many of the newest as fit", n, got.History[n-1])
	}
}

func TestHistoryWithOddNamesIsRead(t *testing.T) {
	l := sample()
	l.History = []letter.Past{{Topic: "", At: ms(1), Class: ""}, {Topic: "t", At: ms(2), Class: "two\nlines"}}
	got, problems := letter.Read(record(&l, letter.Abate))
	if problems != nil || len(got.History) != 2 || got.History[0] != (letter.Past{At: ms(1)}) ||
		got.History[1].Class != "two lines" {
		t.Errorf("%v, %v", got.History, problems)
	}
}

func TestTimesAreWrittenToTheMillisecondInUTC(t *testing.T) {
	l := sample()
	l.First = time.Date(2026, 1, 31, 16, 4, 5, 123_999_999, time.FixedZone("", 3600))
	if got := string(valueOf(l.AppendHeaders(nil, letter.Abate), "abate-first-failure")); got !=
		"2026-01-31T15:04:05.123Z" {
		t.Error(got)
	}
}
