package audit

import (
	"encoding/json"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// The parts of SARIF 2.1.0 (OASIS, March 2020) that an audit writes.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Columns string        `json:"columnKind"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Version        string      `json:"version,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Name    string       `json:"name"`
		Short   sarifText    `json:"shortDescription"`
		Full    sarifText    `json:"fullDescription"`
		Help    sarifText    `json:"help"`
		Default sarifDefault `json:"defaultConfiguration"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Baseline     string             `json:"baselineState,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

// fingerprintKey names the fingerprint in SARIF; its number changes when fingerprints are made in another way.
const fingerprintKey = "abateFinding/v1"

// SARIF writes the findings as SARIF 2.1.0, for code scanning. version is that of the program; it may be empty.
func SARIF(w io.Writer, r *Result, version string) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "abate audit", InformationURI: "https://github.com/abate-go/abate",
		Version: version, Rules: []sarifRule{}}}, Columns: "unicodeCodePoints", Results: []sarifResult{}}
	index := map[string]int{}
	for i, rule := range lint.Rules() {
		index[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: rule.ID, Name: rule.ID,
			Short: sarifText{rule.Title},
			Full:  sarifText{rule.Why}, Help: sarifText{rule.Why + "\n\n" + rule.Fix},
			Default: sarifDefault{level(rule.Severity)}})
	}
	for _, f := range r.Findings {
		run.Results = append(run.Results, sarifOf(f, index[f.Rule]))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{run}})
}

func sarifOf(f Finding, index int) sarifResult {
	s := sarifResult{RuleID: f.Rule, RuleIndex: index, Level: level(f.Severity), Message: sarifText{message(f)},
		Locations:    []sarifLocation{{Physical: physical(f.At)}},
		Fingerprints: map[string]string{fingerprintKey: f.Fingerprint()}}
	for i, rel := range f.Related {
		if p := physical(rel.At); p != nil {
			s.Related = append(s.Related, sarifLocation{ID: i + 1, Message: &sarifText{rel.Text}, Physical: p})
		}
	}
	switch f.State {
	case Known:
		s.Baseline = "unchanged"
	case Suppressed:
		s.Suppressions = []sarifSuppression{{"inSource", f.Reason}}
	}
	return s
}

// message is a finding in a few sentences: what, and what to do.
func message(f Finding) string {
	s := capital(strings.TrimSuffix(f.Message, ".")) + "."
	if f.Fix != "" {
		s += " Fix: " + strings.TrimSuffix(f.Fix, ".") + "."
	}
	for _, a := range f.Assumptions {
		s += " Assumes: " + a + "."
	}
	return s
}

func physical(at topology.Position) *sarifPhysical {
	if at.IsZero() {
		return nil
	}
	file := url.URL{Path: at.File}
	if path.IsAbs(at.File) {
		file.Scheme = "file" // code scanning finds such a file in the repository only if the URI is a whole one
	}
	p := &sarifPhysical{Artifact: sarifArtifact{file.String()}}
	if at.Line > 0 {
		p.Region = &sarifRegion{at.Line, at.Column}
	}
	return p
}

func level(s lint.Severity) string {
	switch s {
	case lint.Error:
		return "error"
	case lint.Warning:
		return "warning"
	}
	return "note"
}
