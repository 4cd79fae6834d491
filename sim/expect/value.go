package expect

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bounds of a value.
const (
	largest     = 1e12
	longestTime = 168 * time.Hour
	mostDigits  = 15 // what a float64 keeps of any decimal number
)

// piece is a word of the text and its offset.
type piece struct {
	at   int
	text string
}

// words takes apart what stands behind the comparison.
func (p *parser) words(at int) []piece {
	var list []piece
	rest := p.text[at:]
	for _, word := range strings.Fields(rest) {
		i := strings.Index(rest, word)
		list = append(list, piece{at + i, word})
		at, rest = at+i+len(word), rest[i+len(word):]
	}
	return list
}

// tail reads the value and the share of runs, from offset at.
func (p *parser) tail(at int, comparison bool) {
	if i := strings.IndexAny(p.text[at:], comparisons); i >= 0 {
		p.fail(at+i, "there is a second comparison", "write two expectations, one per line")
		return
	}
	words := p.words(at)
	if len(words) == 0 || words[0].text == "in" {
		p.fail(at, "there is no value", p.wants())
		if len(words) > 0 {
			p.quantifier(words)
		}
		return
	}
	value, rest := words[0], words[1:]
	if len(rest) > 0 && kindOf(value.text+rest[0].text) >= 0 { // 10 ms, 95 %, 100 /s
		p.fail(value.at, "there is a space in the value", "write "+value.text+rest[0].text)
		rest = rest[1:]
	} else {
		p.value(value, comparison)
	}
	if len(rest) > 0 {
		p.quantifier(rest)
	}
}

// value reads the value, and refuses one of which the comparison is always or never true.
func (p *parser) value(w piece, comparison bool) {
	var problem, fix string
	p.e.Value, problem, fix = readValue(w.text, p.m)
	switch op, m := p.e.Op, p.m; {
	case m == nil && measure(w.text) != nil: // turned round, which has been said
	case problem != "":
		if fix == "" {
			fix = p.wants()
		}
		p.fail(w.at, problem, fix)
	case m == nil || !comparison:
	case m.Kind == Share && p.e.Value > 1:
		p.fail(w.at, quote(w.text)+" is more than the whole", "a share is 0% to 100%")
	case op == Below && p.e.Value == 0, op == Above && m.Kind == Share && p.e.Value == 1:
		p.fail(w.at, m.Name+" is never "+op.String()+" "+w.text, "write another value, or turn the comparison round")
	case op == AtLeast && p.e.Value == 0, op == AtMost && m.Kind == Share && p.e.Value == 1:
		p.fail(w.at, m.Name+" is always "+op.String()+" "+w.text, "write another value, or turn the comparison round")
	}
}

// wants says what value belongs to the measure.
func (p *parser) wants() string {
	if p.m == nil {
		return example
	}
	return "write a " + p.m.Kind.String() + ", for example " + p.m.Example
}

var forms = [...]*regexp.Regexp{
	Number:   regexp.MustCompile(`^[-+]?[0-9.,]*[0-9]$`),
	Count:    nil, // written like a number
	Share:    regexp.MustCompile(`^[-+]?[0-9.,]*[0-9]%$`),
	Duration: regexp.MustCompile(`^[-+]?([0-9.,]*[0-9](ns|us|µs|μs|ms|s|m|h))+$`),
	Rate:     regexp.MustCompile(`^[-+]?[0-9.,]*[0-9]/s$`),
}

// kindOf returns the kind of value that a text is by its form, or -1 if it is none.
func kindOf(text string) int {
	for kind, form := range forms {
		if form != nil && form.MatchString(text) {
			return kind
		}
	}
	return -1
}

// readValue reads a value of the measure's kind; any kind if the measure is nil. An empty fix stands for the
// measure's own example.
func readValue(text string, m *Measure) (value float64, problem, fix string) {
	found := kindOf(text)
	wanted := Kind(max(found, 0))
	if m != nil {
		wanted = m.Kind
	}
	switch {
	case found < 0:
		return unreadable(text, wanted)
	case wanted == Count && found == int(Number):
	case found != int(wanted):
		return 0, quote(text) + " is a " + Kind(found).String() + ", but " + m.Name + " is a " + wanted.String(),
			convert(text, Kind(found), wanted)
	}
	switch wanted {
	case Share:
		return readNumber(strings.TrimSuffix(text, "%"), "e-2")
	case Rate:
		return readNumber(strings.TrimSuffix(text, "/s"), "")
	case Duration:
		return readDuration(text)
	case Count:
		value, problem, fix = readNumber(text, "")
		if problem == "" && value != math.Trunc(value) {
			return 0, quote(text) + " is not a whole number", ""
		}
		return value, problem, fix
	}
	return readNumber(text, "")
}

