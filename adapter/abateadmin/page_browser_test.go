package abateadmin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/internal/needs/chromium"
)

const how = "Start the proxy with --admin-token-file to change something from this page."

// inBrowser is false where a browser would take too long.
func inBrowser() bool { return !testing.Short() }

func TestThePageShowsAStormAtEveryWidthInLightAndDark(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := newStage(t, abateadmin.Config{Title: "abate proxy", How: how})
	storm(s, abate.Now())
	url := s.serve().URL
	b := chromium.Start(t)
	for _, dark := range []bool{false, true} {
		for _, width := range []int{1440, 1024, 390, 320} {
			name := fmt.Sprintf("%d-%v", width, dark)
			b.Size(width, dark)
			b.Open(url + "/")
			b.Until(`document.querySelectorAll('.spark path[d]').length > 3`)
			b.Shows("in trouble")
			b.Picture("list-" + name)
			if wide := b.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide != "0" {
				t.Errorf("%s: the list is %s px too wide", name, wide)
			}
			if first := b.Eval(`document.querySelector('.row a').textContent`); first != "checkout" {
				t.Errorf("%s: the first row is %q", name, first)
			}
			if mark := b.Eval(`document.querySelector('.row.trouble .mark').className + getComputedStyle(document.querySelector('.row.trouble .mark')).clipPath.slice(0, 7)`); mark != "mark troublepolygon" {
				t.Errorf("%s: trouble has no shape of its own: %s", name, mark)
			}
			b.Open(url + "/#guard/payment-service")
			b.Shows("Last errors")
			b.Until(`document.querySelectorAll('.plot path[d]').length > 3`)
			b.Until(`getComputedStyle(document.querySelector('.detail')).display !== 'none'`)
			b.Picture("why-" + name)
			b.Shows("connection refused")
			if wide := b.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide != "0" {
				t.Errorf("%s: the reason is %s px too wide", name, wide)
			}
		}
	}
	if b.Eval(`[...document.querySelectorAll('.detail [data-override]')].every(e => e.disabled)`) != "true" {
		t.Error("nobody may change something, and a button can be pressed")
	}
	b.Shows(how)
	b.Size(1440, false)
	var paints []string
	for range 5 {
		b.Open(url + "/")
		b.Until(`performance.getEntriesByName('first-contentful-paint').length`)
		paints = append(paints, b.Eval(`performance.getEntriesByName('first-contentful-paint')[0].startTime.toFixed(0)`))
	}
	t.Logf("first paints: %v ms", paints)
	b.Quiet()
}

