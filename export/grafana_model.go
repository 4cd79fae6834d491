package export

// The dashboard as Grafana's JSON has it: as much of the model as we use, in the version of schemaVersion.
// deploy/grafana holds what comes out against a schema.

const (
	// schemaVersion is Grafana 10's; later ones migrate it by themselves.
	schemaVersion = 39
	// source is the data source that the viewer has chosen.
	source = "${datasource}"
)

type board struct {
	Annotations          boardAnnotations `json:"annotations"`
	Description          string           `json:"description"`
	Editable             bool             `json:"editable"`
	FiscalYearStartMonth int              `json:"fiscalYearStartMonth"`
	GraphTooltip         int              `json:"graphTooltip"` // 1: one cross-hair over all panels
	ID                   *int             `json:"id"`           // given by the Grafana that takes it
	Links                []boardLink      `json:"links"`
	Panels               []boardPanel     `json:"panels"`
	Refresh              string           `json:"refresh"`
	SchemaVersion        int              `json:"schemaVersion"`
	Tags                 []string         `json:"tags"`
	Templating           boardVariables   `json:"templating"`
	Time                 boardTime        `json:"time"`
	Timepicker           struct{}         `json:"timepicker"`
	Timezone             string           `json:"timezone"`
	Title                string           `json:"title"`
	UID                  string           `json:"uid"`
	Version              int              `json:"version"`
	WeekStart            string           `json:"weekStart"`
}

type boardTime struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type boardLink struct {
	AsDropdown  bool     `json:"asDropdown"`
	Icon        string   `json:"icon"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	Tags        []string `json:"tags"`
	TargetBlank bool     `json:"targetBlank"`
	Title       string   `json:"title"`
	Tooltip     string   `json:"tooltip"`
	Type        string   `json:"type"`
	URL         string   `json:"url"`
}

type panelLink struct {
	TargetBlank bool   `json:"targetBlank"`
	Title       string `json:"title"`
	URL         string `json:"url"`
}

type boardSource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type boardAnnotations struct {
	List []boardAnnotation `json:"list"`
}

// boardAnnotation is Grafana's own mark, of alerts and of what people note, or a query whose results are marked.
type boardAnnotation struct {
	BuiltIn     int         `json:"builtIn,omitempty"`
	Datasource  boardSource `json:"datasource"`
	Enable      bool        `json:"enable"`
	Expr        string      `json:"expr,omitempty"`
	Hide        bool        `json:"hide"`
	IconColor   string      `json:"iconColor"`
	Name        string      `json:"name"`
	Step        string      `json:"step,omitempty"`
	TextFormat  string      `json:"textFormat,omitempty"`
	TitleFormat string      `json:"titleFormat,omitempty"`
	Type        string      `json:"type,omitempty"`
}

type boardVariables struct {
	List []boardVariable `json:"list"`
}

// boardVariable is a choice of the viewer's.
type boardVariable struct {
	AllValue    string       `json:"allValue,omitempty"`
	Current     struct{}     `json:"current"`
	Datasource  *boardSource `json:"datasource,omitempty"`
	Definition  string       `json:"definition,omitempty"`
	Description string       `json:"description"`
	Hide        int          `json:"hide"`
	IncludeAll  bool         `json:"includeAll"`
	Label       string       `json:"label"`
	Multi       bool         `json:"multi"`
	Name        string       `json:"name"`
	Options     []struct{}   `json:"options"`
	Query       any          `json:"query"`
	Refresh     int          `json:"refresh"` // 1 when the page opens, 2 when the time changes
	Regex       string       `json:"regex"`
	SkipURLSync bool         `json:"skipUrlSync"`
	Sort        int          `json:"sort"`
	Type        string       `json:"type"`
}

// boardVariableQuery asks Prometheus for the choices.
type boardVariableQuery struct {
	Query string `json:"query"`
	RefID string `json:"refId"`
}

type place struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// boardPanel is a panel, or the heading of a row, which alone has the last two fields.
type boardPanel struct {
	Datasource  *boardSource  `json:"datasource,omitempty"`
	Description string        `json:"description,omitempty"`
	FieldConfig *fieldConfig  `json:"fieldConfig,omitempty"`
	Place       place         `json:"gridPos"`
	ID          int           `json:"id"`
	Links       []panelLink   `json:"links,omitempty"`
	Options     any           `json:"options,omitempty"`
	Targets     []boardTarget `json:"targets,omitempty"`
	Title       string        `json:"title"`
	Type        string        `json:"type"`
	Collapsed   *bool         `json:"collapsed,omitempty"`
	Folded      *[]boardPanel `json:"panels,omitempty"`
}

type boardTarget struct {
	Datasource   boardSource `json:"datasource"`
	EditorMode   string      `json:"editorMode"`
	Expr         string      `json:"expr"`
	Format       string      `json:"format"`
	Instant      bool        `json:"instant"`
	LegendFormat string      `json:"legendFormat"`
	Range        bool        `json:"range"`
	RefID        string      `json:"refId"`
}

type fieldConfig struct {
	Defaults  fieldDefaults   `json:"defaults"`
	Overrides []fieldOverride `json:"overrides"`
}

type fieldDefaults struct {
	Color      fieldColor      `json:"color"`
	Custom     any             `json:"custom,omitempty"`
	Decimals   *int            `json:"decimals,omitempty"`
	Mappings   []fieldMapping  `json:"mappings"`
	Max        *float64        `json:"max,omitempty"`
	Min        *float64        `json:"min,omitempty"`
	NoValue    string          `json:"noValue,omitempty"`
	Thresholds fieldThresholds `json:"thresholds"`
	Unit       string          `json:"unit"`
}

type fieldColor struct {
	FixedColor string `json:"fixedColor,omitempty"`
	Mode       string `json:"mode"`
}

type fieldThresholds struct {
	Mode  string      `json:"mode"`
	Steps []fieldStep `json:"steps"`
}

// fieldStep is the colour from a value on; the first has none.
type fieldStep struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type fieldMapping struct {
	Options map[string]fieldText `json:"options"`
	Type    string               `json:"type"`
}

type fieldText struct {
	Color string `json:"color"`
	Index int    `json:"index"`
	Text  string `json:"text"`
}

type fieldOverride struct {
	Matcher    fieldMatcher    `json:"matcher"`
	Properties []fieldProperty `json:"properties"`
}

type fieldMatcher struct {
	ID      string `json:"id"`
	Options any    `json:"options"`
}

type fieldProperty struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// fieldNames is what the matcher byNames takes.
type fieldNames struct {
	Mode  string   `json:"mode"`
	Names []string `json:"names"`
}
