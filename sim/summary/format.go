package summary

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/figures"
)

// nothing stands for a number that is not there.
const nothing = figures.Nothing

// percent writes a share. What is neither none nor all never reads as if it were.
func percent(share float64) string {
	switch text := figures.Decimals(share*100, 1); {
	case !figures.Finite(share):
		return nothing
	case text == "0" && share > 0:
		return "< 0.1 %"
	case text == "100" && share < 1:
		return "> 99.9 %"
	default:
		return text + " %"
	}
}

// interval writes a share and where it lies: "12.5 % (10.1–14.9 %)".
func interval(s sim.Share) string {
	if !figures.Finite(s.Low) || !figures.Finite(s.High) {
		return percent(s.Share)
	}
	return percent(s.Share) + " (" + figures.Decimals(s.Low*100, 1) + "–" + figures.Decimals(s.High*100, 1) + " %)"
}

// seconds writes a length of time: "0.4 ms", "51 ms", "12.3 s", "1,200 s".
func seconds(s float64) string {
	switch size := math.Abs(s); {
	case !figures.Finite(s):
		return nothing
	case size >= 99.95:
		return figures.Thousands(s) + " s"
	case size >= 0.9995 || s == 0:
		return figures.Decimals(s, 1) + " s"
	case size >= 0.00995:
		return figures.Decimals(s*1e3, 0) + " ms"
	case size >= 0.00005:
		return figures.Decimals(s*1e3, 1) + " ms"
	default:
		return figures.Decimals(s*1e6, 1) + " µs"
	}
}

// number writes a number of no unit.
func number(v float64) string {
	if !figures.Finite(v) || math.Abs(v) >= 99.5 {
		return figures.Thousands(v)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// perSecond writes a rate.
func perSecond(v float64) string {
	if figures.Finite(v) && math.Abs(v) < 99.5 {
		return figures.Decimals(v, 2) + "/s"
	}
	return figures.Thousands(v) + "/s"
}

// quantity writes a number in one of the units of sim.Measure; never says what to write if it was never reached.
func quantity(v *float64, unit, never string) string {
	if v == nil || !figures.Finite(*v) {
		return never
	}
	switch unit {
	case "s":
		return seconds(*v)
	case "share":
		return percent(*v)
	case "1/s":
		return perSecond(*v)
	case "count":
		return figures.Thousands(*v)
	}
	return number(*v)
}

// unitOf returns the unit of what an expectation measures.
func unitOf(text string) string {
	name := measureOf(text)
	for _, m := range expect.Measures() {
		if m.Name == name {
			return [...]string{expect.Number: "", expect.Count: "count", expect.Share: "share", expect.Duration: "s",
				expect.Rate: "1/s"}[m.Kind]
		}
	}
	return ""
}

// measureOf is the name of a measure without what it is about: goodput of "goodput(after) > 95%".
func measureOf(text string) string {
	if end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		return text[:end]
	}
	return text
}

// neverWord is what a measure reads that was never reached.
func neverWord(measure string) string {
	if measure == "recovery" || measure == "drained" {
		return "never"
	}
	return nothing
}

// clean makes text of a user's harmless on one line of a terminal: no control characters, no escape sequences, no marks
// that turn the direction of writing.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// nameOf is what to call a scenario.
func nameOf(r *sim.Result) string {
	for _, name := range []string{r.Name, r.File} {
		if name = strings.TrimSpace(clean(name)); name != "" {
			return name
		}
	}
	return "scenario"
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return figures.Thousands(float64(n)) + " " + what
}

// pad and padLeft count characters, not bytes.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0)) + s
}

// cut shortens text to a width.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}

// wrap breaks text into lines of at most width characters. The first begins with prefix, the others with as much space.
// A word that is too long is cut.
func wrap(prefix, text string, width int) string {
	var out strings.Builder
	out.WriteString(prefix)
	indent := utf8.RuneCountInString(prefix)
	column := indent
	for i, word := range words(text) {
		word = cut(word, width-indent)
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String()
}

// words splits text where a line may end: not between a number and its unit.
func words(text string) []string {
	var list []string
	for _, word := range strings.Fields(text) {
		switch strings.TrimRight(word, ".,;:)") {
		case "s", "ms", "µs", "%":
			if last := len(list) - 1; last >= 0 {
				list[last] += " " + word
				continue
			}
		}
		list = append(list, word)
	}
	return list
}
