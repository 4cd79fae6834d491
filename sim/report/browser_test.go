package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/sim"
)

// browser is a headless Chromium that reaches nothing but files.
type browser struct {
	program string
	dir     string
}

// open puts a page and the probe into a folder.
func open(t *testing.T, r *sim.Result) *browser {
	t.Helper()
	b := &browser{program: needs.Program(t, "chromium", "chromium-browser", "google-chrome"), dir: t.TempDir()}
	probe, err := os.ReadFile("testdata/probe.html")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{"report.html": []byte(write(t, r)), "probe.html": probe} {
		if err := os.WriteFile(filepath.Join(b.dir, name), body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// run starts the browser on a file of the folder, and fails the test on any message on its console.
func (b *browser) run(t *testing.T, page string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	flags = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--proxy-server=127.0.0.1:9", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--user-data-dir=" + filepath.Join(b.dir, "profile"), "--allow-file-access-from-files", "--virtual-time-budget=5000",
		"--enable-logging=stderr", "--v=0",
	}, flags...)
	command := exec.CommandContext(ctx, b.program,
		append(flags, "file://"+filepath.ToSlash(filepath.Join(b.dir, page)))...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", b.program, err, log.String())
	}
	if messages := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(log.String(), -1); messages != nil {
		t.Errorf("%s: on the console: %s", page, strings.Join(messages, "\n"))
	}
	return out.String()
}

// findings are what testdata/probe.html reports.
type findings struct {
	Problems, Clipped, Overlaps, Values, Ticks []string
	View, Time, Background                     string
	PageWidth, FrameWidth                      int
	Plots, Cursors, Zoomed                     int
	Cards, Sparks                              []int // how far down each ends, in pixels
	Dark, Moved, Reset, KeyZoom                bool
}

func (b *browser) probe(t *testing.T, width int, flags ...string) findings {
	t.Helper()
	dom := b.run(t, "probe.html?width="+strconv.Itoa(width), append(flags, "--dump-dom", "--window-size=1400,1400")...)
	text := regexp.MustCompile(`(?s)<pre id="found">(.*?)</pre>`).FindStringSubmatch(dom)
	if text == nil {
		t.Fatalf("the probe reports nothing: %.500s", dom)
	}
	var f findings
	if err := json.Unmarshal([]byte(html.UnescapeString(text[1])), &f); err != nil {
		t.Fatalf("%v in %q", err, text[1])
	}
	if len(f.Problems) > 0 {
		t.Errorf("width %d: %s", width, strings.Join(f.Problems, "\n"))
	}
	return f
}

func TestPageInABrowser(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	r := study(recovers, wavers)
	b := open(t, r)
	for _, width := range []int{1280, 768, 390, 320} {
		f := b.probe(t, width)
		if f.FrameWidth != width || f.PageWidth > width {
			t.Errorf("at %d px the page is %d px wide", width, f.PageWidth)
		}
		if len(f.Overlaps)+len(f.Clipped) > 0 {
			t.Errorf("at %d px: labels cover each other %q, are cut off %q", width, f.Overlaps, f.Clipped)
		}
		if f.View != "v2" || f.Plots < 6 || f.Cursors != f.Plots {
			t.Errorf("at %d px: the cursor shows in %d of %d charts of %s", width, f.Cursors, f.Plots, f.View)
		}
		if f.Zoomed != f.Plots || !f.Reset || !f.Moved || !f.KeyZoom {
			t.Errorf("at %d px: dragging zooms %d of %d charts; keys: move %v, zoom %v, reset %v", width, f.Zoomed, f.Plots,
				f.Moved, f.KeyZoom, f.Reset)
		}
	}
}

// Six variants have cards like two, each with its curves above its numbers, and no reader has to scroll for them.
func TestTheCardsOfSixVariantsFitOnOneScreen(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	f := open(t, study(collapses, recovers, wavers, recovers, wavers, recovers)).probe(t, 1280)
	if len(f.Cards) != 6 || len(f.Sparks) != 6 {
		t.Fatalf("%d cards, %d of them with curves", len(f.Cards), len(f.Sparks))
	}
	for i, end := range f.Cards {
		if end > 800 || f.Sparks[i] > end-100 {
			t.Errorf("card %d ends at %d px, its curves at %d px", i+1, end, f.Sparks[i])
		}
	}
}

func TestCursorShowsTheValues(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	r := study(wavers)
	run := &r.Variants[0].Run
	const bin = 150 // of 300: the cursor is put into the middle; the values are multiples of the axis' step
	run.Offered[bin], run.Goodput[bin], run.Services[2].Attempts[bin] = 1233, 567, 4002
	run.Services[2].Amplification[bin], run.P99[bin], r.Variants[0].Fan.Low[bin] = 2, 0.1, 0.25
	f := open(t, r).probe(t, 1280)
	shown := plain(strings.Join(f.Values, "\n"))
	for _, want := range []string{"attempts4,002/s", "capacity1,200/s", "goodput567/s", "offered1,233/s", "payment-db2 ×",
		"p99100 ms", "worst 5 %25 %", "timeout, payment-service2 s"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the cursor shows %q, want %q in it", shown, want)
		}
	}
	if got := plain(f.Time); got != fmt.Sprintf("at %v s", bin*run.BinSeconds) {
		t.Errorf("the cursor stands %q", got)
	}
	if first, last := plain(f.Ticks[0]), plain(f.Ticks[len(f.Ticks)-1]); first != "45 s" || last != "90 s" {
		t.Errorf("dragging from a quarter to half of 180 s shows %q to %q", first, last)
	}
}

