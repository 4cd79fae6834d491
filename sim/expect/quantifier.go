package expect

import (
	"strconv"
	"strings"
)

// quantifier reads "in 99% of runs".
func (p *parser) quantifier(words []piece) {
	const fix = "after the value may stand only how many of the runs, for example in 99% of runs"
	percent, rest := "", words
	if words[0].text == "in" {
		rest = words[1:]
	}
	if len(rest) > 0 {
		percent = rest[0].text
	}
	share, problem, how := 0.0, "", ""
	if kindOf(percent) == int(Share) {
		share, problem, how = readNumber(strings.TrimSuffix(percent, "%"), "e-2")
	}
	switch {
	case problem != "":
		p.fail(rest[0].at, problem, how)
	case words[0].text != "in" || len(words) != 4 || words[2].text != "of" || words[3].text != "runs" ||
		kindOf(percent) != int(Share):
		text := p.text[words[0].at:]
		p.fail(words[0].at, quote(strings.TrimSpace(text))+" is not expected here", fix)
	case p.m != nil && p.m.Name == "collapse":
		p.fail(words[0].at, "collapse is itself a share of runs", "leave out "+quote("in "+percent+" of runs"))
	case share <= 0 || share > 1:
		p.fail(rest[0].at, quote(percent)+" of runs is out of range", "allowed: above 0% and below 100%")
	default:
		p.e.Share = share
	}
}

// runs refuses what no reasonable number of runs can show.
func (p *parser) runs() {
	if len(p.errs) > 0 {
		return
	}
	if p.e.ofRuns() {
		p.e.Share = 0
	}
	if RunsNeeded(p.e) > 0 {
		return
	}
	at := strings.LastIndex(p.text, "%")
	at = strings.LastIndexAny(p.text[:max(at, 0)], " <>=") + 1
	p.fail(at, "not even "+strconv.Itoa(MaxRuns)+" runs could show this",
		"write a share that is further from all or none, for example 99.9% instead of 100% of runs, 0.1% instead of 0%")
}
