package brokertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/dlq/page"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/abate-go/abate/internal/needs/chromium"
	"github.com/twmb/franz-go/pkg/kgo"
)

// served is a page of dead letters on a port of loopback.
type served struct {
	*page.Page
	desk *dlq.Desk
	url  string
}

func (c chain) page(t *testing.T, config page.Config) *served {
	t.Helper()
	config.Desk, config.Logger = c.desk(t), slog.New(slog.DiscardHandler)
	p, err := page.New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(func() { server.Close(); p.Close() })
	return &served{p, config.Desk, server.URL}
}

// ask sends a request, as a program would, and reads the answer into to. body is nil for a GET.
func (s *served) ask(t *testing.T, path string, body any, to any) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), http.MethodGet, s.url+"/api/"+path, nil)
	if body != nil {
		sent, _ := json.Marshal(body)
		r, err = http.NewRequestWithContext(within(t), http.MethodPost, s.url+"/api/"+path, strings.NewReader(string(sent)))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Abate-Dlq", "1")
	r.Header.Set("Authorization", "Bearer bob")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if to != nil {
		if err := json.Unmarshal(read, to); err != nil || answer.StatusCode >= 400 {
			t.Fatalf("%s: %d %s", path, answer.StatusCode, read)
		}
	}
	return answer.StatusCode, string(read)
}

// all is a filter of everything, in JSON.
type all = map[string]any

// hostile does something if anybody takes it for more than text.
const hostile = "</script><script>console.error(1)</script><img src=x onerror=\"console.error(2)\"><svg " +
	"onload=alert(3)>\u202e{{1}}javascript:alert(4)"

// poisoned is a dead letter in which every text is hostile.
func (c chain) poisoned() *kgo.Record {
	l := letter.Letter{Original: letter.Place{Topic: c.main, Offset: 666}, Group: hostile, Failures: 4, Class: hostile,
		Message: hostile, Trace: hostile + "\nmain.go:1", Reason: hostile,
		Headers: []kgo.RecordHeader{{Key: hostile, Value: []byte(hostile)}}, History: []letter.Past{
			{Topic: hostile, At: time.UnixMilli(1760000000000), Class: hostile},
		}}
	return &kgo.Record{
		Key: []byte(hostile), Value: fmt.Appendf(nil, `{"a":%q}`, hostile), Headers: l.AppendHeaders(nil, letter.Abate),
	}
}

func TestPageIsWorkedWithInABrowser(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 2)
		c.seed(t, 40, 2) // ten of them declined cards
		s := c.page(t, page.Config{})
		w := chromium.Start(t, "--hide-scrollbars")
		w.Size(1280, false)
		w.Open(s.url)
		w.Shows("40 letters in 2 groups")
		w.WholePicture("groups")
		w.Fill("f-where", `class = "card-declined"`)
		w.Press("Enter")
		w.Until(`document.getElementById('f-error').innerText.length > 10 && ` +
			`document.getElementById('f-where').getAttribute('aria-invalid') === 'true'`)
		w.WholePicture("condition")
		w.Fill("f-where", `class == "card-declined"`)
		w.Press("Enter")
		w.Shows("10 letters in 1 group")
		w.Press("Escape")
		w.Press("j")
		w.Press("Enter")
		w.Click("Add a note")
		w.Fill("n-text", "INC-4711")
		w.Click("Leave it")
		w.Shows("INC-4711")
		w.Until(`document.querySelectorAll('tr.row').length === 10`)
		w.Press("j")
		w.Press("Enter")
		for _, text := range []string{`"currency": "eur"`, "event-id", "ff ", "exhausted", c.main + "/1/", "billing"} {
			w.Shows(text)
		}
		w.WholePicture("letter")
		w.Click("Hex")
		w.Shows("00000000  7b 22")
		w.Press("u")
		w.Shows("10 letters")
		w.Click("Delete …")
		w.Click("Delete 10 letters")
		w.Shows("No dead letters wait")
		w.Fill("f-state", "deleted")
		w.Shows("10 letters")
		w.Click("Restore …")
		w.Click("Restore 10 letters")
		w.Fill("f-state", "")
		w.Until(`document.querySelector('button.replay')`)
		w.Press("r")
		w.Fill("r-settle", "0.1")
		w.Until(`document.getElementById('r-unjudged').checked = true`)
		w.Click("Look first")
		w.Shows("10 letters would be sent to " + c.main + " (10)")
		w.WholePicture("look")
		if got := c.everything(t, c.main); len(got) != 0 {
			t.Fatalf("looking has sent %d", len(got))
		}
		w.Fill("r-rate", "1000")
		// the form is another now
		w.Until(`![...document.querySelectorAll('dialog button')].some(e => e.offsetParent && ` +
			`e.textContent.startsWith('Replay'))`)
		w.Click("Look first")
		w.Click("Replay 10 letters")
		w.Shows("10 of 10 sent")
		w.Shows(": sent, some still waiting")
		w.WholePicture("done")
		if got := c.everything(t, c.main); len(got) != 10 {
			t.Errorf("%d were sent, want 10", len(got))
		}
		w.Click("Audit")
		for _, text := range []string{"started a replay", "left a note", "restored", "deleted", "ann@bastion", "INC-4711"} {
			w.Shows(text)
		}
		w.WholePicture("audit")
		w.Quiet()
	})
}

