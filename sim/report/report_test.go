package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/report"
)

func write(t testing.TB, r *sim.Result) string {
	t.Helper()
	var page bytes.Buffer
	if err := report.Write(&page, r); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// node is an element of a page.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Nodes   []node     `xml:",any"`
	Text    string     `xml:",chardata"`
}

func (n *node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all returns the descendants that have a tag, and a class if one is given.
func (n *node) all(tag, class string) []*node {
	var out []*node
	for i := range n.Nodes {
		child := &n.Nodes[i]
		if child.XMLName.Local == tag && (class == "" || slices.Contains(strings.Fields(child.attr("class")), class)) {
			out = append(out, child)
		}
		out = append(out, child.all(tag, class)...)
	}
	return out
}

func (n *node) words() string {
	out := n.Text
	for i := range n.Nodes {
		out += " " + n.Nodes[i].words()
	}
	return strings.Join(strings.Fields(out), " ")
}

// byID returns the element with an id, nil when there is none.
func (n *node) byID(id string) *node {
	for i := range n.Nodes {
		if n.Nodes[i].attr("id") == id {
			return &n.Nodes[i]
		}
		if found := n.Nodes[i].byID(id); found != nil {
			return found
		}
	}
	return nil
}

var scriptElement = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// parse reads a page, which is well-formed XML but for its script.
func parse(t testing.TB, page string) *node {
	t.Helper()
	page = strings.TrimPrefix(strings.TrimSpace(page), "<!DOCTYPE html>")
	var root node
	if err := xml.Unmarshal([]byte(scriptElement.ReplaceAllString(page, "")), &root); err != nil {
		t.Fatalf("the page is not well-formed: %v", err)
	}
	return &root
}

func TestEveryChartIsDrawn(t *testing.T) {
	root := parse(t, write(t, study(wavers)))
	for id, want := range map[string]int{ // lines at least
		"load": 4, "amplification": 4, "wait": 4, "states": 3, "latency": 2, "arrivals": 1, "runs": 2, "phase": 10,
		"recovery": 1,
	} {
		section := root.byID("v1-" + id)
		if section == nil {
			t.Errorf("no section %s", id)
			continue
		}
		if got := len(section.all("path", "l")); got < want {
			t.Errorf("section %s has %d lines, want at least %d", id, got, want)
		}
	}
	if n := len(root.byID("v1-latency").all("path", "cell")); n < 3 {
		t.Errorf("the heat map has %d shades, want at least 3", n)
	}
	if n := len(root.byID("v1-arrivals").all("path", "bars")); n != 3 {
		t.Errorf("arrivals of %d services, want 3", n)
	}
	if cells := root.byID("v1-cliff").all("td", "here"); len(cells) != 1 ||
		!strings.Contains(cells[0].words(), "you are here") {
		t.Errorf("%d cells of the cliff map say where the scenario is, want 1", len(cells))
	}
	for _, row := range root.byID("v1-cliff").all("tbody", "")[0].all("tr", "") {
		for i, cell := range row.all("td", "") {
			if here := strings.Contains(cell.attr("class"), "here"); here !=
				(plain(row.all("th", "")[0].words()) == "30 s" && i == 3) {
				t.Errorf("cell %d of row %q: here is %v", i, row.words(), here)
			}
		}
	}
	if n := len(root.byID("v1-request").all("i", "attempt")); n != 4 {
		t.Errorf("%d attempts in the waterfall, want 4", n)
	}
	for _, id := range []string{"load", "amplification", "wait", "latency", "runs"} {
		if len(root.byID("v1-"+id).all("rect", "band")) != 1 {
			t.Errorf("section %s does not shade the fault", id)
		}
	}
}

func TestChartWithoutDataIsASentence(t *testing.T) {
	tests := []struct {
		section, want string
		empty         func(v *sim.VariantResult)
	}{
		{"load", "No request was offered.", func(v *sim.VariantResult) { v.Run = sim.Series{BinSeconds: 1} }},
		{"amplification", "No service was called.", func(v *sim.VariantResult) { v.Run.Services = nil }},
		{"wait", "No waiting time was measured.", func(v *sim.VariantResult) {
			for i := range v.Run.Services {
				v.Run.Services[i].Wait = slices.Repeat([]float64{-1}, bins)
			}
		}},
		{"wait", "longer than 1 ms", func(v *sim.VariantResult) {
			for i := range v.Run.Services {
				v.Run.Services[i].Wait = make([]float64, bins)
			}
		}},
		{"states", "were not recorded", func(v *sim.VariantResult) { v.Run.Detail = nil }},
		{"states", "No breaker opened", func(v *sim.VariantResult) { v.Run.Detail.States = v.Run.Detail.States[:1] }},
		{"latency", "No request was answered.", func(v *sim.VariantResult) {
			v.Run.P50, v.Run.P99, v.Run.Detail.Heat = nil, nil, make([][engine.HeatRows]uint32, bins)
		}},
		{"arrivals", "not recorded at 10 ms", func(v *sim.VariantResult) { v.Run.Detail = nil }},
		{"arrivals", "No attempt was made", func(v *sim.VariantResult) {
			v.Run.Detail.Fine.Services = [][]uint16{make([]uint16, 300)}
		}},
		{"runs", "no goodput", func(v *sim.VariantResult) { v.Fan = sim.Fan{} }},
		{"phase", "No run was kept", func(v *sim.VariantResult) { v.Paths = nil }},
		{"phase", "No queue ever held", func(v *sim.VariantResult) {
			for i := range v.Paths {
				v.Paths[i].Wait = make([]float64, bins)
			}
		}},
		{"recovery", "Not one of 400 runs recovered.", func(v *sim.VariantResult) { v.Recovery = nil }},
		{"cliff", "was not searched for", func(v *sim.VariantResult) { v.Margins, v.Map = nil, nil }},
		{"request", "No request was kept.", func(v *sim.VariantResult) { v.Run.Detail.Sample = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.section+": "+tt.want, func(t *testing.T) {
			r := study(wavers)
			tt.empty(&r.Variants[0])
			section := parse(t, write(t, r)).byID("v1-" + tt.section)
			if got := plain(section.words()); !strings.Contains(got, tt.want) {
				t.Errorf("the section says %q, want %q in it", got, tt.want)
			}
			if n := len(section.all("svg", "")) + len(section.all("table", "")); n != 0 {
				t.Errorf("and draws %d charts", n)
			}
		})
	}
}

// plain replaces the spaces that do not break.
func plain(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\u00a0", " "), "\u2060", "")
}

func TestFirstScreenAnswers(t *testing.T) {
	r := study(collapses, recovers, wavers)
	r.Scale, r.Interrupted = 50, true
	root := parse(t, write(t, r))
	top := root.all("header", "top")[0].words()
	for _, want := range []string{
		"FAIL", "“fixed delay” fails; “jitter alone” needs more runs to be decided; “guarded” holds every expectation.",
		"Scale 1 : 50", "Stopped before the end",
	} {
		if !strings.Contains(top, want) {
			t.Errorf("the head says %q, want %q in it", top, want)
		}
	}
	wants := [][]string{
		{"FAIL", "recovery < 10s in 99% of runs", "median never", "P(collapse) 100 %", "99.05–100 %", "Recovery never",
			"payment-db", "load only up to 1.75 ×", "retryBudget.ratio 0.1"},
		{"PASS", "held in 400 of 400 runs", "P(collapse) 0 %", "0–0.95 %", "load 1.75 ×", "trouble beyond 8 ×",
			"capacity 0.87 ×"},
		{"UNDECIDED", "needs 99 %", "P(collapse) 8.2 %", "5.9–11 %", "in 91.8 % of runs, p99 never"},
	}
	for i, card := range root.all("article", "card") {
		text := plain(card.words())
		for _, want := range wants[i] {
			if !strings.Contains(text, want) {
				t.Errorf("card %d says %q, want %q in it", i+1, text, want)
			}
		}
		if symbols := len(card.all("use", "")); symbols != 1+3 {
			t.Errorf("card %d has %d symbols, want one for the variant and one per expectation", i+1, symbols)
		}
	}
}

func TestBulkheadIsDrawnWhenCallsWait(t *testing.T) {
	r := study(wavers)
	r.Variants[0].Run.Detail.States[0].Bulkhead[100] = 3
	section := parse(t, write(t, r)).byID("v1-states")
	if text := section.words(); !strings.Contains(text, "checkout → gateway: bulkhead") ||
		strings.Contains(text, "gateway: breaker") {
		t.Errorf("the strips are %q", text)
	}
}

func TestPhasePortraitTellsTheWindowsApart(t *testing.T) {
	section := parse(t, write(t, study(wavers))).byID("v1-phase")
	for _, class := range []string{"before", "during", "after"} {
		if n := len(section.all("path", class)); n < 10 {
			t.Errorf("%d lines %s, want one per run", n, class)
		}
	}
	for _, tt := range []struct {
		kind kind
		want string
	}{{collapses, "All end down low"}, {recovers, "All come back"}} {
		if text := parse(t, write(t, study(tt.kind))).byID("v1-phase").words(); !strings.Contains(text, tt.want) {
			t.Errorf("the portrait says %q, want %q", text, tt.want)
		}
	}
	mixed := study(recovers)
	mixed.Variants[0].Paths = append(mixed.Variants[0].Paths[:5], study(collapses).Variants[0].Paths[:5]...)
	if text := parse(t, write(t, mixed)).byID("v1-phase").words(); !strings.Contains(text, "two states") {
		t.Errorf("runs that end high and low are called %q", text)
	}
}

func TestRecoveryCurveEndsAtTheShareThatRecovered(t *testing.T) {
	section := parse(t, write(t, study(wavers))).byID("v1-recovery")
	if text := plain(section.words()); !strings.Contains(text, "367 of 400 runs recovered, half of all within") ||
		strings.Contains(text, "99 % within") {
		t.Errorf("the section says %q", text)
	}
	line := follow(t, section.all("path", "l")[0].attr("d"), 1000, 1000)
	if got := line[len(line)-1]; math.Abs(got-367.0/400) > 0.001 {
		t.Errorf("the curve ends at %v, want %v", got, 367.0/400)
	}
	if line[0] != 0 {
		t.Errorf("the curve begins at %v", line[0])
	}
}

func TestWithoutFaultsThereIsNothingToRecoverFrom(t *testing.T) {
	r := study(recovers)
	r.Faults, r.TroubleFrom, r.TroubleTo = nil, seconds, seconds
	root := parse(t, write(t, r))
	for _, id := range []string{"v1-recovery", "v1-arrivals"} {
		if got := root.byID(id).words(); !strings.Contains(got, "Nothing goes wrong in this scenario.") {
			t.Errorf("%s says %q", id, got)
		}
	}
	if text := root.all("article", "card")[0].words(); strings.Contains(text, "Recovery") {
		t.Errorf("the card says %q", text)
	}
}

func TestArrivalsAreShownInFullSize(t *testing.T) {
	top := func(scale int) float64 {
		r := study(recovers)
		r.Scale = scale
		ticks := parse(t, write(t, r)).byID("v1-arrivals").all("div", "y")[0].all("span", "")
		v, err := strconv.ParseFloat(strings.ReplaceAll(ticks[len(ticks)-1].Text, ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if one, hundred := top(1), top(100); hundred != 100*one {
		t.Errorf("the axis goes to %v, at scale 1:100 to %v", one, hundred)
	}
}

func TestWaterfallMarksWhatFailed(t *testing.T) {
	for k, want := range map[kind]int{collapses: 4, recovers: 3} {
		attempts := parse(t, write(t, study(k))).byID("v1-request").all("i", "attempt")
		failed := 0
		for _, a := range attempts {
			if strings.Contains(a.attr("class"), "failed") {
				failed++
			}
		}
		if text := plain(parse(t, write(t, study(k))).byID("v1-request").words()); !strings.Contains(
			text, "from 35 s into the run on: 4 attempts, and an end after 7 s.") {
			t.Errorf("the section says %q", text)
		}
		if failed != want {
			t.Errorf("%d of %d attempts are marked, want %d", failed, len(attempts), want)
		}
	}
}

func TestCollapseThatWasExpectedIsSaid(t *testing.T) {
	r := study(collapses, recovers)
	storm := &r.Variants[0]
	storm.Verdict = "PASS"
	storm.Expectations = []sim.ExpectationResult{{Text: "collapse > 90%", Verdict: "PASS", Runs: 40, Held: 40}}
	page := parse(t, write(t, r))
	if text := page.all("p", "verdict")[0].words(); !strings.Contains(
		text, "“guarded” holds every expectation; “fixed delay” collapses, as it should.") {
		t.Errorf("the head says %q", text)
	}
	card := page.all("article", "card")[0]
	if text := card.all("span", "badge")[0].words(); !strings.Contains(text, "collapses, as expected") ||
		!strings.Contains(card.attr("class"), "storm") {
		t.Errorf("the card, of class %s, says %q", card.attr("class"), text)
	}
}

func TestMarginsAreFactorsOfWhatIsThere(t *testing.T) {
	tests := []struct {
		margin sim.Margin
		want   string
	}{
		{sim.Margin{Dimension: "load", Here: 100, Cliff: 180, Low: 170, High: 190, Stands: true}, "load 1.7 ×"},
		{sim.Margin{Dimension: "load", Here: 100, Low: 100, High: 1600, Beyond: true, Stands: true}, "load beyond 16 ×"},
		{sim.Margin{Dimension: "load", Here: 100, Cliff: 50, Low: 40, High: 60}, "load only up to 0.4 ×"},
		{sim.Margin{Dimension: "trouble", Here: 30, Low: 1.875, High: 30, Beyond: true}, "trouble not even at 0.062 ×"},
		{sim.Margin{Dimension: "capacity", Here: 1, Cliff: 0.6, Low: 0.5, High: 0.7, Stands: true}, "capacity 0.7 ×"},
		{sim.Margin{Dimension: "capacity", Here: 1, Low: 0.0625, High: 1, Beyond: true, Stands: true},
			"capacity below 0.062 ×"},
		{sim.Margin{Dimension: "capacity", Here: 1, Cliff: 1.5, Low: 1.4, High: 1.6}, "capacity needs 1.6 ×"},
		{sim.Margin{Dimension: "capacity", Here: 1, Low: 1, High: 16, Beyond: true}, "capacity not even at 16 ×"},
	}
	for _, tt := range tests {
		r := study(recovers)
		r.Variants[0].Margins = []sim.Margin{tt.margin}
		if text := plain(parse(t, write(t, r)).all("article", "card")[0].words()); !strings.Contains(
			text, "Margin "+tt.want) {
			t.Errorf("%+v: %q, want %q", tt.margin, text, tt.want)
		}
	}
}

func TestExpectationsOfSomeVariantsStandInTheirColumn(t *testing.T) {
	r := study(recovers, recovers, recovers, recovers, recovers, recovers, recovers)
	r.Variants[2].Expectations[1].Text = "queueWait(gateway) < 1s"
	table := parse(t, write(t, r)).all("table", "overview")[0]
	var rows []string
	for _, tr := range table.all("tr", "")[2:] { // after the names and the small drawings
		rows = append(rows, plain(tr.words()))
	}
	if !strings.HasPrefix(rows[0], "recovery < 10s") || !strings.HasPrefix(rows[1], "goodput(after) > 95%") ||
		!strings.HasPrefix(rows[2], "And of its own") ||
		strings.Count(rows[2], "payment-db) < 1.2") != 6 || strings.Count(rows[2], "gateway) < 1s") != 1 {
		t.Errorf("the rows are %q", rows[:3])
	}
}

func TestManyVariantsStandInOneTable(t *testing.T) {
	root := parse(t, write(t, study(collapses, recovers, wavers, recovers, collapses, wavers, recovers)))
	if n := len(root.all("article", "card")); n != 0 {
		t.Errorf("%d cards", n)
	}
	table := root.all("table", "overview")[0]
	if n := len(table.all("a", "")); n != 7 {
		t.Errorf("%d variants in the table, want 7", n)
	}
	if n := len(table.all("use", "")); n != 7+7*3 {
		t.Errorf("%d verdicts in the table, want one per variant and expectation", n)
	}
	if n := len(table.all("svg", "")) - len(table.all("use", "")); n != 7 {
		t.Errorf("%d small drawings, want 7", n)
	}
}

func TestFirstFailingVariantIsOpen(t *testing.T) {
	for _, tt := range []struct {
		kinds []kind
		want  string
	}{
		{[]kind{recovers, wavers, collapses, collapses}, "v3"},
		{[]kind{recovers, wavers}, "v2"},
		{[]kind{recovers, recovers}, "v1"},
	} {
		page := write(t, study(tt.kinds...))
		opened := regexp.MustCompile(`<details class="view" id="(v\d)"[^>]* open="open">`).FindAllStringSubmatch(page, -1)
		if len(opened) != 1 || opened[0][1] != tt.want {
			t.Errorf("open: %v, want %s", opened, tt.want)
		}
	}
}

func TestSameResultGivesTheSameBytes(t *testing.T) {
	want := write(t, study(collapses, recovers, wavers))
	for range 3 {
		if write(t, study(collapses, recovers, wavers)) != want {
			t.Fatal("the bytes differ")
		}
	}
}

func TestPageIsSmall(t *testing.T) {
	kinds := []kind{collapses, recovers, wavers, recovers, collapses}
	if n := len(write(t, study(kinds...))); n > report.SizeLimit {
		t.Errorf("5 variants take %d bytes, want at most %d", n, report.SizeLimit)
	}
	if n := len(write(t, study(recovers))); n > 110_000 {
		t.Errorf("1 variant takes %d bytes", n)
	}
}

func TestCurvesBecomeCoarserBeforeThePageBecomesLarge(t *testing.T) {
	r := study(slices.Repeat([]kind{collapses, recovers, wavers, wavers, collapses}, 2)...)
	for i := range r.Variants {
		run := &r.Variants[i].Run
		run.Services = append(run.Services, run.Services...)
		r.Variants[i].Name += strconv.Itoa(i)
	}
	page := write(t, r)
	if n := len(page); n > report.SizeLimit {
		t.Errorf("10 variants take %d bytes, want at most %d", n, report.SizeLimit)
	}
	if !strings.Contains(page, "each point of a curve is the mean of") {
		t.Error("the page does not say that its curves are coarser")
	}
}

func TestPageLoadsNothing(t *testing.T) {
	page := write(t, study(collapses, recovers))
	for _, pattern := range []string{`https?:`, `(?i)\burl\(`, `\bsrc\s*=`, `@import`, `<link`, `<img`, `<iframe`, `<form`,
		`<base`, `<object`, `\bon[a-z]+="`, `href="[^#]`, `\bfetch\(`, `XMLHttp`, `\beval\(`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page contains %q", found)
		}
	}
	script := scriptElement.FindAllStringSubmatch(page, -1)
	if len(script) != 1 || strings.Count(page, "<script") != 1 {
		t.Fatalf("%d scripts, want 1", strings.Count(page, "<script"))
	}
	if n := len(script[0][1]); n > 10<<10 {
		t.Errorf("the script has %d bytes, want at most 10 KiB", n)
	}
	hash := sha256.Sum256([]byte(script[0][1]))
	var policy string
	for _, meta := range parse(t, page).all("meta", "") {
		if meta.attr("http-equiv") == "Content-Security-Policy" {
			policy = meta.attr("content")
		}
	}
	want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if !strings.HasPrefix(policy, "default-src 'none';") || !strings.Contains(policy, want) ||
		strings.Contains(policy, "*") {
		t.Errorf("the policy is %q, want default-src 'none' and %q", policy, want)
	}
}

func TestDrawingsHaveWords(t *testing.T) {
	for i, svg := range parse(t, write(t, study(wavers))).all("svg", "") {
		if svg.attr("aria-hidden") == "true" {
			continue
		}
		desc := svg.all("desc", "")
		if svg.attr("role") != "img" || svg.attr("aria-label") == "" || len(desc) != 1 || len(svg.all("path", "l")) > 0 &&
			desc[0].words() == "" {
			t.Errorf("drawing %d has role %q, label %q and %d descriptions", i, svg.attr("role"),
				svg.attr("aria-label"), len(desc))
		}
	}
}

func TestIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(
		write(t, study(collapses, recovers, wavers, wavers)), -1) {
		if seen[id[1]] {
			t.Errorf("id %s appears twice", id[1])
		}
		seen[id[1]] = true
	}
}

// edit changes every string and number that can be reached from v, but not verdicts, which are words of ours.
func edit(v reflect.Value, text func(string) string, number func(float64) float64) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			edit(v.Elem(), text, number)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Verdict" {
				edit(v.Field(i), text, number)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			edit(v.Index(i), text, number)
		}
	case reflect.String:
		v.SetString(text(v.String()))
	case reflect.Float64, reflect.Float32:
		v.SetFloat(number(v.Float()))
	}
}

