package stale_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/stale"
)

func TestOnlyCompleteGoodResponsesAreKept(t *testing.T) {
	s := stale.New(1 << 20)
	for _, status := range []int{
		0, 100, 101, 199, 201, 203, 204, 206, 226, 300, 301, 304, 404, 410, 451, 500, 503, 600, -200,
	} {
		if s.Keeps(status, nil, 0) || s.Record(key("/"), nil, status, nil) != nil {
			t.Errorf("status %d is kept", status)
		}
	}
	for _, c := range []struct {
		length int64
		want   bool
	}{{0, true}, {-1, true}, {1000, true}, {1 << 16, true}, {1<<16 + 1, false}, {1 << 40, false}} {
		if got := s.Keeps(200, nil, c.length); got != c.want {
			t.Errorf("length %d: %v, want %v", c.length, got, c.want)
		}
	}
	if stale.New(1<<30).Keeps(200, nil, 1<<20+1) {
		t.Error("a large store keeps more than 1 MiB")
	}
}

func TestWhatResponsesForbid(t *testing.T) {
	many := "Vary: " + strings.Repeat("a,", 16)
	for _, c := range []struct {
		field string
		want  bool
	}{
		{"Content-Type: text/html", true},
		{"Set-Cookie: a=b", false},
		{"SET-COOKIE: a=b", false},
		{"Content-Range: bytes 0-1/2", false},
		{"WWW-Authenticate: Basic", false},
		{"Proxy-Authenticate: Basic", false},
		{"Authentication-Info: nextnonce=x", false},
		{"Proxy-Authentication-Info: nextnonce=x", false},
		{"Content-Type: text/event-stream", false},
		{"Content-Type: Text/Event-Stream;charset=utf-8", false},
		{"Content-Type: text/event", true},
		{"Content-Type: application/json; charset=utf-8", true},

		{"Vary: *", false},
		{"Vary: Accept, *", false},
		{"Vary: Accept Encoding", false},
		{"Vary: \"Accept\"", false},
		{"Vary:", true},
		{"Vary: , ,", true},
		{"Vary: Accept", true},
		{many, true},
		{many + "b", false},

		{"Content-Length: 10", true},
		{"Connection: close", true},
		{"Connection: " + strings.Repeat("a,", 129), false},

		{"Expires: 0", true},
		{"Pragma: no-cache", true},
		{"Age: 1000000", true},
		{"Age: junk", true},
		{"X-Authenticate-1: x", true}, // as long as WWW-Authenticate
	} {
		if got := stale.New(1<<20).Keeps(200, lines("Server: x", c.field, "Date: x"), 10); got != c.want {
			t.Errorf("%s: %v, want %v", c.field, got, c.want)
		}
	}
}

func TestContentLengthsThatDifferAreNotKept(t *testing.T) {
	s := stale.New(1 << 20)
	if s.Keeps(200, lines("Content-Length: 1", "Content-Length: 2"), 1) {
		t.Error("1 and 2")
	}
	if !s.Keeps(200, lines("Content-Length: 2", "Content-Length: 2"), 2) {
		t.Error("2 and 2")
	}
}

