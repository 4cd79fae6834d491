package sim

import "github.com/abate-go/abate/sim/expect"

// AsExpected is how people are told of a variant that passes because it collapses, as its expectations want: no PASS
// stands over a storm.
const AsExpected = "collapses, as expected"

// Shown returns the verdict on the variant for people: AsExpected, or else Verdict.
func (v *VariantResult) Shown() string {
	if v.Verdict != Pass {
		return v.Verdict
	}
	for i := range v.Expectations {
		x, err := expect.Parse(v.Expectations[i].Text)
		if err == nil && wantsCollapse([]expect.Expectation{x}) {
			return AsExpected
		}
	}
	return v.Verdict
}

// Shown returns the verdict on all variants for people: AsExpected if all that have expectations collapse, or else
// Verdict.
func (r *Result) Shown() string {
	if r.Verdict != Pass {
		return r.Verdict
	}
	for i := range r.Variants {
		if shown := r.Variants[i].Shown(); shown != AsExpected && shown != None {
			return r.Verdict
		}
	}
	return AsExpected
}