func TestNothingOfALetterRunsInABrowser(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	c := newChain(t, newFake(t, false), 1)
	c.produce(t, c.dead, c.poisoned())
	s := c.page(t, page.Config{})
	var found struct{ Groups []dlq.Group }
	s.ask(t, "groups", nil, &found)
	if len(found.Groups) != 1 || found.Groups[0].Class == "" {
		t.Fatalf("%+v", found)
	}
	s.ask(t, "note", all{"group": found.Groups[0].ID, "text": hostile}, &all{})
	w := chromium.Start(t, "--hide-scrollbars")
	for _, width := range []int{1280, 390, 320} {
		for address, text := range map[string]string{
			"": "1 letter in 1 group", "#/group/" + found.Groups[0].ID: "Edit the note", "#/letters": "1 letter",
			"#/letter/0/0": "Earlier failures", "#/audit": "left a note",
		} {
			w.Size(width, true)
			w.Open(s.url + "/" + address)
			w.Shows(text)
			w.Shows("<script>console.error(1)</script>")
			w.Shows("⟨U+202E⟩")
			if got, err := strconv.Atoi(w.Size(width, true)); err != nil || got > width {
				t.Errorf("%s at %d px is %d px wide", address, width, got)
			}
		}
		w.Press("u")
	}
	w.Open(s.url + "/#/letter/0/0")
	w.Shows("Earlier failures")
	w.Press("r")
	w.Click("Look first")
	w.Shows("1 letter would be sent")
	if n := w.Eval(`document.querySelectorAll('img, iframe, object, embed, [onerror], [onload], [style], ` +
		`script:not(body > script)').length`); n != "0" {
		t.Errorf("%s elements that no page of ours has", n)
	}
	for _, address := range []string{"#/group/%00%ff", "#/letter/x/y", "#/letter/0/99999", "#/" + url.PathEscape(hostile),
		"#/groups?where=" + url.QueryEscape(hostile) + "&state=" + url.QueryEscape(hostile)} {
		w.Open(s.url + "/" + address)
		w.Until(`document.getElementById('main').innerText.length > 5 && !document.querySelector('.loading')`)
	}
	w.Quiet()
}

