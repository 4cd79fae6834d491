package rehearse

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/core"
)

func runTop(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = TopCommand(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// topPage serves a page with a guard that is in trouble and one that is idle, for those with a token.
func topPage(t *testing.T) *httptest.Server {
	t.Helper()
	page := abateadmin.New(abateadmin.Config{Title: "shop", Sees: func(r *http.Request) bool {
		return r.Header.Get("Authorization") == "Bearer sesame"
	}})
	for _, name := range []string{"checkout", "a\x1b[31mred"} {
		p := abate.DefaultPolicy()
		page.Adjust(name, &p)
		g, err := abate.New(name, p)
		if err != nil {
			t.Fatal(err)
		}
		page.Add(g)
		if name != "checkout" {
			continue
		}
		if err := g.Override(abate.OverrideForcedOpen); err != nil {
			t.Fatal(err)
		}
		p.Observer.Observe(abate.Event{
			Kind: core.AttemptEnded, At: core.Now(), Class: abate.Failure, Err: errors.New("connection refused"),
		})
	}
	s := httptest.NewServer(page)
	t.Cleanup(func() { page.Close(); s.Close() })
	return s
}

func topToken(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTopPrintsOneTableWhereThereIsNoTerminal(t *testing.T) {
	s := topPage(t)
	for _, admin := range []string{s.URL, s.URL + "/", strings.TrimPrefix(s.URL, "http://")} {
		for _, token := range []string{"sesame\n", "# comment\nanna sesame\nbob other\n"} {
			code, out, errs := runTop(t, "--admin", admin, "--token-file", topToken(t, token))
			lines := strings.Split(out, "\n")
			if code != 0 || errs != "" || len(lines) != 7 {
				t.Fatalf("%d %q\n%s", code, errs, out)
			}
			for i, want := range []string{"shop", "BY HAND: checkout: circuit breaker forcedOpen, 0 s ago", "", "LEVEL   NAME",
				"trouble checkout", "idle    a\uFFFD[31mred"} {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("line %d is %q, want %q", i, lines[i], want)
				}
			}
			if !strings.HasSuffix(lines[4], "circuit forced open by hand") || strings.ContainsRune(out, 0x1b) {
				t.Errorf("%q", out)
			}
		}
	}
}

func TestTopSaysWhatToDoAboutWhatDoesNotAnswer(t *testing.T) {
	s, other := topPage(t), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>"))
	}))
	t.Cleanup(html.Close)
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(empty.Close)
	misdirected := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusMisdirectedRequest)
	}))
	t.Cleanup(misdirected.Close)
	nobody := clitest.FreeAddress(t)
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"--admin", nobody}, 1, []string{
			"nothing listens on " + nobody, "abate proxy -c POLICY", "make drill", "--admin",
		}},
		{[]string{"--admin", s.URL}, 1, []string{"asks for a token", "--token-file"}},
		{[]string{"--admin", s.URL, "--token-file", topToken(t, "wrong")}, 1, []string{"does not know the token"}},
		{[]string{"--admin", other.URL}, 1, []string{"no live page at", "404"}},
		{[]string{"--admin", strings.Replace(other.URL, "http://", "http://me:hunter2@", 1)}, 1,
			[]string{"no live page at", "404"}},
		{[]string{"--admin", "ftp://me:hunter2@x"}, 2, []string{"is not an address"}},
		{[]string{"--admin", misdirected.URL}, 1, []string{"does not answer to the name 127.0.0.1", "localhost"}},
		{[]string{"--admin", html.URL}, 1, []string{"no live page at", "no JSON"}},
		{[]string{"--admin", empty.URL}, 1, []string{"no live page at", "something else"}},
		{[]string{"--admin", "ftp://x", "--token-file", "/nowhere/token", "--ca", "/nowhere/ca", "--cert", "/nowhere/c",
			"--key", "/nowhere/k"}, 2,
			[]string{`--admin "ftp://x" is not an address`, "--token-file: open", "--ca: open",
				"--cert /nowhere/c and --key /nowhere/k"}},
		{[]string{"--token-file", topToken(t, "\n# nothing\n"), "--ca", topToken(t, "x")}, 2, []string{
			"there is no token in it", "there is no certificate in it",
		}},
		{[]string{"localhost:1", "--cert", "x"}, 2, []string{
			`"localhost:1" is not a flag; the address goes after --admin`, "--cert and --key go together",
		}},
		{[]string{"--colour"}, 2, []string{"-colour"}},
	} {
		code, out, errs := runTop(t, c.args...)
		if strings.Contains(errs, "hunter2") {
			t.Errorf("%q shows a password: %s", c.args, errs)
		}
		if code != c.code || out != "" {
			t.Errorf("%q: exit code %d, %q", c.args, code, out)
		}
		for _, want := range c.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%q: %q is not in\n%s", c.args, want, errs)
			}
		}
	}
	if code, out, _ := runTop(t, "-h"); code != 0 || !strings.HasPrefix(out, "Usage: abate top") {
		t.Errorf("-h: %d %s", code, out)
	}
}