// How long a response may be used after it was received is measured by asking later and later.
func TestTheResponseLimitsItsOwnUse(t *testing.T) {
	const policy, never = 10_000, 0 // in seconds
	for _, c := range []struct {
		fields string // separated by |
		until  int
	}{
		{"Server: x", policy},
		{"Cache-Control:", policy},
		{"Cache-Control: public, max-age=5", policy},
		{"Cache-Control: immutable", policy},
		{"Expires: 0", policy},

		{"Cache-Control: no-store", never},
		{"Cache-Control: no-cache", never},
		{"Cache-Control: no-cache=\"set-cookie\"", never},
		{"Cache-Control: private", never},
		{"Cache-Control: PRIVATE=\"x-user, y\", max-age=60", never},
		{"Cache-Control: max-age=60 ,, , No-Store", never},
		{"Cache-Control: max-age=60|Cache-Control: no-store", never},
		{"Cache-Control: x=\"a, no-store\", max-age=60", policy},
		{"Cache-Control: x=\"\\\", no-store\"", policy},
		{"Cache-Control: no-storeX, xno-store", policy},

		{"Cache-Control: must-revalidate", never},
		{"Cache-Control: proxy-revalidate", never},
		{"Cache-Control: must-revalidate, max-age=0", never},
		{"Cache-Control: must-revalidate, max-age=60", 60},
		{"Cache-Control: max-age=60|Cache-Control: Must-Revalidate", 60},
		{"Cache-Control: proxy-revalidate, max-age=60|Age: 20", 40},
		{"Cache-Control: must-revalidate, max-age=60|Age: 60", never},
		{"Cache-Control: must-revalidate, max-age=60, stale-if-error=30", 60},
		{"Cache-Control: s-maxage=60", 60},
		{"Cache-Control: s-maxage=60, max-age=10", 60},
		{"Cache-Control: s-maxage=60, stale-if-error=30", 90},
		{"Cache-Control: s-maxage=60, max-age=10, proxy-revalidate, stale-if-error=30", 60},

		{"Cache-Control: stale-if-error=30", 30},
		{"Cache-Control: Stale-If-Error=30", 30},
		{"Cache-Control: stale-if-error=\"30\"", 30},
		{"Cache-Control: stale-if-error = 30", 30},
		{"Cache-Control: max-age=60, stale-if-error=30", 90},
		{"Cache-Control: max-age=60, stale-if-error=30|Age: 40", 50},
		{"Cache-Control: max-age=60, stale-if-error=30|Age: 40|Age: 50", 40},
		{"Cache-Control: stale-if-error=30|Age: 30", never},
		{"Cache-Control: stale-if-error=30, stale-if-error=20, stale-if-error=40", 20},
		{"Cache-Control: stale-if-error=0", never},
		{"Cache-Control: stale-if-error=0, max-age=60", 60},
		{"Cache-Control: stale-if-error", never},
		{"Cache-Control: stale-if-error=", never},
		{"Cache-Control: stale-if-error=-1", never},
		{"Cache-Control: stale-if-error=1.5", never},
		{"Cache-Control: stale-if-error=junk, max-age=60", 60},
		{"Cache-Control: stale-if-error=99999999999999999999999", policy},
		{"Cache-Control: stale-if-error=99999999999999999999999, max-age=99999999999999999999999", policy},
		{"Cache-Control: stale-if-error=20000", policy},
		{"Cache-Control: max-age=60; no-store", never},
		{"Cache-Control: x=\"unfinished, max-age=60", never},
		{"Cache-Control: x=\"unfinished\\\"", never},
		{"Cache-Control: x=\"unfinished\\", never},
		{"Cache-Control: =5", never},
		{"Cache-Control: max-age=60 public", never},
		{"Cache-Control: no cache", never},
		{"Cache-Control: \x00", never},
	} {
		s := stale.New(1 << 20)
		put(s, "/", nil, lines(strings.Split(c.fields, "|")...), "x", noon)
		until := 0
		for ; until < 20_000; until++ {
			if _, ok := s.Get(key("/"), nil, noon+time.Duration(until+1)*time.Second-1, policy*time.Second-1); !ok {
				break
			}
		}
		if until != c.until {
			t.Errorf("%s: usable for %d s, want %d s", c.fields, until, c.until)
		}
		if got, want := s.Keeps(200, lines(strings.Split(c.fields, "|")...), 1), c.until != never; got != want {
			t.Errorf("%s: kept %v, want %v", c.fields, got, want)
		}
	}
}

func TestAgeGrowsFromTheAgeItCameWith(t *testing.T) {
	for _, c := range []struct {
		field string
		after time.Duration
		want  time.Duration
	}{
		{"Server: x", 0, 0},
		{"Server: x", 90 * time.Second, 90 * time.Second},
		{"Age: 30", 90 * time.Second, 120 * time.Second},
		{"Age: junk", 90 * time.Second, 90 * time.Second},
		{"Age: -5", 90 * time.Second, 90 * time.Second},
		{"Age: 99999999999999999999", time.Second, (1<<31 + 1) * time.Second},
		{"Server: x", -time.Second, 0}, // another request's clock was read a little earlier
	} {
		s := stale.New(1 << 20)
		put(s, "/", nil, lines(c.field), "x", noon)
		e, ok := s.Get(key("/"), nil, noon+c.after, forever)
		if !ok || e.Age != c.want {
			t.Errorf("%s after %v: %v, %+v; want age %v", c.field, c.after, ok, e, c.want)
		}
	}
}

func TestMaxAgeIsCountedFromWhenTheResponseWasReceived(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", nil, lines("Age: 3600"), "x", noon)
	for _, c := range []struct {
		after, maxAge time.Duration
		want          bool
	}{
		{0, 0, true}, {0, -1, false}, {1, 0, false}, {time.Minute, time.Minute, true}, {time.Minute + 1, time.Minute, false},
	} {
		if _, ok := s.Get(key("/"), nil, noon+c.after, c.maxAge); ok != c.want {
			t.Errorf("%v later with at most %v: %v", c.after, c.maxAge, ok)
		}
	}
}

