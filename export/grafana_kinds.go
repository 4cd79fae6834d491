package export

// What Grafana's panels want to know, by kind.

type curveStyle struct {
	DrawStyle         string     `json:"drawStyle"`
	FillOpacity       int        `json:"fillOpacity"`
	LineInterpolation string     `json:"lineInterpolation"`
	LineWidth         int        `json:"lineWidth"`
	ShowPoints        string     `json:"showPoints"`
	SpanNulls         bool       `json:"spanNulls"`
	Stacking          stackStyle `json:"stacking"`
	ThresholdsStyle   modeOnly   `json:"thresholdsStyle"`
}

type stackStyle struct {
	Group string `json:"group"`
	Mode  string `json:"mode"`
}

type modeOnly struct {
	Mode string `json:"mode"`
}

type timelineStyle struct {
	FillOpacity int `json:"fillOpacity"`
	LineWidth   int `json:"lineWidth"`
}

type curveOptions struct {
	Legend  legendOptions  `json:"legend"`
	Tooltip tooltipOptions `json:"tooltip"`
}

type legendOptions struct {
	Calcs       []string `json:"calcs"`
	DisplayMode string   `json:"displayMode"`
	Placement   string   `json:"placement"`
	ShowLegend  bool     `json:"showLegend"`
}

type tooltipOptions struct {
	Mode string `json:"mode"`
	Sort string `json:"sort"`
}

type tileOptions struct {
	ColorMode     string        `json:"colorMode"`
	GraphMode     string        `json:"graphMode"`
	JustifyMode   string        `json:"justifyMode"`
	Orientation   string        `json:"orientation"`
	ReduceOptions reduceOptions `json:"reduceOptions"`
	TextMode      string        `json:"textMode"`
}

type reduceOptions struct {
	Calcs  []string `json:"calcs"`
	Fields string   `json:"fields"`
	Values bool     `json:"values"`
}

type timelineOptions struct {
	AlignValue  string         `json:"alignValue"`
	Legend      legendOptions  `json:"legend"`
	MergeValues bool           `json:"mergeValues"`
	RowHeight   float64        `json:"rowHeight"`
	ShowValue   string         `json:"showValue"`
	Tooltip     tooltipOptions `json:"tooltip"`
}

type heatOptions struct {
	Calculate    bool        `json:"calculate"`
	CellGap      int         `json:"cellGap"`
	Color        heatColor   `json:"color"`
	FilterValues heatFilter  `json:"filterValues"`
	Legend       heatLegend  `json:"legend"`
	RowsFrame    heatRows    `json:"rowsFrame"`
	Tooltip      heatTooltip `json:"tooltip"`
	YAxis        heatAxis    `json:"yAxis"`
}

type heatColor struct {
	Exponent float64 `json:"exponent"`
	Fill     string  `json:"fill"`
	Mode     string  `json:"mode"`
	Reverse  bool    `json:"reverse"`
	Scale    string  `json:"scale"`
	Scheme   string  `json:"scheme"`
	Steps    int     `json:"steps"`
}

type heatFilter struct {
	LE float64 `json:"le"`
}

type heatLegend struct {
	Show bool `json:"show"`
}

type heatRows struct {
	Layout string `json:"layout"`
}

type heatTooltip struct {
	Mode       string `json:"mode"`
	YHistogram bool   `json:"yHistogram"`
}

type heatAxis struct {
	AxisPlacement string `json:"axisPlacement"`
	Reverse       bool   `json:"reverse"`
	Unit          string `json:"unit"`
}

// custom is how the kind of panel draws a series.
func (p *panel) custom() any {
	switch p.kind {
	case curves:
		s := curveStyle{DrawStyle: "line", LineInterpolation: "linear", LineWidth: 1, ShowPoints: "never",
			Stacking: stackStyle{"A", "none"}, ThresholdsStyle: modeOnly{"off"}}
		if p.stack {
			s.FillOpacity, s.Stacking.Mode = 40, "normal"
		}
		if p.bound.set() {
			s.ThresholdsStyle.Mode = "dashed"
		}
		return s
	case timeline:
		return timelineStyle{FillOpacity: 80}
	}
	return nil
}

// options is how the kind of panel looks.
func (p *panel) options() any {
	list := legendOptions{Calcs: []string{}, DisplayMode: "list", Placement: "bottom", ShowLegend: true}
	switch p.kind {
	case curves:
		list.Calcs, list.DisplayMode = []string{"lastNotNull", "max"}, "table"
		return curveOptions{list, tooltipOptions{"multi", "desc"}}
	case tile:
		return tileOptions{ColorMode: "background", GraphMode: "area", JustifyMode: "auto", Orientation: "auto",
			ReduceOptions: reduceOptions{Calcs: []string{"lastNotNull"}}, TextMode: "value"}
	case timeline:
		return timelineOptions{"left", list, true, 0.9, "auto", tooltipOptions{"single", "none"}}
	case heat:
		return heatOptions{
			CellGap: 1,
			Color: heatColor{
				Exponent: 0.5, Fill: "dark-orange", Mode: "scheme", Scale: "exponential", Scheme: "Oranges", Steps: 64,
			},
			FilterValues: heatFilter{1e-9},
			Legend:       heatLegend{true},
			RowsFrame:    heatRows{"auto"},
			Tooltip:      heatTooltip{Mode: "single"},
			YAxis:        heatAxis{AxisPlacement: "left", Unit: p.unit},
		}
	}
	return nil
}