// A newer page may have levels that this program does not know.
func TestTopSurvivesLevelsItDoesNotKnow(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"at": 1, "rows": [{"name": "a", "level": 9}, {"name": "b", "level": -1}]}`))
	}))
	t.Cleanup(s.Close)
	if code, out, errs := runTop(t, "--admin", s.URL); code != 0 || !strings.Contains(out, "trouble a") ||
		!strings.Contains(out, "idle    b") {
		t.Errorf("%d %s\n%s", code, errs, out)
	}
}

// What is opened goes with a reload: everything else is shown as it is now.
func TestTopGoesOnWhenWhatIsOpenedHasGone(t *testing.T) {
	s := topPage(t)
	f := topFlags{admin: s.URL, token: topToken(t, "sesame")}
	client, err := f.client()
	if err != nil {
		t.Fatal(err)
	}
	v := topView{snapshot: topRows(), width: 100, height: 30, opened: "gone", at: 7}
	v.take(client.look(t.Context(), "gone", false))
	if text := strings.Join(v.screen(), "\n"); v.problem != "" || !strings.Contains(text, "gone has gone") ||
		!strings.Contains(text, "BY HAND: checkout") || v.at != 1 {
		t.Errorf("at %d, %q\n%s", v.at, v.problem, text)
	}
}

// topRows are a few rows.
func topRows() *abateadmin.Snapshot {
	return &abateadmin.Snapshot{Title: "shop", At: 100_000, Rows: []abateadmin.Row{
		{Name: "a", Level: abateadmin.Calm, Calls: 50, Good: 50, Attempts: 50, Amplification: 1, Circuit: "closed",
			HasBudget: true, Budget: 10, Guards: 1},
		{Name: "b", Level: abateadmin.Trouble, Calls: 10, Bad: 9.5, Attempts: 34, Amplification: 3.4, RetryShare: .7,
			Circuit: "off", InFlight: 12, Limit: 20, Guards: 50,
			Why: "retry storm: 3.4 attempts for each call"},
		{Name: "c", Gate: true, Level: abateadmin.Idle, Amplification: 1, Guards: 1},
	}}
}

func TestTopIsAsWideAsTheScreen(t *testing.T) {
	v := topView{snapshot: topRows(), problem: strings.Repeat("lost ", 99), colour: true}
	v.snapshot.Problem = "policy.yaml:3:1: error: " + strings.Repeat("wide ", 99)
	v.snapshot.Rows[1].Name = strings.Repeat("名前", 99)
	for width := 20; width < 200; width++ {
		for _, opened := range []string{"", v.snapshot.Rows[1].Name} {
			v.width, v.height, v.opened = width, 10, opened
			lines := v.screen()
			if len(lines) > 10 {
				t.Errorf("%d lines", len(lines))
			}
			for _, line := range lines {
				if n := textWidth(plainLine(line)); n > width {
					t.Errorf("%d columns of %d: %q", n, width, line)
				}
			}
		}
	}
	v = topView{snapshot: topRows(), width: 160, height: 20}
	want := []string{
		"trouble b x50         off         3.40         0      9.5        0    70%      12/20       -         -  retry " +
			"storm: 3.4 attempts for each call",
		"calm    a             closed      1.00        50        0        0     0%          0      10         -",
		"idle    c (arriving)                 -         0        0        0      -          0       -         -",
	}
	if got := v.table()[3:]; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTopTellsTheWholeStoryOnANarrowScreen(t *testing.T) {
	v := topView{snapshot: topRows(), width: 40, height: 30, opened: "b"}
	v.snapshot.Rows[1].Story = abateadmin.Story{
		Cause: "The circuit opened because too large a share of the attempts failed.\x1b[31m",
		Next:  "The next probe is sent in 40 ms.",
	}
	want := "  Cause   The circuit opened because too\n" +
		"          large a share of the attempts\n" +
		"          failed.\uFFFD[31m\n" +
		"  Next    The next probe is sent in\n" +
		"          40 ms."
	if got := strings.Join(v.screen(), "\n"); !strings.Contains(got, want) {
		t.Errorf("\n%s\nwant in it\n%s", got, want)
	}
}

// plainLine takes colours off.
func plainLine(line string) string {
	for {
		from := strings.Index(line, "\x1b[")
		if from < 0 {
			return line
		}
		line = line[:from] + line[from+strings.IndexByte(line[from:], 'm')+1:]
	}
}

func TestTopFollowsItsKeys(t *testing.T) {
	v := topView{snapshot: topRows(), width: 100, height: 30}
	first := func() string { return v.rows()[0].Name }
	if first() != "b" {
		t.Errorf("first is %s", first())
	}
	for _, want := range []string{"b", "a", "a", "b"} { // attempts per call, calls, name, trouble
		if v.press("s"); first() != want {
			t.Errorf("sorted by %s the first is %s, want %s", topSorts[v.sort].name, first(), want)
		}
	}
	for _, key := range []string{"k", "j", "\x1b[B", "j", "j"} {
		v.press(key)
	}
	if v.at != 2 {
		t.Errorf("at row %d", v.at)
	}
	v.press("\x1b[A")
	v.press("\n")
	if v.opened != "a" || v.openedGate {
		t.Errorf("opened %q", v.opened)
	}
	v.take(topAnswer{snapshot: topRows(), name: "b", detail: &topDetail{}}) // an answer to an older question
	if v.detail != nil {
		t.Error("it shows the details of another")
	}
	v.take(topAnswer{
		snapshot: topRows(), name: "a", detail: &topDetail{
			At: 100_000, Errors: []topPast{{At: 5000, Class: "failure", Text: "no\x07thing"}},
			Refusals: []topCount{{"circuit open", 3, 40}},
		},
	})
	screen := strings.Join(v.screen(), "\n")
	for _, want := range []string{"95 s ago", "failure: no\uFFFDthing", "circuit open", "40"} {
		if want == "95 s ago" {
			want = "2 min ago"
		}
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not in\n%s", want, screen)
		}
	}
	v.take(topAnswer{err: errors.New("nothing listens")})
	if screen := strings.Join(v.screen(), "\n"); !strings.Contains(screen, "NO CONNECTION: nothing listens") ||
		!strings.Contains(screen, "CALM") {
		t.Errorf("what was there has gone:\n%s", screen)
	}
	if v.press("\x1b"); v.opened != "" {
		t.Error("Esc does not go back")
	}
	if v.press("x") || !v.press("q") {
		t.Error("q, and only q, ends")
	}
	v.snapshot.Rows = nil
	v.at = 5
	v.press("\n")
	if v.opened != "" || len(v.screen()) == 0 {
		t.Error("with no rows something is opened")
	}
}

func FuzzTopTable(f *testing.F) {
	f.Add("checkout", "storm; open", 80, 24, 3)
	f.Add("\x1b[2J", "\u202e\xff", 1, 0, 0)
	f.Add("名前", "👩‍👩‍👧", 33, 3, 2)
	f.Fuzz(func(t *testing.T, name, why string, width, height, level int) {
		if width > 500 || width < -10 || height > 500 || height < -10 {
			return
		}
		v := topView{snapshot: topRows(), width: width, height: height, colour: true}
		v.snapshot.Rows[0].Name, v.snapshot.Rows[0].Why, v.snapshot.Rows[0].Level, v.snapshot.Problem = name, why,
			abateadmin.Level(uint(level)%4), why
		v.opened, v.snapshot.Rows[0].Story.Cause = name, why
		for _, lines := range [][]string{v.screen(), v.table()} {
			for _, line := range lines {
				text := plainLine(line)
				if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
					t.Errorf("%q", line)
				}
			}
		}
	})
}
