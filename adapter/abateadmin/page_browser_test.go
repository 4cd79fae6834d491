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
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/needs/chromium"
)

const how = "Start the proxy with --admin-token-file to change something from this page."

// inBrowser is false where a browser would take too long.
func inBrowser() bool { return !testing.Short() }

func TestThePageShowsAStormAtEveryWidthInLightAndDark(t *testing.T) {
	if !inBrowser() {
		return
	}
	// A storm is over after a minute, and a busy machine takes longer for all widths: each has a storm of its own.
	storming := func() (url string) {
		s := newStage(t, abateadmin.Config{Title: "abate proxy", How: how})
		storm(s, core.Now())
		return s.serve().URL
	}
	b := chromium.Start(t)
	var url string
	for _, dark := range []bool{false, true} {
		for _, width := range []int{1440, 1024, 390, 320} {
			name := fmt.Sprintf("%d-%v", width, dark)
			b.Size(width, dark)
			url = storming()
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
			if mark := b.Eval(`document.querySelector('.row.trouble .mark').className + ` +
				`getComputedStyle(document.querySelector('.row.trouble .mark')).clipPath.slice(0, 7)`); mark !=
				"mark troublepolygon" {
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
	b.Until(`[...document.querySelectorAll('.banner')].some(e => /checkout: circuit forced open by hand by ` +
		`alice/.test(e.textContent))`)
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
	if bad := b.Eval(`[...document.querySelectorAll('button, input, select, a')].filter(e => !(e.textContent.trim() || ` +
		`e.getAttribute('aria-label') || e.labels && e.labels.length)).length`); bad != "0" {
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
	careless := abate.Policy{
		Retry: abate.Retry{MaxRetries: 3, InitialDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond},
	}
	careless.RetryBudget.Disabled, careless.CircuitBreaker.Disabled = true, true
	naive := s.guard("payments", careless)
	numbers := abate.DefaultPolicy()
	numbers.CircuitBreaker.FailureRateThreshold = 0.5 // what fails at once opens no circuit of the default kind
	careful := s.guard("orders", numbers)
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
	page := s.serve().URL + "/"
	b.Open(page)
	b.Shows("All calm")
	down.Store(true)
	b.Shows("payments: retry storm")
	b.Shows("orders: circuit open")
	b.Picture("live-storm")
	b.Open(page + "#guard/orders") // not the first row, which for a moment may be the other one
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
			now := core.Now()
			for i := range guards {
				s.calls("service-"+strconv.Itoa(i), now, 1+(i+n)%4, 100*(i%20/19), 1)
			}
		}
	})
	b := chromium.Start(t)
	b.Size(1440, false)
	b.Open(s.serve().URL + "/")
	b.Until(`rows.size === 1000`)
	b.Until(`document.querySelectorAll('.row.trouble, .row.watch, .row.calm').length > 10`)
	b.Until(`performance.getEntriesByName('first-contentful-paint').length`)
	paint := b.Eval(`performance.getEntriesByName('first-contentful-paint')[0].startTime.toFixed(0)`)
	weight := b.Eval(`performance.getEntriesByType('resource').filter(e => !e.name.includes('events')).reduce((n, e) => ` +
		`n + e.transferSize, performance.getEntriesByType('navigation')[0].transferSize)`)
	b.Eval(`window.longest = 0; window.frames2 = []; window.tasks = [];
		new PerformanceObserver(l => tasks.push(...l.getEntries().map(e => e.duration))).observe({entryTypes: ['longtask']});
		{ let last = performance.now();
		  const f = now => { frames2.push(now - last); last = now; requestAnimationFrame(f) };
		  requestAnimationFrame(f) }; 0`)
	b.Until(`frames2.length > 60 * 6`)
	b.Eval(`scrollTo(0, 20000)`)
	b.Until(`frames2.length > 60 * 10`)
	b.Picture("thousand")
	frames := b.Eval(`{ const f = frames2.slice().sort((a, b) => a - b); 'median ' + f[f.length >> 1].toFixed(1) + ' ` +
		`ms, p99 ' + f[f.length * .99 | 0].toFixed(1) + ' ms, longest ' + f[f.length - 1].toFixed(1) + ' ms' }`)
	tasks := b.Eval(`tasks.length + ' long tasks, longest ' + Math.max(0, ...tasks).toFixed(0) + ' ms'`)
	t.Logf("first paint %s ms, %s bytes; frames of 1,000 guards that all change: %s; %s", paint, weight, frames, tasks)
	if n, err := strconv.Atoi(weight); err != nil || n > 200<<10 || n < 10<<10 {
		t.Errorf("the page weighs %s bytes", weight)
	}
	if b.Eval(`document.querySelectorAll('.row .spark path[d]').length > 20 && document.querySelectorAll('.row .spark `+
		`path[d]').length < 3000`) != "true" {
		t.Error("lines are drawn that nobody sees, or none")
	}
	b.Quiet()
}

// TestOfAThousandRowsThoseNearWhatIsInSightAreMade: a page of them all costs seconds, and each of them a little in
// every frame.
func TestOfAThousandRowsThoseNearWhatIsInSightAreMade(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := newStage(t, abateadmin.Config{})
	for i := range 1000 {
		s.guard(fmt.Sprintf("service-%03d", i), abate.DefaultPolicy())
	}
	b := chromium.Start(t)
	b.Open(s.serve().URL + "/")
	is := func(what, expression, want string) {
		t.Helper()
		if got := b.Eval(expression); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	few := func(when string) {
		t.Helper()
		is(when+", the page is small", `document.querySelectorAll('.row').length <= 70 && `+
			`document.querySelectorAll('*').length < 2500`, "true")
	}
	frame := func() { t.Helper(); b.Eval(`new Promise(done => requestAnimationFrame(() => setTimeout(done)))`) }
	for _, width := range []int{390, 1440} {
		b.Size(width, false)
		b.Until(`rows.size === 1000 && document.querySelector('.row') && listed[0].nodes`)
		few(strconv.Itoa(width))
		is("the list is as high as all rows", `document.getElementById('rows').offsetHeight === 1000 * `+
			`document.querySelector('.row').offsetHeight`, "true")
		b.Eval(`scrollTo(0, 1e6)`)
		b.Until(`rows.get('guard/service-999').nodes?.row.getBoundingClientRect().bottom <= innerHeight`)
		few("at the end")
		is("the last row", `document.getElementById('rows').lastChild.querySelector('.cell').textContent`, "closed")
		b.Eval(`scrollTo(0, 0)`)
	}
	is("its size is told", `document.getElementById('table').getAttribute('aria-rowcount')`, "1001")

	frame()
	b.Press("j")
	for i := range 40 { // Tab leads on beyond what was made at first
		is("with the focus", `document.activeElement.closest('.row')?.dataset.key`, fmt.Sprintf("guard/service-%03d", i))
		is("its place", `document.activeElement.closest('.row')?.getAttribute('aria-rowindex')`, strconv.Itoa(i+2))
		b.Press("Tab")
		frame()
	}
	few("after many tabs")
	b.Eval(`scrollTo(0, 1e6)`)
	b.Until(`rows.get('guard/service-999').nodes`)
	is("far away, the focus stays", `document.activeElement.closest('.row')?.dataset.key`, "guard/service-040")
	b.Press("j")
	is("a key goes on from there", `document.activeElement.closest('.row')?.dataset.key`, "guard/service-041")
	b.Eval(`scrollTo(0, 1e6)`)
	b.Until(`rows.get('guard/service-999').nodes`)
	b.Press("Tab", "Tab", "Tab")
	is("Tab, too", `document.activeElement.closest('.row')?.dataset.key`, "guard/service-044")
	b.Press("k", "k", "k")
	b.Until(`(at => at.top >= 0 && at.bottom <= innerHeight)(document.activeElement.getBoundingClientRect())`)
	for _, width := range []int{1440, 390} { // beside the list, and in its place
		b.Size(width, false)
		b.Press("Enter")
		b.Shows("Disable breaker")
		b.Press("Escape")
		is("closed, the focus is back", `document.activeElement.closest('.row')?.dataset.key`, "guard/service-041")
	}
	b.Press("/")
	b.Type("service-77")
	b.Until(`document.querySelectorAll('.row').length === 10 && document.activeElement.id === 'find'`)
	b.Quiet()
}

func TestAFrameTouchesOnlyRowsInWhichSomethingHappens(t *testing.T) {
	if !inBrowser() {
		return
	}
	s := newStage(t, abateadmin.Config{})
	for i := range 1000 {
		s.guard(fmt.Sprintf("service-%03d", i), abate.DefaultPolicy())
	}
	b := chromium.Start(t)
	b.Size(1440, false)
	b.Open(s.serve().URL + "/")
	b.Until(`rows.size === 1000 && document.querySelector('.row')`)
	b.Eval(`document.getElementById('sort').value = 'name'; arrange()`) // so that none moves
	b.Eval(`window.touched = new Set(); new MutationObserver(all => { for (const m of all) {
			const e = m.target instanceof Element ? m.target : m.target.parentElement;
			touched.add(e.closest('.row')?.dataset.key || e.id) } })
		.observe(document.getElementById('rows'),
			{subtree: true, childList: true, attributes: true, characterData: true}); 0`)
	s.calls("service-000", core.Now(), 20, 0, 0)
	s.calls("service-500", core.Now(), 20, 0, 0)
	b.Until(`rows.get('guard/service-500').data.calls && touched.size > 0`)
	b.Eval(`new Promise(done => requestAnimationFrame(() => setTimeout(done)))`)
	if all := b.Eval(`[...touched].join()`); all != "guard/service-000" {
		t.Errorf("of two rows in which something happened one is in sight; touched were %s", all)
	}
	// One that has gone does not come back because somebody scrolls before the next frame.
	if n := b.Eval(`takeRows([], [{name: 'service-000'}]); show(); arrange(); ` +
		`String(document.querySelectorAll('[data-key="guard/service-000"]').length)`); n != "0" {
		t.Errorf("a guard that has gone has %s rows", n)
	}
	// A tab in the background has no frames: what comes meanwhile is painted once.
	if n := b.Eval(
		`{ let n = 0; const real = requestAnimationFrame; window.requestAnimationFrame = () => ++n; painting = 0;
		for (let i = 0; i < 5; i++) paintSoon(); window.requestAnimationFrame = real; paint(); String(n) }`); n != "1" {
		t.Errorf("the page is painted %s times after five events", n)
	}
	b.Quiet()
}
