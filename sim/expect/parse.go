package expect

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longestText = 300
	longestName = 100
	example     = "for example goodput(after) > 95% in 99% of runs"
)

// Parse reads one expectation. The error is of type [Errors] and lists everything that is wrong with the text.
func Parse(text string) (Expectation, error) {
	p := parser{text: text}
	if at, cut := cutByAComma(text); cut {
		p.fail(at, "a bracket has no partner", `is this a part of a YAML list in [ ], where a comma ends a member? Then `+
			`put the whole in quotes: ["latency(p99, after) < 800ms"]`)
		return Expectation{}, p.errs
	}
	p.read()
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b *Error) int { return a.Column - b.Column })
		return Expectation{}, p.errs
	}
	return p.e, nil
}

// cutByAComma reports whether text is what YAML leaves of an expectation with a comma in it and no quotes around it:
// its begin, up to the comma, or its rest.
func cutByAComma(text string) (at int, cut bool) {
	open, closed := strings.IndexByte(text, '('), strings.IndexByte(text, ')')
	if open >= 0 && closed < 0 && !strings.ContainsAny(text, comparisons) {
		return open, true
	}
	return closed, open < 0 && closed >= 0
}

type parser struct {
	text      string
	e         Expectation
	m         *Measure // nil when the text names none that exists
	subjectAt int      // byte offset of the subject
	errs      Errors
}

// fail notes a mistake at a byte of the text.
func (p *parser) fail(at int, problem, fix string) {
	column := utf8.RuneCountInString(p.text[:min(at, len(p.text))]) + 1
	p.errs = append(p.errs, &Error{Column: column, Problem: problem, fix: fix})
}

const comparisons = "<>=!≤≥≠~"

// read takes the text apart at its comparison and reads both sides, so that mistakes on one side do not hide those on
// the other.
func (p *parser) read() {
	p.e.Text, p.e.Share = strings.TrimSpace(p.text), DefaultShare
	switch bad := strings.IndexFunc(p.text, func(r rune) bool {
		return r == utf8.RuneError || r != '\t' && unicode.IsControl(r)
	}); {
	case p.e.Text == "":
		p.fail(0, "there is no expectation", example)
		return
	case len(p.text) > longestText:
		p.fail(0, strconv.Itoa(len(p.text))+" bytes are too long",
			"an expectation is one line of at most "+strconv.Itoa(longestText)+" bytes")
		return
	case bad >= 0:
		p.fail(bad, "a character that is not text", "an expectation is one line of plain text")
		return
	}
	at := strings.IndexAny(p.text, comparisons)
	if at < 0 {
		p.withoutComparison()
		return
	}
	end := at
	for end < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[end:])
		if !strings.ContainsRune(comparisons, r) {
			break
		}
		end += size
	}
	p.head(p.text[:at])
	known := p.comparison(at, p.text[at:end])
	p.tail(end, known)
	p.runs()
}

// withoutComparison reads what can be read of a text in which nothing is compared.
func (p *parser) withoutComparison() {
	const problem, fix = "there is no comparison", "write <, <=, > or >= between the measure and its value, "
	head := p.text
	if end := strings.IndexByte(head, ')'); end >= 0 {
		head = head[:end+1]
	} else if words := strings.Fields(head); len(words) > 0 && !strings.Contains(head, "(") {
		head = head[:strings.Index(head, words[0])+len(words[0])]
	}
	p.head(head)
	if p.m != nil {
		p.fail(len(head), problem, fix+"for example "+p.m.Example)
		return
	}
	p.fail(len(head), problem, fix+example)
}

// comparison reads the operator and reports whether it is one.
func (p *parser) comparison(at int, text string) bool {
	if i := slices.Index(opNames[:], text); i >= 0 {
		p.e.Op = Op(i)
		return true
	}
	fix := "write <, <=, > or >="
	switch text {
	case "≤", "=<":
		fix = "write <="
	case "≥", "=>":
		fix = "write >="
	case "=", "==", "!=", "≠", "<>", "~", "~=":
		fix = "what is measured is never exactly a value: write < or >"
	}
	p.fail(at, quote(text)+" is not a comparison", fix)
	return false
}

// head reads the measure and its arguments.
func (p *parser) head(text string) {
	at := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	name, rest, brackets := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	p.m = measure(name)
	switch {
	case name == "":
		p.fail(at, "there is no measure before the "+quoteNext(p.text[at:]), example)
	case p.m == nil:
		p.unknownMeasure(at, name, brackets)
	default:
		p.e.Measure = name
	}
	open := len(text) - len(rest) - 1
	if brackets {
		inside, after, closed := strings.Cut(rest, ")")
		switch {
		case !closed:
			p.fail(open, "the bracket is not closed", "write ) after the last argument")
		case strings.TrimSpace(after) != "":
			p.fail(open+1+len(inside)+1, quote(strings.TrimSpace(after))+" is not expected here",
				"a comparison follows the bracket")
		}
		p.arguments(open+1, inside)
	}
	if p.m != nil {
		p.complete(at)
	}
}

// quoteNext shows the first character of a text.
func quoteNext(text string) string {
	r, _ := utf8.DecodeRuneInString(text)
	return strconv.QuoteRune(r)
}

func (p *parser) unknownMeasure(at int, name string, brackets bool) {
	names := make([]string, len(measures))
	for i := range measures {
		names[i] = measures[i].Name
	}
	first, second, several := strings.Cut(name, " ")
	fix := suggest(name, names)
	switch {
	case !brackets && several && measure(first) != nil:
		fix = "put what it is about in brackets: " + first + "(" + strings.Join(strings.Fields(second), ", ") + ")"
	case kindOf(name) >= 0:
		fix = "the measure comes first, then the comparison, then the value: " + example
	}
	p.fail(at, quote(name)+" is not a measure", fix)
}