func TestReplayGoesOnWhenThePageIsLoadedAgainAndCanBeCancelled(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	c := newChain(t, newFake(t, false), 1)
	c.seed(t, 300, 1) // at 2/s it does not end by itself
	s := c.page(t, page.Config{})
	w := chromium.Start(t, "--hide-scrollbars")
	w.Open(s.url)
	w.Shows("300 letters")
	w.Press("r")
	w.Fill("r-settle", "0.1")
	w.Until(`document.getElementById('r-unjudged').checked = true`)
	w.Fill("r-rate", "2")
	w.Click("Look first")
	w.Click("Replay 300 letters")
	w.Shows("of 300 sent")
	w.Open(s.url + "/#/letters")
	w.Shows("of 300 sent")
	if status, text := s.ask(t, "replay", all{"filter": all{}}, nil); status != http.StatusConflict {
		t.Errorf("another one beside it: %d %s", status, text)
	}
	w.Size(390, true)
	w.WholePicture("running-narrow-dark")
	w.Click("Cancel")
	w.Shows(": cancelled")
	w.Click("Resume")
	w.Until(`!document.body.innerText.includes(': cancelled')`)
	w.Shows("of 300 sent")
	w.Quiet()
	s.Close() // cancels it
	if p, ok := s.Progress(); !ok || p.Phase != dlq.Cancelled || p.Sent >= 300 {
		t.Errorf("after Close: %+v", p)
	}
	if status, text := s.ask(t, "replay", all{"filter": all{}}, nil); status != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d %s", status, text)
	}
	done, err := s.desk.Replay(within(t), dlq.Replay{Resume: s.id(t), Rate: 100_000, Settle: time.Millisecond})
	if err != nil || done.Phase != dlq.Stopped && !over(done) && done.Phase != dlq.Cancelled {
		t.Errorf("it cannot be resumed: %+v, %v", done, err)
	}
}

// id is that of the replay here.
func (s *served) id(t *testing.T) string {
	t.Helper()
	p, ok := s.Progress()
	if !ok || p.ID == "" {
		t.Fatal("there is no replay")
	}
	return p.ID
}

func TestPageAsksForATokenAndTheAuditNamesItsOwner(t *testing.T) {
	c := newChain(t, newFake(t, false), 1)
	c.seed(t, 8, 1)
	s := c.page(t, page.Config{Authenticate: func(r *http.Request) (string, bool) {
		name, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return name, ok && (name == "bob" || name == "eve")
	}})
	s.ask(t, "delete", all{"filter": all{"partition": 0, "fromOffset": 2, "toOffset": 4}}, &all{})
	s.ask(t, "replay", all{"filter": all{"partition": 0, "toOffset": 1}, "settleSeconds": 0.05, "unjudged": true}, &all{})
	eventually(t, "the replay ends", func() bool { p, ok := s.Progress(); return ok && p.Phase.Ended() })
	var audit struct {
		Actions []struct{ By, Action string }
	}
	eventually(t, "the audit to have the deletion, the start, the letter and the end, which is written after it is told",
		func() bool {
			audit.Actions = nil
			s.ask(t, "actions", nil, &audit)
			return len(audit.Actions) >= 4
		})
	if len(audit.Actions) != 4 {
		t.Fatalf("%+v", audit)
	}
	for _, a := range audit.Actions {
		if a.By != "bob" {
			t.Errorf("%s was done by %q", a.Action, a.By)
		}
	}
	if p, _ := s.Progress(); p.By != "bob" || p.Sent != 1 {
		t.Errorf("%+v", p)
	}
	if testing.Short() {
		return // a browser is slow
	}
	w := chromium.Start(t, "--hide-scrollbars")
	w.Open(s.url)
	w.Shows("Who are you?")
	for _, token := range []string{"mallory", "eve"} {
		w.Eval(fmt.Sprintf(`document.querySelector('input[type=password]').value = %q`, token))
		w.Click("Go on")
		if token == "mallory" {
			w.Shows("does not know this token")
		}
	}
	w.Shows("5 letters in 2 groups")
	w.Quiet()
}

