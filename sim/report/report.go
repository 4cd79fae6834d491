package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

//go:embed page.tmpl
var pageText string

//go:embed style.css
var styleText string

//go:embed script.js
var scriptText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	// a long name may break after its bracket
	"breakable": func(name string) []string { return strings.SplitAfter(name, "(") },
}).Parse(pageText))

// page is everything on it.
type page struct {
	Name, About string
	Badge       badge
	Sentence    string
	Meta        []string // quiet facts below the title
	Alerts      []string // what changes how everything below is to be read
	Cards       []card
	Overview    *overview // instead of cards
	Sparks      bool      // cards have small drawings
	Table       *table
	Views       []*view
	Faults      []string
	Assumptions []sim.Assumption
	Written     []sim.Assumption
	NotModelled []string
	Version     int

	Style  template.CSS
	Script template.JS
	Policy string // Content-Security-Policy
}

// view is one variant with all its charts.
type view struct {
	ID       string
	Name     string
	Badge    badge
	About    string
	Open     bool
	Sections []section
	Advice   []advice
	Searched *searched // where nothing helps
	Policy   string
	Effort   string
	Seconds  string // of the run, for the script

	stage   *stage
	variant *sim.VariantResult
	run     *sim.Series
	focus   int // the service the story is about, -1 without
}

// searched is what a search for advice came to that found none.
type searched struct{ Text, YAML string }

// section is one step of the story.
type section struct {
	ID, Title string
	Notes     []string
	Class     string // "half" takes half of the width
	Missing   string // why there is nothing
	Legend    string // "heat" or "phase": a fixed legend
	Plots     []*chart
	Facts     []fact
	Map       *cliffMap
	Lanes     []lane
	LaneTicks []tick
}

// without leaves a section out, saying why.
func (s section) without(why string) section {
	s.Missing = why
	return s
}

// advice is a change of the policy that changes the verdict.
type advice struct {
	Change, Small, YAML string
	Badge               badge
}

// sizeLimit is how many bytes a page should have at most, so that it can be attached to anything.
const sizeLimit = 300_000

// detail says how finely a page is drawn.
type detail struct {
	join     int // bins of a curve that are drawn as one, their mean
	services int // lines in one chart, at most
	paths    int // runs in a phase portrait
	fine     int // services whose arrivals are drawn
	bars     int // of arrivals, 10 ms each
	columns  int // of a heat map
	spans    int // lines of a waterfall
}

// details are tried in this order until the page is small enough.
var details = []detail{
	{join: 1, services: 6, paths: 10, fine: 3, bars: 400, columns: 120, spans: 40},
	{join: 1, services: 6, paths: 5, fine: 2, bars: 400, columns: 100, spans: 30},
	{join: 2, services: 6, paths: 5, fine: 1, bars: 400, columns: 75, spans: 24},
	{join: 3, services: 4, paths: 4, fine: 1, bars: 300, columns: 60, spans: 16},
	{join: 6, services: 3, paths: 3, fine: 1, bars: 200, columns: 40, spans: 12},
	{join: 12, services: 2, paths: 2, fine: 1, bars: 150, columns: 20, spans: 6},
	{join: 20, services: 2, paths: 1, fine: 1, bars: 100, columns: 12, spans: 6},
}