func TestFieldsOfOneConnectionOrMessageAreLeftOut(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", nil, lines("Date: now", "CONNECTION: close, X-Hop", "connection: , x-other,", "Keep-Alive: timeout=5",
		"X-HOP: 1",
		"x-other: 2", "X-Ho: stays", "Proxy-Connection: close", "TE: trailers", "Trailer: X-Sum",
		"Transfer-Encoding: chunked", "Upgrade: h2c",
		"Age: 7", "Content-Length: 1", "ETag: \"1\"", "Link: a", "Link: b"), "x", noon)
	e, ok := s.Get(key("/"), nil, noon, forever)
	if !ok {
		t.Fatal("not kept")
	}
	if got, want := text(e.Fields), "Date: now\nX-Ho: stays\nETag: \"1\"\nLink: a\nLink: b\n"; got != want {
		t.Errorf("fields\n%s\nwant\n%s", got, want)
	}
	if e.Status != 200 || string(e.Body) != "x" || e.Age != 7*time.Second {
		t.Errorf("%+v", e)
	}
}

// reference reads a Cache-Control value another way: with quoted strings cut out first, and then by splitting. ok is
// false if it is not clean enough for that.
func reference(value string) (names map[string]string, ok bool) {
	var plain strings.Builder
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c != '"' {
			plain.WriteByte(c)
			continue
		}
		if plain.Len() == 0 || plain.String()[plain.Len()-1] != '=' {
			return nil, false
		}
		end := strings.IndexAny(value[i+1:], "\"\\")
		if end < 0 || value[i+1+end] == '\\' {
			return nil, false
		}
		for _, c := range value[i+1 : i+1+end] {
			if c == ',' || c == '=' || c == ' ' || c == '\t' || c >= 0x80 {
				c = '.'
			}
			plain.WriteRune(c)
		}
		i += 1 + end
		if rest := strings.Trim(value[i+1:], " \t"); rest != "" && rest[0] != ',' {
			return nil, false
		}
	}
	names = map[string]string{}
	for _, element := range strings.Split(plain.String(), ",") {
		element = strings.Trim(element, " \t")
		if element == "" {
			continue
		}
		name, argument, _ := strings.Cut(element, "=")
		name, argument = strings.ToLower(strings.TrimRight(name, " \t")), strings.TrimLeft(argument, " \t")
		if _, again := names[name]; again || name == "" || strings.ContainsAny(name+argument, " \t=\"") {
			return nil, false
		}
		for _, c := range []byte(name + argument) {
			if c <= ' ' || c >= 0x7f || strings.IndexByte("()/:;<=>?@[\\]{}", c) >= 0 {
				return nil, false
			}
		}
		names[name] = argument
	}
	return names, true
}

func FuzzDirectives(f *testing.F) {
	for _, seed := range []string{
		"", "no-store", "max-age=60, stale-if-error=30", "STALE-IF-ERROR=\"5\"", "private=\"a, b\"", "x=\"\\\"no-store\"",
		"a=,b = c ,,",
		"must-revalidate, max-age=1", "s-maxage=99999999999999999999", "x=\"no-store", "; no-store",
		"no-cache\t,\tno-transform",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s := stale.New(1 << 20)
		kept := s.Keeps(200, lines("Cache-Control:"+value), 0)
		answer, fill := stale.Asks([]byte("GET"), lines("Cache-Control:"+value))
		if answer && !fill {
			t.Fatal("answers what it would not keep")
		}
		put(s, "/", nil, lines("Cache-Control:"+value), "", 0)
		if got := s.Len() == 1; got != kept {
			t.Fatalf("Keeps says %v, Record %v", kept, got)
		}
		names, ok := reference(strings.Trim(value, " \t"))
		if !ok {
			return
		}
		has := func(name string) bool { _, ok := names[name]; return ok }
		if want := !has("no-store"); fill != want {
			t.Errorf("fill %v, want %v: %q", fill, want, names)
		}
		if want := !has("no-store") && !has("no-cache"); answer != want {
			t.Errorf("answer %v, want %v: %q", answer, want, names)
		}
		for _, forbids := range []string{"no-store", "no-cache", "private"} {
			if has(forbids) && kept {
				t.Errorf("kept in spite of %s: %q", forbids, names)
			}
		}
		if n := 0; has("stale-if-error") && !has("max-age") && !has("s-maxage") && kept {
			if _, err := fmt.Sscanf(names["stale-if-error"], "%d", &n); n == 0 {
				t.Errorf("kept with stale-if-error=%q: %v", names["stale-if-error"], err)
			}
		}
		if strings.Trim(strings.Join(keys(names), ""), "publicxyz") == "" && !kept {
			t.Errorf("not kept, but nothing forbids it: %q", names)
		}
	})
}

func keys(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}