func TestHiddenValuesAreInNoAnswer(t *testing.T) {
	c := newChain(t, newFake(t, false), 1)
	l := letter.Letter{Original: letter.Place{Topic: c.main}, Class: "card-declined", Message: "declined",
		Headers: []kgo.RecordHeader{{Key: "who", Value: []byte("s3cret-header")}}}
	c.produce(t, c.dead, &kgo.Record{
		Key: []byte("s3cret-key"), Value: []byte("s3cret-value"), Headers: l.AppendHeaders(l.Headers, letter.Abate),
	})
	for hide, want := range map[bool]bool{true: false, false: true} {
		s := c.page(t, page.Config{HideValues: hide})
		seen := false
		for _, path := range []string{
			"desk", "groups", "letters", "letters/0/0", "letters/0/0/value", "export", "replay", "actions",
		} {
			_, text := s.ask(t, path, nil, nil)
			seen = seen || strings.Contains(text, "s3cret")
		}
		_, text := s.ask(t, "replay/plan", all{"filter": all{}}, nil)
		if !strings.Contains(text, "card-declined") {
			t.Errorf("the plan says %s", text)
		}
		if seen = seen || strings.Contains(text, "s3cret"); seen != want {
			t.Errorf("hidden: %v, seen: %v", hide, seen)
		}
	}
}

func TestLettersComeNewestFirstPageByPage(t *testing.T) {
	eachBroker(t, func(t *testing.T, b broker) {
		c := newChain(t, b, 3)
		for i := range 57 {
			r := c.failed(i, int32(i%3), "card-declined", "declined")
			r.Timestamp = time.Now().Truncate(time.Second).Add(-time.Duration(i*31%20) * time.Minute)
			c.produce(t, c.dead, r)
		}
		s := c.page(t, page.Config{})
		seen, last, next, pages := map[string]bool{}, "", "", 0
		for pages == 0 || next != "" {
			var p struct {
				Letters []struct {
					Partition, Offset int
					Written           string
				}
				Count int
				Next  string
			}
			s.ask(t, "letters?limit=10&after="+next, nil, &p)
			for _, l := range p.Letters {
				seen[fmt.Sprint(l.Partition, "/", l.Offset)] = true
				if last != "" && l.Written > last {
					t.Errorf("%d/%d is newer than the one before", l.Partition, l.Offset)
				}
				last = l.Written
			}
			if p.Count != 57 {
				t.Fatalf("page %d counts %d", pages, p.Count)
			}
			next = p.Next
			pages++
		}
		if len(seen) != 57 || pages != 6 {
			t.Errorf("%d letters on %d pages, want 57 on 6", len(seen), pages)
		}
	})
}

func TestExportOfThePageIsThatOfTheDesk(t *testing.T) {
	c := newChain(t, newFake(t, false), 1)
	c.seed(t, 12, 1)
	s := c.page(t, page.Config{})
	var want strings.Builder
	f := dlq.All()
	f.Where = `class == "card-declined"`
	if n, err := s.desk.Export(within(t), f, &want); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if _, got := s.ask(t, "export?where="+url.QueryEscape(f.Where), nil, nil); got != want.String() {
		t.Errorf("got %s, want %s", got, want.String())
	}
}

func TestWhatWasDoneToManyAtOnceIsOneLineOfTheAudit(t *testing.T) {
	c := newChain(t, newFake(t, false), 1)
	c.seed(t, 30, 1)
	s := c.page(t, page.Config{})
	var n struct{ Count int }
	s.ask(t, "delete", all{"filter": all{"partition": 0, "toOffset": 20}}, &n)
	if n.Count != 20 {
		t.Fatalf("%d deleted", n.Count)
	}
	s.ask(t, "delete", all{"filter": all{"partition": 0, "fromOffset": 25}}, &n)
	s.ask(t, "note", all{"group": "abc", "text": "a"}, &all{})
	s.ask(t, "note", all{"group": "abc", "text": "b"}, &all{})
	type page struct {
		Actions []struct {
			Action string
			Count  int
			Offset int64
		}
		Next string
	}
	read := func(query string) (p page) {
		s.ask(t, "actions?"+query, nil, &p)
		return p
	}
	whole := read("")
	got := ""
	for _, a := range whole.Actions {
		got += fmt.Sprint(a.Action, " ", a.Count, ";")
	}
	if got != "note 0;note 0;delete 5;delete 20;" || whole.Next != "" {
		t.Errorf("%s, next %q", got, whole.Next)
	}
	if each := read("each=1&limit=500"); len(each.Actions) != 27 {
		t.Errorf("each for itself: %d", len(each.Actions))
	}
	first := read("limit=3")
	if second := read("limit=3&before=" + first.Next); len(first.Actions) != 3 || len(second.Actions) != 1 ||
		second.Actions[0].Count != 20 {
		t.Errorf("page by page: %+v, then %+v", first, second)
	}
}