// Write writes a result as one HTML page, in UTF-8, of at most 300,000 bytes: with many variants or services the curves
// become coarser, which the page then says. (Only texts can make it larger.) It returns an error when there is no
// result or w fails.
func Write(w io.Writer, r *sim.Result) error {
	if r == nil {
		return errors.New("report: there is no result to write")
	}
	hash := sha256.Sum256([]byte(scriptText))
	var page bytes.Buffer
	for _, d := range details {
		p := newPage(r, d)
		p.Style, p.Script = template.CSS(styleText), template.JS(scriptText)
		p.Policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
			base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'"
		page.Reset()
		if err := pageTemplate.Execute(&page, p); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if page.Len() <= sizeLimit {
			break
		}
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// newPage builds the page, without the parts that are always the same.
func newPage(r *sim.Result, d detail) *page {
	p := &page{Name: r.Name, About: r.About, Badge: badgeOf(r.Shown()), Sentence: sentence(r), Version: r.Version,
		NotModelled: r.NotModelled}
	if p.Name == "" {
		p.Name = "Scenario without a name"
	}
	p.Meta, p.Alerts = meta(r), alerts(r)
	for _, f := range r.Faults {
		p.Faults = append(p.Faults, f.Text+": from "+seconds(f.From)+" to "+seconds(f.To))
	}
	for _, a := range r.Assumptions {
		if a.Default {
			p.Assumptions = append(p.Assumptions, a)
		} else {
			p.Written = append(p.Written, a)
		}
	}
	open := toOpen(r)
	for i := range r.Variants {
		v := newView(r, i, d)
		v.Open = i == open
		p.Views = append(p.Views, v)
		p.Cards = append(p.Cards, v.newCard())
	}
	p.sparks()
	if len(p.Cards) > mostCards {
		p.Overview = newOverview(p.Cards)
	}
	p.Table = newTable(r)
	return p
}

// toOpen returns the variant to show at first: the first that fails, else the first.
func toOpen(r *sim.Result) int {
	for _, verdict := range []string{"FAIL", "UNDECIDED"} {
		for i := range r.Variants {
			if r.Variants[i].Verdict == verdict {
				return i
			}
		}
	}
	return 0
}

// meta are the quiet facts below the title.
func meta(r *sim.Result) []string {
	var out []string
	if r.File != "" {
		out = append(out, r.File)
	}
	low, high, events := math.MaxInt, 0, int64(0)
	for i := range r.Variants {
		low, high = min(low, r.Variants[i].Runs), max(high, r.Variants[i].Runs)
		events += r.Variants[i].Events
	}
	switch {
	case len(r.Variants) == 0:
	case low == high:
		out = append(out, plural(high, "run", "runs")+" per variant")
	default:
		out = append(out, figures.Thousands(float64(low))+" to "+plural(high, "run", "runs")+" per variant")
	}
	out = append(out, "seeds from "+strconv.FormatUint(r.Seed, 10), seconds(r.Seconds)+" each, in virtual time")
	if events > 0 {
		out = append(out, figures.Thousands(float64(events))+" events")
	}
	return out
}

// alerts are what a reader has to know before the numbers.
func alerts(r *sim.Result) []string {
	var out []string
	if r.Interrupted {
		out = append(out, "Stopped before the end: the numbers are those of the runs that were finished.")
	}
	if r.Scale > 1 {
		out = append(out, "Scale 1 : "+figures.Thousands(float64(r.Scale))+". The runs had that part of the rates, "+
			"instances and capacities, which keeps every ratio and every waiting time and makes chance larger. Rates are "+
			"shown in full size.")
	}
	for i := range r.Variants {
		for _, n := range r.Variants[i].Notes {
			out = append(out, r.Variants[i].Name+": "+n)
		}
	}
	return out
}

// newView builds everything about one variant.
func newView(r *sim.Result, i int, d detail) *view {
	variant := &r.Variants[i]
	st := &stage{detail: d, result: r, to: r.Seconds}
	if !figures.Finite(st.to) || st.to <= 0 {
		st.to = float64(len(variant.Run.Offered)) * variant.Run.BinSeconds
	}
	if st.to = math.Max(1e-3, math.Min(st.to, 1e9)); !figures.Finite(st.to) {
		st.to = 1
	}
	v := &view{
		ID: "v" + strconv.Itoa(i+1), Name: variant.Name, About: variant.About, Badge: badgeOf(variant.Shown()),
		Policy: strings.TrimRight(variant.Policy, "\n"), Seconds: figures.Decimals(st.to, 6),
		stage: st, variant: variant, run: &variant.Run, focus: focus(&variant.Run),
	}
	v.Effort = plural(variant.Runs, "run", "runs") + ", " + figures.Thousands(float64(variant.Events)) + " events, " +
		figures.Thousands(float64(variant.Attempts)) +
		" attempts. The charts of one run show seed " + strconv.FormatUint(variant.Run.Seed, 10) + "."
	if d.join > 1 {
		v.Effort += " To keep this file small, each point of a curve is the mean of " + strconv.Itoa(d.join) + " bins."
	}
	for _, a := range variant.Advice {
		v.Advice = append(v.Advice, advice{Change: a.Change, YAML: strings.TrimRight(a.YAML, "\n"), Badge: badgeOf(a.Verdict),
			Small: "every expectation holds in at least " + percent(a.Held) + " of " + plural(a.Runs, "run", "runs")})
	}
	if s := variant.AdviceSearch; s != nil && len(v.Advice) == 0 {
		v.Searched = &searched{Text: s.Text}
		if s.Closest != nil {
			v.Searched.YAML = strings.TrimRight(s.Closest.YAML, "\n")
		}
	}
	v.Sections = []section{
		v.load(), v.amplification(), v.waits(), v.states(), v.latency(), v.arrivals(),
		v.fan(), v.phase(), v.recovery(), v.cliff(), v.waterfall(),
	}
	for i := range v.Sections {
		v.Sections[i].ID = v.ID + "-" + v.Sections[i].ID
	}
	return v
}