func same[T any](v T) T { return v }

func TestHostileTextIsText(t *testing.T) {
	for _, hostile := range []string{
		`</script><script>document.title = 1</script>`, `"><img src=x onerror=alert(1)>`, `' onclick='x`, `</style><b>`,
		`--><svg onload=x>`,
		`{{.Name}}`, `javascript:alert(1)`, `]]>&lt;&quot;`, "a\x00b", "\u202e", `</desc></svg>`, `%)]; x: expression(1)`,
	} {
		r := study(collapses, recovers)
		edit(reflect.ValueOf(r), func(s string) string { return hostile + s }, same[float64])
		page := write(t, r)
		root := parse(t, strings.ReplaceAll(page, "\x00", ""))
		if strings.Count(page, "<script") != 1 || strings.Count(page, "</script") != 1 ||
			strings.Count(page, "</style") != 1 {
			t.Errorf("%q ends a script or style", hostile)
		}
		if n := len(root.all("img", "")) + len(root.all("b", "x")); n > 0 {
			t.Errorf("%q becomes an element", hostile)
		}
		if strings.Contains(page, "onerror=alert(1)>") || regexp.MustCompile(`\son\w+=['"]`).MatchString(page) {
			t.Errorf("%q becomes an attribute", hostile)
		}
		if clean := strings.ReplaceAll(hostile, "\x00", ""); !strings.Contains(root.all("h1", "")[0].words(),
			strings.Fields(clean)[0]) && !strings.Contains(hostile, "\x00") {
			t.Errorf("%q is not shown: %q", hostile, root.all("h1", "")[0].words())
		}
	}
}