func TestPageFollowsTheReadersTheme(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	b := open(t, study(recovers))
	light, dark := b.probe(t, 1280), b.probe(t, 1280, "--blink-settings=preferredColorScheme=0")
	if light.Dark || !dark.Dark || light.Background != "rgb(255, 255, 255)" || dark.Background != "rgb(19, 22, 25)" {
		t.Errorf("light: %v, %s; dark: %v, %s", light.Dark, light.Background, dark.Dark, dark.Background)
	}
}

func TestPageIsDrawnWithoutScripts(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	b := open(t, study(collapses, recovers))
	page := filepath.Join(b.dir, "report.html")
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	with := inked(t, b)
	if err := os.WriteFile(page, scriptElement.ReplaceAll(body, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	without := inked(t, b)
	if with < 0.01 || with > 0.3 || without < with*0.95 {
		t.Errorf("with its script %.3f of the picture is inked, without %.3f", with, without)
	}
}

// inked returns the share of a picture of the page that is not almost white.
func inked(t *testing.T, b *browser) float64 {
	t.Helper()
	const width, height = 1000, 3000
	shot := filepath.Join(t.TempDir(), "shot.png")
	b.run(t, "report.html", fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+shot)
	body, err := os.ReadFile(shot)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for y := range height {
		for x := range width {
			if r, g, b, _ := img.At(x, y).RGBA(); r < 0x9000 || g < 0x9000 || b < 0x9000 {
				n++
			}
		}
	}
	return float64(n) / (width * height)
}

func TestHostileTextRunsNothingInABrowser(t *testing.T) {
	if testing.Short() {
		return // a browser is slow
	}
	r := study(collapses)
	hostile := `</script><script>console.error(1)</script><img src=x onerror="console.error(2)"><svg ` +
		`onload="console.error(3)">`
	r.Name, r.About, r.Variants[0].Name, r.Variants[0].Policy, r.Faults[0].Text = hostile, hostile, hostile,
		hostile, hostile
	r.Variants[0].Run.Services[2].Name = hostile
	b := open(t, r)
	for _, width := range []int{1280, 390} {
		if f := b.probe(t, width); f.PageWidth > width {
			t.Errorf("long names make the page %d px wide at %d px", f.PageWidth, width)
		}
	}
}