// arguments reads what stands in the brackets; at is the offset of the text.
func (p *parser) arguments(at int, text string) {
	if strings.TrimSpace(text) == "" {
		p.fail(at-1, "there is nothing in the brackets", "leave them out, or say what the measure is about")
		return
	}
	for piece := range strings.SplitSeq(text, ",") {
		argument := strings.TrimSpace(piece)
		p.argument(at+len(piece)-len(strings.TrimLeftFunc(piece, unicode.IsSpace)), argument)
		at += len(piece) + 1
	}
}

var quantileForm = regexp.MustCompile(`^[pP][0-9]+(\.[0-9]+)?$`)

// argument reads one argument: windows, quantiles and priorities are known by their form, everything else is a name.
func (p *parser) argument(at int, text string) {
	window := slices.Index(windowNames[:], strings.ToLower(text))
	switch {
	case text == "":
		p.fail(at, "there is an argument too few", "put one name between two commas")
	case window >= 0 && text != windowNames[window]:
		p.fail(at, quote(text)+" is not a window", "write "+windowNames[window])
	case window >= 0:
		p.window(at, Window(window))
	case quantileForm.MatchString(text):
		p.quantile(at, text)
	case slices.Contains(priorities, text):
		p.priority(at, text)
	case !isName(text):
		p.fail(at, quote(text)+" is not a name", "names have no spaces, brackets or comparisons and at most "+
			strconv.Itoa(longestName)+" bytes; a comma stands between two arguments")
	case p.e.Subject != "":
		p.fail(at, quote(text)+" is a second name after "+quote(p.e.Subject), "write one expectation per line")
	case p.m != nil && p.m.SubjectNeed == NotAllowed:
		p.fail(at, p.m.Name+" is not about "+quote(text)+" but about the whole run", "write "+p.m.Form())
	default:
		p.e.Subject, p.subjectAt = text, at
	}
}

func (p *parser) window(at int, w Window) {
	switch {
	case p.m != nil && !p.m.Window:
		p.fail(at, p.m.Name+" has no window", "write "+p.m.Form())
	case p.e.Window != All:
		p.fail(at, w.String()+" is a second window after "+p.e.Window.String(), "write one expectation per window")
	default:
		p.e.Window = w
	}
}

func (p *parser) priority(at int, text string) {
	switch {
	case p.m != nil && !p.m.Priority:
		p.fail(at, p.m.Name+" has no priority", "write "+p.m.Form())
	case p.e.Priority != "":
		p.fail(at, text+" is a second priority after "+p.e.Priority, "write one expectation per priority")
	default:
		p.e.Priority = text
	}
}

func (p *parser) quantile(at int, text string) {
	digits := text[1:]
	share, problem, _ := readNumber(digits, "e-2")
	switch {
	case text[0] == 'P':
		p.fail(at, quote(text)+" is not a quantile", "write p"+digits)
	case problem != "":
		p.fail(at, quote(text)+": "+problem, "write p50, p99 or p99.9")
	case share > 1 && strings.HasPrefix(digits, "99"):
		p.fail(at, quote(text)+" is not a quantile",
			"write p99."+strings.TrimPrefix(strings.Replace(digits, ".", "", 1), "99"))
	case share <= 0 || share >= 1:
		p.fail(at, quote(text)+" is out of range", "quantiles are above p0 and below p100; write p50, p99 or p99.9")
	case p.m != nil && p.m.Quantile == NotAllowed:
		p.fail(at, p.m.Name+" has no quantile", "write "+p.m.Form())
	case p.e.Quantile != 0:
		p.fail(at, text+" is a second quantile after p"+percentDigits(p.e.Quantile), "write one expectation per quantile")
	default:
		p.e.Quantile = share
	}
}

// complete looks for arguments that the measure needs.
func (p *parser) complete(at int) {
	fix := "write " + p.m.Form() + ", for example " + p.m.Example
	if p.m.SubjectNeed == Required && p.e.Subject == "" && !p.failedIn('(') {
		p.fail(at, p.m.Name+" needs the name of a "+p.m.Subject.String(), fix)
	}
	if p.m.Quantile == Required && p.e.Quantile == 0 && !p.failedIn('(') {
		p.fail(at, p.m.Name+" needs a quantile", fix)
	}
}

// failedIn reports whether there is a mistake at or after the first such character, of which another would only be the
// consequence.
func (p *parser) failedIn(c byte) bool {
	at := strings.IndexByte(p.text, c)
	return at >= 0 && slices.ContainsFunc(p.errs, func(e *Error) bool {
		return e.Column > utf8.RuneCountInString(p.text[:at])
	})
}

// isName reports whether a text can be an argument and has no other meaning.
func isName(text string) bool {
	return text != "" && len(text) <= longestName && utf8.ValidString(text) &&
		!strings.ContainsAny(text, "(),"+comparisons) &&
		!strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// CanName reports whether an expectation can speak of a service or fleet of that name: one word without brackets,
// commas and comparisons, of at most 100 bytes, and neither a window (after) nor a quantile (p99) nor a priority.
func CanName(name string) bool {
	return isName(name) && !slices.Contains(windowNames[:], strings.ToLower(name)) && !quantileForm.MatchString(name) &&
		!slices.Contains(priorities, name)
}