func TestReplayThatRunsElsewhereIsShownAndCanBeTakenOver(t *testing.T) {
	c := newChain(t, newFake(t, false), 1)
	c.seed(t, 40, 1)
	s := c.page(t, page.Config{})
	var elsewhere string
	began, ended := make(chan dlq.Progress, 1), make(chan dlq.Progress, 1)
	other := c.desk(t)
	go func() {
		p, _ := other.Replay(within(t),
			dlq.Replay{Filter: dlq.All(), Rate: 1, Settle: time.Millisecond, Unjudged: true, Progress: func(p dlq.Progress) {
				if p.Sent > 0 {
					select {
					case began <- p:
					default:
					}
				}
			}})
		ended <- p
	}()
	select {
	case p := <-began:
		elsewhere = p.ID
	case <-time.After(patience):
		t.Fatal("it does not begin")
	}
	var shown struct {
		Here *struct{ Failure string }
		All  []dlq.Progress
	}
	s.ask(t, "replay", nil, &shown)
	if shown.Here != nil || len(shown.All) != 1 || shown.All[0].ID != elsewhere || shown.All[0].Phase.Ended() {
		t.Errorf("%+v", shown)
	}
	s.ask(t, "replay", all{"filter": all{}}, &all{})
	eventually(t, "another is refused, and the page says why", func() bool {
		s.ask(t, "replay", nil, &shown)
		return shown.Here != nil && strings.Contains(shown.Here.Failure, elsewhere)
	})
	s.ask(t, "replay", all{"resume": elsewhere, "takeOver": true, "rate": 1000, "settleSeconds": 0.05}, &all{})
	select {
	case p := <-ended:
		if over(p) {
			t.Errorf("the other one went on: %+v", p)
		}
	case <-time.After(patience):
		t.Fatal("the other one does not end")
	}
	eventually(t, "the replay ends", func() bool {
		p, ok := s.Progress()
		return ok && p.ID == elsewhere && p.Phase.Ended()
	})
	if p, _ := s.Progress(); !over(p) || p.Sent < 39 {
		t.Errorf("%+v", p)
	}
}

func TestALetterThatIsNotThereIsNotFound(t *testing.T) {
	c := newChain(t, newFake(t, false), 1)
	c.seed(t, 2, 1)
	s := c.page(t, page.Config{})
	for path, want := range map[string]int{
		"letters/0/1": 200, "letters/0/2": 404, "letters/x/0": 400, "letters/0/-1": 400, "letters/99999999999/0": 400,
	} {
		if status, text := s.ask(t, path, nil, nil); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestCancelWithoutAReplaySaysSo(t *testing.T) {
	c := newChain(t, newFake(t, false), 1)
	s := c.page(t, page.Config{})
	for _, id := range []string{"", "r-unknown"} {
		if status, text := s.ask(t, "replay/cancel", all{"id": id}, nil); status != http.StatusConflict {
			t.Errorf("%q: %d %s", id, status, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/groups", nil)
	s.ServeHTTP(httptest.NewRecorder(), r) // whoever has left costs nothing and breaks nothing
}