// TestEverythingCanBeDoneWithKeys: from opening the page to a circuit that is forced open and taken back.
func TestEverythingCanBeDoneWithKeys(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := locked(t, nowhere{})
	g := s.guard("checkout", abate.DefaultPolicy())
	s.guard("</script><img src=x onerror=alert(1)>", abate.DefaultPolicy())
	b := chromium.Start(t)
	b.Size(1440, false)
	b.Open(s.serve().URL + "/")
	b.Shows("checkout")
	focus := `(document.activeElement.textContent || document.activeElement.id || '').trim()`
	reach := func(text string) {
		t.Helper()
		for range 60 {
			if b.Eval(fmt.Sprintf(`%s.startsWith(%q)`, focus, text)) == "true" {
				if b.Eval(`getComputedStyle(document.activeElement).outlineStyle`) == "none" {
					t.Errorf("at %q the focus cannot be seen", text)
				}
				return
			}
			b.Press("Tab")
		}
		t.Fatalf("Tab never comes to %q, but to %s", text, b.Eval(focus))
	}
	reach("Token")
	b.Press("Enter")
	b.Shows("Who is it?")
	b.Type("wrong")
	b.Press("Enter")
	b.Until(`!document.getElementById('ask').open`) // data may be seen without; but nothing changes
	b.Until(`document.getElementById('sign').textContent === 'Forget token'`)
	b.Press("Escape")
	b.Eval(`document.getElementById('sign').focus()`)
	b.Press("Enter")
	b.Until(`document.getElementById('sign').textContent === 'Token'`)
	b.Press("Enter")
	b.Shows("Who is it?")
	b.Type("sesame")
	b.Press("Enter")
	b.Until(`head.may`)
	reach("checkout")
	b.Press("Enter")
	b.Shows("Disable breaker")
	b.Until(`!document.querySelector('[data-override=forcedOpen]').disabled`)
	reach("Force open")
	b.Press("Enter")
	b.Shows("Every call to it is refused at once")
	b.Picture("ask")
	if got := b.Eval(focus); got != "Cancel" {
		t.Errorf("a key pressed twice forces a circuit open: the focus is at %q", got)
	}
	b.Press("Tab", "Enter")
	b.Until(`[...document.querySelectorAll('.banner')].some(e => /checkout: circuit forced open by hand by alice/.test(e.textContent))`)
	if err := call(g); !errors.Is(err, abate.ErrCircuitOpen) {
		t.Errorf("a call: %v", err)
	}
	b.Until(`document.querySelector('.row.trouble a').textContent === 'checkout'`)
	b.Picture("forced")
	b.Press("Escape")
	if got := b.Eval(focus); got != "checkout" {
		t.Errorf("closed, the focus is at %q", got)
	}
	b.Eval(`document.activeElement.blur()`)
	reach("Take back")
	b.Press("Enter")
	b.Shows("Leave “checkout” to the policy again?")
	b.Press("Enter")
	b.Until(`!document.querySelector('.banner')`)
	if err := call(g); err != nil {
		t.Errorf("a call: %v", err)
	}
	b.Shows("circuit breaker left to the policy again by alice")
	if bad := b.Eval(`[...document.querySelectorAll('button, input, select, a')].filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels && e.labels.length)).length`); bad != "0" {
		t.Errorf("%s controls have no name", bad)
	}
	b.Press("/")
	if b.Eval(`document.activeElement.id`) != "find" {
		t.Error("/ does not lead to the search")
	}
	b.Type("CHECK")
	b.Until(`document.querySelectorAll('.row').length === 1`)
	b.Quiet()
}

type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func TestAPageThatWantsATokenAsksForIt(t *testing.T) {
	if !inBrowser() {
		return
	}
	var down atomic.Bool
	s := locked(t, nowhere{})
	s.guard("payments", abate.DefaultPolicy())
	s.SetSees(secret, &down)
	b := chromium.Start(t)
	b.Open(s.serve().URL + "/#guard/payments")
	b.Shows("Who is it?")
	if b.Eval(`document.body.innerText.includes('idle')`) == "true" {
		t.Error("data is shown to somebody unknown")
	}
	b.Type("wrong")
	b.Press("Enter")
	b.Until(`document.querySelector('#ask .wrong').textContent.includes('this page is for those who are known')`)
	b.Eval(`document.getElementById('token').value = ''`)
	b.Type("sesame")
	b.Press("Enter")
	b.Shows("live")
	b.Shows("Retries owned by")
	down.Store(true) // the token is taken away while the page is open
	b.Shows("a token is needed")
	b.Quiet()
}

// TestWhatAProgramSaysInFrontOfThePageIsShown: the proxy refuses those without a certificate with a line of text.
func TestWhatAProgramSaysInFrontOfThePageIsShown(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := newStage(t, abateadmin.Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			http.Error(w, "this page is for those with a client certificate", http.StatusForbidden)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := chromium.Start(t)
	b.Open(server.URL + "/")
	b.Shows("this page is for those with a client certificate")
}

// TestARealStormIsSeenLive: calls of a guard that retries whatever happens, on a service that stops answering.
func TestARealStormIsSeenLive(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := newStage(t, abateadmin.Config{Title: "abate drill"})
	naive := s.guard("payments", abate.Policy{Retry: abate.Retry{MaxRetries: 3, InitialDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond}})
	careful := s.guard("orders", abate.DefaultPolicy())
	var down atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for _, g := range []*abate.Guard{naive, careful} {
		for range 4 {
			all.Go(func() {
				tick := time.NewTicker(40 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
					}
					_, _ = abate.Do(ctx, g, func(context.Context) (int, error) {
						if down.Load() {
							return 0, errors.New("connection refused")
						}
						return 0, nil
					})
				}
			})
		}
	}
	b := chromium.Start(t)
	b.Size(1440, true)
	b.Open(s.serve().URL + "/")
	b.Shows("All calm")
	down.Store(true)
	b.Shows("payments: retry storm")
	b.Shows("orders: circuit open")
	b.Picture("live-storm")
	b.Press("j", "Enter")
	b.Shows("connection refused")
	b.Shows("circuit closed → open: failure rate")
	b.Picture("live-why")
	down.Store(false)
	b.Shows("All calm")
	b.Quiet()
}

