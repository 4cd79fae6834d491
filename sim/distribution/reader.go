package distribution

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error says what is wrong with the words of a distribution.
type Error struct {
	// Text is what was to be read.
	Text string
	// Problem names everything that is wrong, separated by "; ".
	Problem string
	fix     string
}

// Error returns the text, the problem and how to fix it.
func (e *Error) Error() string {
	text := e.Text
	if len(text) > 100 {
		text = text[:100] + "..."
	}
	return fmt.Sprintf("distribution %q: %s; %s", text, e.Problem, e.fix)
}

// Fix returns what is allowed, with an example.
func (e *Error) Fix() string { return e.fix }

// reader takes a text apart and collects what is wrong with it.
type reader struct {
	text     string
	words    []string // of the shape, those not read yet
	example  string   // of the shape
	broken   bool     // the shape or share that is being read has a problem
	problems []string
	fixes    []string
}

func (r *reader) fail(problem, fix string) {
	r.broken = true
	r.problems = append(r.problems, problem)
	if slices.Contains(r.fixes, fix) {
		return
	}
	r.fixes = append(r.fixes, fix)
}

func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &Error{Text: r.text, Problem: strings.Join(r.problems, "; "), fix: strings.Join(r.fixes, "; ")}
}

// next returns the next word, or "" and a problem.
func (r *reader) next(what string) string {
	if len(r.words) == 0 {
		if !r.broken {
			r.fail("the "+what+" is missing", "for example "+r.example)
		}
		return ""
	}
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

// keyword reads one of the words given and returns it.
func (r *reader) keyword(allowed ...string) string {
	what := "word " + strings.Join(allowed, " or ")
	word := r.next(what)
	if slices.Contains(allowed, word) {
		return word
	}
	if word != "" {
		r.fail(strconv.Quote(word)+" stands where the "+what+" belongs", "for example "+r.example)
	}
	return ""
}

// duration reads a duration of 0 or more.
func (r *reader) duration(what string) time.Duration {
	if word := r.next(what); word != "" {
		return r.parseDuration(word)
	}
	return 0
}

// positive reads a duration above 0.
func (r *reader) positive(what string) time.Duration {
	d := r.duration(what)
	if d == 0 && !r.broken {
		r.fail("the "+what+" is 0", "for what takes no time write 0s alone")
	}
	return d
}

func (r *reader) parseDuration(word string) time.Duration {
	d, err := time.ParseDuration(word)
	switch {
	case err != nil && strings.Trim(word, "0123456789.") == "" && word != "":
		r.fail(strconv.Quote(word)+" has no unit", "did you mean "+word+"ms? a duration is a number and a unit (ns, us, "+
			"ms, s, m, h)")
	case err != nil:
		r.fail(strconv.Quote(word)+" is not a duration",
			"a duration is a number and a unit (ns, us, ms, s, m, h), as in 50ms; at most 168h")
	case d < 0:
		r.fail(strconv.Quote(word)+" is negative", "allowed: 0s to 168h")
	case d > Longest:
		r.fail(strconv.Quote(word)+" is too long", "allowed: 0s to 168h")
	default:
		return d
	}
	return 0
}

// number reads a number in plain digits. word is where it stands.
func (r *reader) number(s, word string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && strings.Trim(s, "0123456789.") == "" {
		return v
	}
	if word != "" {
		r.fail(strconv.Quote(word)+" holds no number", "write digits, as in 50 or 99.9")
	}
	return 0
}