func TestNumbersThatAreNoneAreNeverShown(t *testing.T) {
	for _, bad := range []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, math.SmallestNonzeroFloat64, 0,
	} {
		for name, every := range map[string]int{"all": 1, "some": 3} {
			i := 0
			r := study(collapses, wavers)
			edit(reflect.ValueOf(r), same[string], func(v float64) float64 {
				if i++; i%every == 0 {
					return bad
				}
				return v
			})
			page := write(t, r)
			parse(t, page)
			if found := regexp.MustCompile(`NaN|[+-]?Inf\b|%!`).FindString(scriptElement.ReplaceAllString(page, "")); found !=
				"" {
				t.Errorf("%s numbers %v: the page says %q", name, bad, found)
			}
		}
	}
}

func TestAlmostEmptyResultsAreWritten(t *testing.T) {
	for name, r := range map[string]*sim.Result{
		"nothing":           {},
		"one empty variant": {Variants: make([]sim.VariantResult, 1)},
		"five of them":      {Variants: make([]sim.VariantResult, 5), Seconds: 10},
		"one bin": {Seconds: 1, Variants: []sim.VariantResult{
			{Runs: 1, Run: sim.Series{BinSeconds: 1, Offered: []float64{1}, Goodput: []float64{1}}},
		}},
		"services, no times": {
			Seconds: 1, Variants: []sim.VariantResult{
				{Run: sim.Series{Services: []sim.ServiceSeries{{Name: "a", Capacity: 1}}, Detail: &engine.Detail{
					Fine: engine.FineArrivals{Services: [][]uint16{nil, {1}}},
				}}},
			},
		},
	} {
		if page := write(t, r); len(parse(t, page).all("h1", "")) != 1 {
			t.Errorf("%s: no title", name)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestErrorsSayWhere(t *testing.T) {
	if err := report.Write(failing{}, study(recovers)); !errors.Is(err, io.ErrShortWrite) ||
		!strings.HasPrefix(err.Error(), "report: ") {
		t.Errorf("a failing writer gives %v", err)
	}
	if err := report.Write(io.Discard, nil); err == nil {
		t.Error("no result gives no error")
	}
}

// FuzzWrite writes results whose numbers and lengths are damaged at random.
func FuzzWrite(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, uint8(seed*60), "checkout <&\"'>")
	}
	f.Fuzz(func(t *testing.T, seed uint64, damage uint8, name string) {
		rng := rand.New(rand.NewPCG(seed, 2))
		values := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e-300, 1e300, 1, 59, 1e6}
		r := studyOf(20, kind(rng.IntN(3)), kind(rng.IntN(3)))
		edit(reflect.ValueOf(r), func(s string) string {
			if rng.IntN(4) == 0 {
				return name
			}
			return s
		}, func(v float64) float64 {
			if rng.IntN(256) < int(damage) {
				return values[rng.IntN(len(values))]
			}
			return v
		})
		cut(rng, reflect.ValueOf(r), damage)
		page := write(t, r)
		if regexp.MustCompile(`NaN|\bInf\b`).MatchString(
			strings.ReplaceAll(scriptElement.ReplaceAllString(page, ""), name, "")) {
			t.Error("the page shows a number that is none")
		}
		if strings.Count(page, "<script") != 1 {
			t.Error("a name became a script")
		}
	})
}

