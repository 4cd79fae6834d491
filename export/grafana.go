package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"regexp"

	"github.com/abate-go/abate/policyfile"
)

// GrafanaOptions says what Grafana cannot know from a policy file. The zero value is fine.
type GrafanaOptions struct {
	// Title is what the dashboard is called. Empty means "Abate".
	Title string
	// UID is what Grafana knows the dashboard by, at most 40 letters, digits, - and _: one that is imported replaces
	// the one with the same. Empty means "abate".
	UID string
	// RunbookURL is the folder of the runbook pages that panels point to: an absolute http or https URL. Empty means
	// Runbooks.
	RunbookURL string
}

// Grafana writes a dashboard for Grafana 10 and later, as a file to import or to provision. It shows the metrics of the
// proxy and of adapter/abateprom, raw: it needs no recording rules. The thresholds come from the policies of file, for
// each service its own; with nil they are those of abate.DefaultPolicy. They are those of the alerts of
// PrometheusRules, where there is one. The same input gives the same bytes. The error joins all that is wrong with the
// options; a policy that was made by hand and has thresholds that are no numbers is an error too.
func Grafana(file *policyfile.File, o GrafanaOptions) ([]byte, error) {
	runbooks, err := o.check()
	if err != nil {
		return nil, err
	}
	b := newBoard(o, runbooks)
	b.Panels = arrange(boardRows(), newBoundaries(file), runbooks)
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false) // queries are for people too
	to.SetIndent("", "  ")
	if err := to.Encode(b); err != nil {
		return nil, fmt.Errorf("export: the dashboard of %s: %w (a threshold of a policy is no number: check the policies "+
			"with Validate)", o.Title, err)
	}
	return out.Bytes(), nil
}

// uidForm is Grafana's rule for what stands in the address of a dashboard.
var uidForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)

// check fills in the defaults and returns the folder of the runbooks.
func (o *GrafanaOptions) check() (runbooks *url.URL, err error) {
	o.Title = cmp.Or(o.Title, "Abate")
	o.UID = cmp.Or(o.UID, "abate")
	var wrong []error
	if !uidForm.MatchString(o.UID) {
		wrong = append(wrong,
			fmt.Errorf("uid: %q is not one that Grafana takes: at most 40 letters, digits, - and _; for example abate", o.UID))
	}
	runbooks, err = RunbookFolder(o.RunbookURL)
	return runbooks, errors.Join(append(wrong, err)...)
}

// boardRows is the dashboard from top to bottom: what happens, why, and then each part by itself.
func boardRows() []boardRow {
	return []boardRow{stormRow(), whyRow(), callersRow(), limitsRow(), arrivalsRow(), clientsRow(), connectionsRow(),
		messagesRow(),
		sharedRow(), handRow()}
}

// boardRow is a heading and what stands under it.
type boardRow struct {
	title  string
	folded bool // shown when somebody opens it: not everybody has what it is about
	panels []panel
}

// columns is how wide Grafana's grid is.
const columns = 24

// arrange gives every panel its place: from left to right, and on when the line is full. The panels of a line have one
// height.
func arrange(rows []boardRow, b *boundaries, runbooks *url.URL) []boardPanel {
	var all []boardPanel
	y := 0
	for _, r := range rows {
		head := boardPanel{ID: panelID(r.title, ""), Type: "row", Title: r.title, Place: place{H: 1, W: columns, Y: y},
			Collapsed: &r.folded, Folded: &[]boardPanel{}}
		y++
		var under []boardPanel
		x, line := 0, y
		for i := range r.panels {
			p := &r.panels[i]
			if x+p.wide > columns {
				x, line = 0, line+under[len(under)-1].Place.H
			}
			made := p.build(panelID(r.title, p.title), b)
			if p.runbook != "" {
				made.Links = []panelLink{{true, "Runbook: " + p.runbook, runbooks.JoinPath(p.runbook + ".md").String()}}
			}
			made.Place = place{H: p.high, W: p.wide, X: x, Y: line}
			x += p.wide
			under = append(under, made)
		}
		if r.folded { // what is folded takes no room, and is laid out as if it stood right under its heading
			head.Folded = &under
			all = append(all, head)
			continue
		}
		y = line + under[len(under)-1].Place.H
		all = append(append(all, head), under...)
	}
	return all
}

// panelID is a number that stays when other panels come and go: links and pictures name panels by it.
func panelID(row, title string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(row + "\x00" + title))
	return int(h.Sum32()>>8) + 1
}
