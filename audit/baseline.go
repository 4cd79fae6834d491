package audit

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/abate-go/abate/lint"
)

// Baseline is the findings that were there when somebody began to look. They do not fail an audit; new ones do.
type Baseline struct {
	Version      int      `json:"version"`
	Fingerprints []string `json:"fingerprints"`
}

// baselineVersion is the version of the file.
const baselineVersion = 1

// BaselineOf returns a baseline of all findings of a result that are not suppressed.
func BaselineOf(r *Result) Baseline {
	b := Baseline{Version: baselineVersion, Fingerprints: []string{}}
	for _, f := range r.Findings {
		if f.State != Suppressed {
			b.Fingerprints = append(b.Fingerprints, f.Fingerprints()...)
		}
	}
	slices.Sort(b.Fingerprints)
	b.Fingerprints = slices.Compact(b.Fingerprints)
	return b
}

// ParseBaseline reads a baseline file.
func ParseBaseline(file string, data []byte) (Baseline, error) {
	var b Baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("%s: no baseline: %w; write it anew with --write-baseline", file, err)
	}
	if b.Version != baselineVersion {
		return b, fmt.Errorf(
			"%s: a baseline of version %d; this program reads version %d; write it anew with --write-baseline",
			file, b.Version, baselineVersion)
	}
	slices.Sort(b.Fingerprints)
	return b, nil
}

// Has reports whether the baseline has a finding.
func (b Baseline) Has(fingerprint string) bool {
	_, found := slices.BinarySearch(b.Fingerprints, fingerprint)
	return found
}

// has reports whether the baseline has a finding, at each place that it names.
func (b Baseline) has(f lint.Finding) bool {
	return !slices.ContainsFunc(f.Fingerprints(), func(print string) bool { return !b.Has(print) })
}

// JSON returns the baseline as a file.
func (b Baseline) JSON() []byte {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		panic("audit: " + err.Error()) // a number and texts
	}
	return append(data, '\n')
}
