package audit

import (
	"encoding/json"
	"io"
	"math"
)

// jsonVersion is the version of the JSON form. Fields may be added to a version, never renamed or removed.
const jsonVersion = 1

type jsonResult struct {
	Version  int           `json:"version"`
	Worst    *jsonWorst    `json:"worst"`
	Findings []jsonFinding `json:"findings"`
	Verdicts []jsonVerdict `json:"verdicts,omitempty"`
	Changes  []jsonChange  `json:"changes,omitempty"`
	Services int           `json:"services"`
	Calls    int           `json:"calls"`
	Files    []jsonFile    `json:"files"`
	Stale    []string      `json:"staleFingerprints,omitempty"`
}

type jsonWorst struct {
	Text     string    `json:"text"`
	Root     string    `json:"root"`
	Service  string    `json:"service"`
	Outcome  string    `json:"outcome"`
	Attempts *float64  `json:"attempts"` // null: nothing bounds them
	Proved   *float64  `json:"provedAttempts"`
	Known    bool      `json:"known"`
	Path     []jsonHop `json:"path"`
}

type jsonHop struct {
	From   string      `json:"from"`
	To     string      `json:"to"`
	Calls  float64     `json:"callsPerRequest"`
	Layers []jsonLayer `json:"layers"`
}

type jsonLayer struct {
	Kind    string   `json:"kind"`
	Product string   `json:"product"`
	Name    string   `json:"name"`
	Tries   *float64 `json:"tries"` // null: nothing bounds them
	Source  string   `json:"source"`
}

type jsonFinding struct {
	Rule        string        `json:"rule"`
	Severity    string        `json:"severity"`
	At          string        `json:"at"`
	Subject     string        `json:"subject"`
	Message     string        `json:"message"`
	Fix         string        `json:"fix,omitempty"`
	Assumes     []string      `json:"assumes,omitempty"`
	Related     []jsonRelated `json:"related,omitempty"`
	Fingerprint string        `json:"fingerprint"`
	State       string        `json:"state"` // new, known (in the baseline) or suppressed
	Reason      string        `json:"reason,omitempty"`
}

type jsonRelated struct {
	At   string `json:"at"`
	Text string `json:"text"`
}

type jsonVerdict struct {
	Service string      `json:"service"`
	Outcome string      `json:"outcome"`
	Before  *jsonOutage `json:"before,omitempty"`
	After   *jsonOutage `json:"after,omitempty"`
	Assumed []string    `json:"assumed,omitempty"`
	Failed  string      `json:"failed,omitempty"`
}

type jsonOutage struct {
	Runs          int     `json:"runs"`
	Collapse      float64 `json:"collapse"`
	CollapseLow   float64 `json:"collapseLow"`
	CollapseHigh  float64 `json:"collapseHigh"`
	Recovery      float64 `json:"recoverySeconds"` // -1: no run recovered
	Amplification float64 `json:"amplification"`
}

type jsonChange struct {
	At  string `json:"at"`
	Old string `json:"old"`
	New string `json:"new"`
	Why string `json:"why"`
}

type jsonFile struct {
	Name    string   `json:"name"`
	Formats []string `json:"formats"`
}

// JSON writes everything as JSON.
func JSON(w io.Writer, r *Result) error {
	j := jsonResult{Version: jsonVersion, Worst: jsonPath(r.Worst), Findings: []jsonFinding{}, Files: []jsonFile{},
		Services: len(r.Form.Services), Calls: len(r.Form.Calls), Stale: r.Stale}
	for _, f := range r.Findings {
		j.Findings = append(j.Findings, jsonOf(f))
	}
	for _, v := range r.Verdicts {
		out := jsonVerdict{Service: v.Service, Outcome: v.Outcome.String(), Assumed: v.Assumed, Failed: v.Failed}
		if v.Failed == "" {
			out.Before, out.After = jsonOutageOf(&v.Before), jsonOutageOf(v.After)
		}
		j.Verdicts = append(j.Verdicts, out)
	}
	for _, e := range r.Changes {
		j.Changes = append(j.Changes, jsonChange{e.At.String(), e.Old, e.New, e.Why})
	}
	for _, s := range r.Files {
		j.Files = append(j.Files, jsonFile{s.Name, append([]string{}, s.Formats...)})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(j)
}

func jsonPath(w *Worst) *jsonWorst {
	if w == nil {
		return nil
	}
	j := &jsonWorst{Text: w.Headline(), Root: w.Root, Service: w.Service, Outcome: w.Outcome.String(),
		Attempts: finite(w.Most), Proved: finite(w.Proved), Known: w.Known, Path: []jsonHop{}}
	for _, h := range w.Hops {
		hop := jsonHop{From: h.Call.From, To: h.Call.To, Calls: h.Times, Layers: []jsonLayer{}}
		for _, f := range h.Factors {
			l := f.Layer
			hop.Layers = append(hop.Layers, jsonLayer{l.Kind.String(), l.Product, l.Name, finite(f.Times), triesSource(l)})
		}
		j.Path = append(j.Path, hop)
	}
	return j
}

func finite(f float64) *float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	return &f
}

func jsonOf(f Finding) jsonFinding {
	j := jsonFinding{Rule: f.Rule, Severity: level(f.Severity), At: f.At.String(), Subject: f.Subject, Message: f.Message,
		Fix: f.Fix, Assumes: f.Assumptions, Fingerprint: f.Fingerprint(), Reason: f.Reason,
		State: [...]string{New: "new", Known: "known", Suppressed: "suppressed"}[f.State]}
	for _, rel := range f.Related {
		j.Related = append(j.Related, jsonRelated{rel.At.String(), rel.Text})
	}
	return j
}

func jsonOutageOf(o *Outage) *jsonOutage {
	if o == nil {
		return nil
	}
	return &jsonOutage{o.Runs, o.Collapse.Share, o.Collapse.Low, o.Collapse.High, o.Recovery, o.Amplification}
}
