package page_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/dlq/page"
)

// closed is a page of a desk that is not open: for requests that must not come as far as that.
func closed(t *testing.T, c page.Config) *page.Page {
	t.Helper()
	c.Desk = new(dlq.Desk)
	p, err := page.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// change is a request that would change something.
func change(path, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/api/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Abate-Dlq", "1")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func answer(p *page.Page, r *http.Request) (status int, text string) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestNewRefusesWhatNobodyCouldMean(t *testing.T) {
	if _, err := page.New(page.Config{}); err == nil || !strings.Contains(err.Error(), "Desk is nil") {
		t.Errorf("without a desk: %v", err)
	}
	if _, err := page.New(page.Config{Desk: new(dlq.Desk), Hosts: []string{"*"}}); err == nil ||
		!strings.Contains(err.Error(), "ask for a token") {
		t.Errorf("for everybody by every name: %v", err)
	}
}

// TestAStrangersNameIsRefused: a name that somebody points at this address makes a browser send the page's requests for
// them.
func TestAStrangersNameIsRefused(t *testing.T) {
	p := closed(t, page.Config{Hosts: []string{"dlq.example.com"}})
	for host, want := range map[string]int{
		"127.0.0.1:8080": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:8080": 200, "127.9.9.9": 200,
		"dlq.example.com:8443": 200, "DLQ.example.com": 200,
		"evil.example.com": 421, "evil.example.com:8080": 421, "127.0.0.1.evil.example.com": 421, "10.0.0.1": 421, "": 421,
		"localhost.evil.example.com": 421, "dlq.example.com.evil": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		r.Host = host
		if status, _ := answer(p, r); status != want {
			t.Errorf("host %q: %d, want %d", host, status, want)
		}
	}
}

func TestOnlyThisPageMayChangeAnything(t *testing.T) {
	p := closed(t, page.Config{})
	for name, c := range map[string]struct {
		spoil func(*http.Request)
		want  int
	}{
		"without our header": {func(r *http.Request) { r.Header.Del("X-Abate-Dlq") }, 403},
		"a form":             {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		"no type":            {func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"another site":       {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"a sibling":          {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"another origin, old browser": {func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://evil.example.com")
		}, 403},
		"another port of this machine": {func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://127.0.0.1:9999")
		}, 403},
		"this page":  {func(*http.Request) {}, 400}, // the body says nothing
		"no browser": {func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, 400},
	} {
		for _, path := range []string{"delete", "restore", "replay", "replay/plan", "note"} {
			r := change(path, `{}`)
			c.spoil(r)
			if status, text := answer(p, r); status != c.want {
				t.Errorf("%s, %s: %d %s, want %d", path, name, status, text, c.want)
			}
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/api/export", nil)
		r.Header.Set("Sec-Fetch-Site", site)
		if status, _ := answer(p, r); status != 403 {
			t.Errorf("%s: an export for it: %d", site, status)
		}
		r.URL.Path = "/"
		if status, _ := answer(p, r); status != 200 { // a link in a mail
			t.Errorf("%s: the page for it: %d", site, status)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		r := change("delete", `{"filter":{}}`)
		r.Method = method
		if status, _ := answer(p, r); status < 400 {
			t.Errorf("%s deletes", method)
		}
	}
}

func TestAMisspeltFilterChoosesNothing(t *testing.T) {
	p := closed(t, page.Config{})
	for _, body := range []string{
		``, `null`, `{`, `{}`, `{"filter":{"grup":"a"}}`, `{"filters":{}}`, `{"filter":{}} {}`,
		`{"filter":{"partition":"3"}}`, `{"filter":{"state":"gone"}}`,
		`{"filter":{"partition":-2}}`, `{"filter":{"fromOffset":-1}}`, `{"filter":{"where":"class =="}}`, `{"filter":[]}`,
		`{"filter":{"where":"` + strings.Repeat("x", 70000) + `"}}`,
	} {
		for _, path := range []string{"delete", "restore", "replay", "replay/plan"} {
			if status, text := answer(p, change(path, body)); status != 400 && status != 413 ||
				!strings.Contains(text, "error") {
				t.Errorf("%s %.60s: %d %s", path, body, status, text)
			}
		}
	}
	for _, query := range []string{"grup=a", "state=gone", "partition=x", "partition=99999999999", "from=yesterday",
		"limit=0", "limit=501", "after=x", "where=class+%3D%3D", "toOffset=-1"} {
		if status,
			text := answer(p, httptest.NewRequest(http.MethodGet, "http://localhost/api/letters?"+query, nil)); status != 400 {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	for _, settings := range []string{`"rate":-1`, `"rate":1e7`, `"maxFailures":1.5`, `"maxFailures":-1.5`,
		`"settleSeconds":-1`, `"settleSeconds":1e6`, `"maxReplays":-1`} {
		if status, text := answer(p, change("replay", `{"filter":{},`+settings+`}`)); status != 400 {
			t.Errorf("%s: %d %s", settings, status, text)
		}
	}
}

func TestOnlyThoseWhoAreKnownSeeAnything(t *testing.T) {
	p := closed(t, page.Config{Hosts: []string{"*"}, Authenticate: func(r *http.Request) (string, bool) {
		return "ann", r.Header.Get("Authorization") == "Bearer good"
	}})
	for _, path := range []string{"api/desk", "api/groups", "api/letters", "api/letters/0/1", "api/letters/0/1/value",
		"api/export", "api/replay", "api/actions", "api/nothing"} {
		r := httptest.NewRequest(http.MethodGet, "http://dlq.example.com/"+path, nil)
		r.Header.Set("Authorization", "Bearer bad")
		if status, text := answer(p, r); status != 401 || !strings.Contains(text, "token") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	r := change("delete", `{"filter":{}}`)
	if status, _ := answer(p, r); status != 401 {
		t.Errorf("delete: %d", status)
	}
	// the page that asks for the token
	if status, _ := answer(p, httptest.NewRequest(http.MethodGet, "http://dlq.example.com/", nil)); status != 200 {
		t.Errorf("the empty page: %d", status)
	}
}

func TestHiddenValuesStayHidden(t *testing.T) {
	p := closed(t, page.Config{HideValues: true})
	for _, path := range []string{"api/letters/0/1/value", "api/export", `api/groups?where=value+contains+"4711"`,
		`api/letters?where=json("card")+>+1`, `api/letters?where=!(header("a")=="b")`, `api/letters?where=key~"a"`} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut("/"+path, "?")
		if status, text := answer(p, r); status != 403 || !strings.Contains(text, "hidden") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := answer(p, change("replay", `{"filter":{},"to":"mine"}`)); status != 403 {
		t.Errorf("to a topic of one's own: %d %s", status, text)
	}
	for expression, hidden := range map[string]bool{
		`class == "value"`: false, `class == "a\"" && value == "x"`: true, `class == "key\\" || key == "b"`: true,
		`message contains 'header'`:    false,
		`class == '\' || value == 'x'`: true, `class == 'a' && !((json("a") > 1))`: true, `size > 3`: false,
	} {
		// refused for its rate otherwise
		status, text := answer(p, change("replay", `{"rate":-1,"filter":{"where":`+strconv.Quote(expression)+`}}`))
		if (status == 403) != hidden {
			t.Errorf("%s: %d %s", expression, status, text)
		}
	}
	if c := page.Show([]byte("secret"), true); c.Kind != "hidden" || c.Text+c.Hex+c.Number != "" || c.Bytes != 6 {
		t.Errorf("%+v", c)
	}
}

func TestContentIsShownAsWhatItIs(t *testing.T) {
	// laid out it would be a gigabyte
	deep := strings.Repeat("[", 5000) + strings.Repeat("1,", 50_000) + "1" + strings.Repeat("]", 5000)
	for _, c := range []struct {
		bytes        []byte
		kind, text   string
		number, dump string
	}{
		{nil, "null", "", "", ""},
		{[]byte{}, "empty", "", "", ""},
		{[]byte("grüezi\n"), "text", "grüezi\n", "", "67 72 c3"},
		{[]byte(` {"b":1.0,"a":12345678901234567890,"a":1e400} `), "json",
			"{\n  \"b\": 1.0,\n  \"a\": 12345678901234567890,\n  \"a\": 1e400\n}", "", "7b"},
		{[]byte(`{"a":`), "text", `{"a":`, "", "7b"},
		{[]byte(deep), "text", deep, "", "5b"},
		{[]byte(`12`), "text", `12`, "", "31"},
		{[]byte{0, 0, 0, 42}, "binary", "", "42", "00 00 00 2a"},
		{[]byte{1, 0x99, 0xc8, 0x2c, 0xc0, 0}, "binary", "", "1760000000000", "01 99 c8 2c c0 00"},
		{[]byte{0xff, 0xfe}, "binary", "", "-2", "ff fe"},
		{[]byte("nine\x00bytes"), "binary", "", "", "6e 69 6e 65 00"},
	} {
		got := page.Show(c.bytes, false)
		if got.Kind != c.kind || got.Text != c.text || got.Number != c.number || !strings.Contains(got.Hex, c.dump) ||
			got.Bytes != len(c.bytes) || got.Cut {
			t.Errorf("%q: %+v", c.bytes, got)
		}
	}
	for _, huge := range [][]byte{
		[]byte(strings.Repeat("é", 200<<10)), []byte("[" + strings.Repeat("1,", 200<<10) + "1]"), make([]byte, 5000),
	} {
		if c := page.Show(huge, false); !c.Cut || len(c.Text) > 256<<10 || len(c.Hex) > 32<<10 ||
			strings.Contains(c.Text, "\uFFFD") {
			t.Errorf("%d bytes: kind %s, %d of text, %d of dump, cut %v", len(huge), c.Kind, len(c.Text), len(c.Hex), c.Cut)
		}
	}
}

func FuzzShow(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"a":[1,2]}`, "\x00", "a\u202eb", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := page.Show(b, false)
		if c.Bytes != len(b) || c.Kind == "text" && c.Text != string(b) && !c.Cut {
			t.Errorf("%q: %+v", b, c)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
		if hidden := page.Show(b, true); hidden.Text+hidden.Hex+hidden.Number != "" {
			t.Errorf("hidden: %+v", hidden)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add("state=any&from=2026-01-01T00:00:00Z&after=1.2.3", `{"filter":{"partition":1}}`)
	f.Add("where=value", `{"resume":"x"}`)
	f.Fuzz(func(t *testing.T, query, body string) {
		p := closed(t, page.Config{HideValues: true, Authenticate: func(*http.Request) (string, bool) { return "", false }})
		r := httptest.NewRequest(http.MethodGet, "http://localhost/api/letters", nil)
		r.URL.RawQuery = query
		if status, _ := answer(p, r); status != 401 {
			t.Errorf("%q: %d", query, status)
		}
		if status, _ := answer(p, change("delete", body)); status != 401 {
			t.Errorf("%q: %d", body, status)
		}
	})
}

// TestAListIsTheSamePageByPage: whatever order letters are read in, and however many share a moment, each is shown once
// and in its place.
func TestAListIsTheSamePageByPage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		written := make([]int, r.IntN(40))
		for i := range written {
			written[i] = r.IntN(8)
		}
		size := 1 + r.IntN(10)
		got, pages := page.Pages(r, written, size)
		if want := page.Sorted(written); !slices.Equal(got, want) || pages != max(1, (len(written)+size-1)/size) {
			t.Fatalf("%v by %d: %v on %d pages, want %v", written, size, got, pages, want)
		}
	}
}

// TestThePageRunsItsOwnScriptOnly: the policy names the script and the style by what they are, and the page loads
// nothing.
func TestThePageRunsItsOwnScriptOnly(t *testing.T) {
	w := httptest.NewRecorder()
	closed(t, page.Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/", nil))
	policy, html := w.Header().Get("Content-Security-Policy"), w.Body.String()
	for _, element := range []string{"script", "style"} {
		found := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(html, -1)
		if len(found) != 1 || len(found[0][1]) < 1000 {
			t.Fatalf("%d elements %s", len(found), element)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'"; !strings.Contains(policy, want) {
			t.Errorf("%s: the policy is %s", element, policy)
		}
	}
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
	if out := regexp.MustCompile(
		`(?i)(src|href)="(https?:)?//|@import|\Wurl\(|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(`).FindString(
		html); out != "" {
		t.Errorf("the page has %s", out)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
