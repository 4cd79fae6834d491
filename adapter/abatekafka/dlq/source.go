package dlq

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
)

// source is an expression in the words of package expr, which reads and evaluates it. Three things are written
// otherwise there: ~ is matches, a duration is an argument of duration, and text in single quotes has escapes.
type source struct {
	out    strings.Builder
	length int     // of what was translated, in characters
	wrote  int     // how many characters out has
	pieces []piece // in the order of the text
	open   []int   // the columns of the brackets that are not closed
	errs   ExpressionErrors
}

// piece is a part of the text, and where it is in the translation; both are counted in characters from 0.
type piece struct{ in, out int }

// words are the parts of a text that decide what is replaced: text in quotes, numbers and durations, names, ~ and
// brackets.
var words = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|-?[0-9][\pL\pN._]*|//|/\*|\pL[\pL\pN._]*|[~()"'` + "`]")

// translate writes a text in the words of package expr.
func translate(text string) *source {
	s := &source{}
	end := 0
	for _, at := range words.FindAllStringIndex(text, -1) {
		s.add(text[end:at[0]], text[end:at[0]])
		word := text[at[0]:at[1]]
		s.add(word, s.replacement(word))
		end = at[1]
	}
	s.add(text[end:], text[end:])
	return s
}

func (s *source) add(text, by string) {
	s.pieces = append(s.pieces, piece{s.length, s.wrote})
	s.length += utf8.RuneCountInString(text)
	s.wrote += utf8.RuneCountInString(by)
	s.out.WriteString(by)
}

// replacement is the next word of the text as package expr has it.
func (s *source) replacement(word string) string {
	switch c := word[0]; {
	case word == "~":
		return " matches "
	case word == "(":
		s.open = append(s.open, s.length+1)
	case word == ")" && len(s.open) > 0:
		s.open = s.open[:len(s.open)-1]
	case c == '/': // comments of package expr: what they hide would not be asked
		s.fail(s.length+1, strconv.Quote(word)+" is not expected here", aComparison)
	case c == '`':
		s.fail(s.length+1, strconv.Quote(word)+" is not expected here", straightQuotes)
	case c == '"' || c == '\'':
		text, ok := unquote(word)
		if !ok {
			s.fail(s.length+1, "the quotes are not closed, or what is in them cannot be read",
				`write "text" with \" for a quote and \\ for a backslash, or 'text' as it is`)
		}
		return strconv.Quote(text)
	case c == '-' || isDigit(c):
		if _, err := parseDuration(word); err == nil && !isDigit(word[len(word)-1]) {
			return "duration(" + strconv.Quote(word) + ")"
		}
		if _, err := strconv.ParseInt(word, 10, 64); errors.Is(err, strconv.ErrRange) {
			return word + ".0" // it is compared as near as a float comes
		}
		_, err := strconv.ParseFloat(word, 64)
		if strings.Contains(word, "_") || errors.Is(err, strconv.ErrSyntax) && !strings.Contains(word, "..") {
			s.fail(s.length+1, strconv.Quote(word)+" is not a number", "write it in decimal digits, for example 3 or 0.5")
		}
	}
	return word
}

const straightQuotes = `put text in "straight quotes"`

func unquote(s string) (string, bool) {
	if len(s) < 2 {
		return "", false
	}
	if s[0] == '\'' {
		return s[1 : len(s)-1], true
	}
	value, err := strconv.Unquote(s)
	return value, err == nil
}

// fail notes a mistake, one for each place.
func (s *source) fail(column int, problem, fix string) {
	for _, e := range s.errs {
		if e.Column == column {
			return
		}
	}
	s.errs = append(s.errs, &ExpressionError{column, problem, fix})
}

// column is where in the text a character of the translation comes from.
func (s *source) column(out int) int {
	if out >= s.wrote {
		return s.length + 1
	}
	i := len(s.pieces) - 1
	for s.pieces[i].out > out {
		i--
	}
	end := s.length
	if i+1 < len(s.pieces) {
		end = s.pieces[i+1].in
	}
	return min(s.pieces[i].in+out-s.pieces[i].out, max(end-1, s.pieces[i].in)) + 1
}

// unexpected finds the word in an error of package expr.
var unexpected = regexp.MustCompile(`^(?:unexpected token \w+\((".*")\)|unrecognized character: \S+ '(.*)')$`)

// unreadable notes what package expr says of a text that is no expression.
func (s *source) unreadable(err error) {
	var e *file.Error
	if !errors.As(err, &e) {
		s.fail(1, err.Error(), aComparison)
		return
	}
	column := s.column(e.From)
	found := unexpected.FindStringSubmatch(e.Message)
	switch {
	case strings.Contains(e.Message, "token EOF") && len(s.open) > 0:
		s.fail(s.open[len(s.open)-1], "the bracket is not closed", "write ) after its last comparison")
	case strings.Contains(e.Message, "token EOF"):
		s.fail(s.length+1, s.missing(), aComparison)
	case strings.HasPrefix(e.Message, "bad number syntax"), strings.HasPrefix(e.Message, "invalid integer"),
		strings.HasPrefix(e.Message, "invalid float"):
		s.fail(column, e.Message, "write a number, for example 10 or 2.5, or a duration with its units: 90s, 2h, 1h30m, 7d")
	case found == nil:
		s.fail(column, e.Message, aComparison)
	case found[2] != "":
		s.fail(column, strconv.Quote(found[2])+" is not expected here", fixOf(found[2]))
	default:
		word, err := strconv.Unquote(found[1])
		if err != nil {
			word = strings.Trim(found[1], `"`)
		}
		s.fail(column, strconv.Quote(cut(word, 40))+" is not expected here", fixOf(word))
	}
}

// missing is what a text has not that ends too early.
func (s *source) missing() string {
	written := strings.TrimSpace(s.out.String())
	for _, op := range operators {
		if strings.HasSuffix(written, op) {
			return "there is no value after " + op
		}
	}
	return "something is missing at the end"
}

const aComparison = `write a comparison, for example failures > 3`

// fixOf is what to write instead of a word that cannot stand where it does.
func fixOf(word string) string {
	switch word {
	case "=":
		return "write == to compare"
	case "&":
		return "write && for and"
	case "|":
		return "write || for or"
	case "“", "”", "‘", "’":
		return straightQuotes
	}
	return "between two comparisons stands && or ||"
}