// cut shortens slices at random.
func cut(rng *rand.Rand, v reflect.Value, damage uint8) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			cut(rng, v.Elem(), damage)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			cut(rng, v.Field(i), damage)
		}
	case reflect.Slice:
		if v.Len() > 0 && rng.IntN(512) < int(damage) {
			v.Set(v.Slice(0, rng.IntN(v.Len())))
		}
		if k := v.Type().Elem().Kind(); k == reflect.Struct || k == reflect.Slice {
			for i := range v.Len() {
				cut(rng, v.Index(i), damage)
			}
		}
	}
}

// A search that found nothing is an answer, too.
func TestAnAdviceThatWasNotFoundIsShown(t *testing.T) {
	const nothing, closest = "tried 83 changes; none holds", "services: {payment-db: {maxRetries: 1}}"
	for _, variants := range []int{1, 6} {
		r := study(collapses)
		r.Variants[0].Advice = nil
		r.Variants[0].AdviceSearch = &sim.AdviceSearch{Tried: 83, Text: nothing, Closest: &sim.Advice{YAML: closest + "\n"}}
		for len(r.Variants) < variants {
			r.Variants = append(r.Variants, r.Variants[0])
		}
		page := parse(t, write(t, r))
		if text := page.words(); strings.Count(text, nothing) < 2*variants || !strings.Contains(text, closest) {
			t.Errorf("%d variants: a card and a section of each should say %q, one section %q:\n%s", variants, nothing, closest,
				text)
		}
	}
}