// unreadable says what may have been meant by a word that is no value.
func unreadable(text string, wanted Kind) (value float64, problem, fix string) {
	problem = quote(text) + " is not a value"
	number, unit := text, ""
	if i := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != ',' }); i > 0 {
		number, unit = text[:i], strings.ToLower(text[i:])
	}
	switch word := strings.ToLower(text); {
	case word == "never" || word == "inf" || word == "infinity" || word == "∞":
		fix = "a run that never recovers has an infinite recovery, so write recovery > 60s, or collapse > 90%"
	case wanted == Rate && number != text && (strings.HasPrefix(unit, "/") || unit == "rps" || unit == "qps"):
		fix = "rates are per second: write " + number + "/s for that"
	case wanted == Number && number != text && (unit == "x" || unit == "×"):
		fix = "write " + number
	case wanted == Duration && unit == "d":
		fix = "the longest unit is h: write 24h for a day"
	case wanted == Duration && number != text:
		fix = "units are ns, us, ms, s, m and h"
	}
	return 0, problem, fix
}

// convert says how a value of the wrong kind may have been meant.
func convert(text string, found, wanted Kind) (fix string) {
	if found != Number {
		return ""
	}
	switch v, problem, _ := readNumber(text, ""); {
	case problem != "":
	case wanted == Share && v > 0 && v <= 1 && strings.Contains(text, "."):
		return "write " + percentDigits(v) + "%"
	case wanted == Share && v <= 100:
		return "write " + text + "%"
	case wanted == Rate:
		return "write " + text + "/s"
	case wanted == Duration:
		return "write " + text + "s for seconds or " + text + "ms for milliseconds"
	}
	return ""
}

var (
	numberForm = regexp.MustCompile(`^([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?$`)
	commaForm  = regexp.MustCompile(`^[0-9]+,[0-9]+$`)
)

// readNumber reads a decimal number, perhaps with commas between the thousands; exponent is put behind its digits, so
// that 99.9% becomes the float64 next to 0.999.
func readNumber(text, exponent string) (value float64, problem, fix string) {
	digits := strings.ReplaceAll(text, ",", "")
	significant := strings.Trim(strings.Replace(digits, ".", "", 1), "0")
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, quote(text) + " is negative", "nothing that is measured here is below 0"
	case commaForm.MatchString(text) && !numberForm.MatchString(text):
		return 0, quote(text) + " is not a number", "the comma stands between thousands, as in 1,000; write " +
			strings.Replace(text, ",", ".", 1) + " for a fraction"
	case !numberForm.MatchString(text):
		return 0, quote(text) + " is not a number", "write digits, perhaps with a point, as in 0.5 or 1,000"
	case len(significant) > mostDigits:
		return 0, quote(text) + " has more than " + strconv.Itoa(mostDigits) + " digits", "write a rounder number"
	}
	value, err := strconv.ParseFloat(digits+exponent, 64)
	if err != nil || value > largest {
		return 0, quote(text) + " is out of range", "allowed: 0 to 1,000,000,000,000"
	}
	return value, "", ""
}

// readDuration returns seconds.
func readDuration(text string) (seconds float64, problem, fix string) {
	d, err := time.ParseDuration(text)
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, quote(text) + " is negative", "nothing that is measured here is below 0"
	case strings.Contains(text, ","):
		return 0, quote(text) + " is not a duration", "durations have no commas: write 1.5s or 1000ms"
	case err != nil && strings.Count(text, ".") > 1:
		return 0, quote(text) + " is not a duration", ""
	case err != nil || d > longestTime:
		return 0, quote(text) + " is out of range", "allowed: 0s to 168h"
	}
	return d.Seconds(), "", ""
}

// percentDigits writes a share in percent without its sign. It moves the decimal point instead of multiplying, so that
// 0.07 is 7 and not 7.000000000000001.
func percentDigits(share float64) string {
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(share, 'e', -1, 64), "e")
	power, _ := strconv.Atoi(exponent)
	percent, _ := strconv.ParseFloat(digits+"e"+strconv.Itoa(power+2), 64)
	return strconv.FormatFloat(percent, 'f', -1, 64)
}

// formatValue writes a value so that readValue reads the same.
func formatValue(kind Kind, value float64) string {
	switch kind {
	case Share:
		return percentDigits(value) + "%"
	case Duration:
		return time.Duration(math.Round(value * float64(time.Second))).String()
	case Rate:
		return strconv.FormatFloat(value, 'f', -1, 64) + "/s"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}
