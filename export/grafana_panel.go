package export

import "fmt"

// panel is what we say of a panel; the rest is the same for all of its kind.
type panel struct {
	title string
	help  string // what it shows, and what to do about it
	// runbook is the alert that says the same.
	runbook string
	kind    panelKind
	wide    int // of 24
	high    int
	unit    string
	shows   []query
	bound   bound
	max     float64 // of the axis; 0: as it comes
	stack   bool
	exact   bool // two decimals: the difference between 1 and 1.1 matters
	words   []word
}

// query is one question to Prometheus and how its answers are called.
type query struct{ expr, legend string }

type panelKind string

const (
	tile     panelKind = "stat"
	curves   panelKind = "timeseries"
	timeline panelKind = "state-timeline"
	heat     panelKind = "heatmap"
)

// word is what a number means.
type word struct {
	value        int
	text, colour string
}

// The sizes there are.
const (
	tileWide, tileHigh   = 3, 4
	panelWide, panelHigh = 12, 8
	thirdWide            = 8
)

// meaning is the colour of a series by its name, the same in every panel.
var meaning = []struct{ name, colour string }{
	{"success", "green"}, {"failure", "red"}, {"overload", "orange"}, {"refused", "purple"}, {"ignored", "text"},
	{"handled", "green"}, {"forwarded", "orange"}, {"dead-lettered", "red"}, {"held", "purple"}, {"dropped", "dark-red"},
}

// build writes the panel out.
func (p *panel) build(id int, b *boundaries) boardPanel {
	made := boardPanel{
		Datasource:  &boardSource{"prometheus", source},
		Description: p.help,
		ID:          id,
		Options:     p.options(),
		Title:       p.title,
		Type:        string(p.kind),
		FieldConfig: &fieldConfig{Defaults: p.defaults(b), Overrides: []fieldOverride{}},
	}
	for i, q := range p.shows {
		format := "time_series"
		if p.kind == heat {
			format = "heatmap"
		}
		made.Targets = append(made.Targets,
			boardTarget{Datasource: boardSource{"prometheus", source}, EditorMode: "code", Expr: q.expr, Format: format,
				LegendFormat: q.legend, Range: true, RefID: string(rune('A' + i))})
	}
	made.FieldConfig.Overrides = append(made.FieldConfig.Overrides, p.colours()...)
	if p.bound.set() {
		made.FieldConfig.Overrides = append(made.FieldConfig.Overrides, b.overrides(p.bound)...)
	}
	return made
}

func (p *panel) defaults(b *boundaries) fieldDefaults {
	zero := 0.0
	d := fieldDefaults{Color: fieldColor{Mode: "palette-classic"}, Mappings: []fieldMapping{}, Min: &zero, NoValue: "–",
		Thresholds: limit{}.thresholds(), Unit: p.unit}
	if p.bound.set() {
		d.Thresholds = b.base(p.bound).thresholds()
	}
	if p.max > 0 {
		d.Max = &p.max
	}
	if p.exact {
		two := 2
		d.Decimals = &two
	}
	if len(p.words) > 0 {
		texts := make(map[string]fieldText, len(p.words))
		for i, w := range p.words {
			texts[fmt.Sprint(w.value)] = fieldText{Color: w.colour, Index: i, Text: w.text}
		}
		d.Mappings = append(d.Mappings, fieldMapping{Options: texts, Type: "value"})
	}
	switch p.kind {
	case tile, timeline:
		d.Color.Mode = "thresholds"
	case heat:
		d.Min = nil
	}
	d.Custom = p.custom()
	return d
}

// colours are overrides for the names among the series that mean the same everywhere.
func (p *panel) colours() []fieldOverride {
	var all []fieldOverride
	for _, q := range p.shows {
		if q.legend != "{{outcome}}" && q.legend != "{{class}}" {
			continue
		}
		for _, m := range meaning {
			all = append(all, fieldOverride{Matcher: fieldMatcher{"byName", m.name},
				Properties: []fieldProperty{{"color", fieldColor{FixedColor: m.colour, Mode: "fixed"}}}})
		}
	}
	return all
}