// TestAThousandGuardsStaySmooth measures; what it holds is that no frame waits for long. Numbers are in the log.
func TestAThousandGuardsStaySmooth(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := newStage(t, abateadmin.Config{})
	const guards = 1000
	for i := range guards {
		s.guard("service-"+strconv.Itoa(i), abate.DefaultPolicy())
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() { // each of them changes every second
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := abate.Now()
			for i := range guards {
				s.calls("service-"+strconv.Itoa(i), now, 1+(i+n)%4, 100*(i%20/19), 1)
			}
		}
	})
	b := chromium.Start(t)
	b.Size(1440, false)
	b.Open(s.serve().URL + "/")
	b.Until(`document.querySelectorAll('.row').length === 1000`)
	b.Until(`document.querySelectorAll('.row.trouble, .row.watch, .row.calm').length > 10`)
	b.Until(`performance.getEntriesByName('first-contentful-paint').length`)
	paint := b.Eval(`performance.getEntriesByName('first-contentful-paint')[0].startTime.toFixed(0)`)
	weight := b.Eval(`performance.getEntriesByType('resource').filter(e => !e.name.includes('events')).reduce((n, e) => n + e.transferSize, performance.getEntriesByType('navigation')[0].transferSize)`)
	b.Eval(`window.longest = 0; window.frames2 = []; window.tasks = [];
		new PerformanceObserver(l => tasks.push(...l.getEntries().map(e => e.duration))).observe({entryTypes: ['longtask']});
		{ let last = performance.now(); const f = now => { frames2.push(now - last); last = now; requestAnimationFrame(f) }; requestAnimationFrame(f) }; 0`)
	b.Until(`frames2.length > 60 * 6`)
	b.Eval(`scrollTo(0, 20000)`)
	b.Until(`frames2.length > 60 * 10`)
	b.Picture("thousand")
	frames := b.Eval(`{ const f = frames2.slice().sort((a, b) => a - b); 'median ' + f[f.length >> 1].toFixed(1) + ' ms, p99 ' + f[f.length * .99 | 0].toFixed(1) + ' ms, longest ' + f[f.length - 1].toFixed(1) + ' ms' }`)
	tasks := b.Eval(`tasks.length + ' long tasks, longest ' + Math.max(0, ...tasks).toFixed(0) + ' ms'`)
	t.Logf("first paint %s ms, %s bytes; frames of 1,000 guards that all change: %s; %s", paint, weight, frames, tasks)
	if n, err := strconv.Atoi(weight); err != nil || n > 200<<10 || n < 10<<10 {
		t.Errorf("the page weighs %s bytes", weight)
	}
	if b.Eval(`document.querySelectorAll('.row .spark path[d]').length > 20 && document.querySelectorAll('.row .spark path[d]').length < 3000`) != "true" {
		t.Error("lines are drawn that nobody sees, or none")
	}
	b.Quiet()
}

// TestRowsAreMovedOnlyIfTheyMust: whoever moves a thousand to put one in its place makes the page stand still.
func TestRowsAreMovedOnlyIfTheyMust(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := newStage(t, abateadmin.Config{})
	b := chromium.Start(t)
	b.Open(s.serve().URL + "/")
	b.Shows("Nothing to watch yet.")
	for _, c := range []struct{ old, want string }{
		{`[]`, ``}, {`[0,1,2,3]`, `0,1,2,3`}, {`[1,2,3,0]`, `0,1,2`}, {`[3,0,1,2]`, `1,2,3`}, {`[-1,0,-1,1]`, `1,3`}, {`[3,2,1,0]`, `3`}, {`[2,0,1,4,3,5]`, `1,2,4,5`},
	} {
		if got := b.Eval(fmt.Sprintf(`[...steady(%s)].sort((a, b) => a - b).join()`, c.old)); got != c.want {
			t.Errorf("of %s those at %s stay, want %s", c.old, got, c.want)
		}
	}
	b.Quiet()
}
