package expect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/nearest"
)

// Error is one mistake in the text of an expectation.
type Error struct {
	Column  int    // where it begins, from 1, in characters
	Problem string // what is wrong, with the word
	fix     string
}

// Error reads, for instance, `column 1: "godput" is not a measure; did you mean goodput?`.
func (e *Error) Error() string {
	text := "column " + strconv.Itoa(e.Column) + ": " + e.Problem
	if e.fix != "" {
		text += "; " + e.fix
	}
	return text
}

// Fix says what to write instead. The text of Error contains it; Problem does not.
func (e *Error) Fix() string { return e.fix }

// Errors are all mistakes in a text, in its order. errors.As finds the list and, as an *Error, its first member.
type Errors []*Error

// Error is one line per mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single mistakes to errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i := range e {
		list[i] = e[i]
	}
	return list
}

// quote shows a piece of the text in a message, cut when it is long, so that no file can flood a log.
func quote(s string) string {
	const longest = 40
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strconv.Quote(s)
}

// suggest says what an unknown word may have been meant to be, or else which words there are.
func suggest(word string, known []string) string {
	if near := nearest.To(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are: " + some(known)
}

// some lists words, not too many.
func some(words []string) string {
	const most = 20
	switch {
	case len(words) == 0:
		return "none"
	case len(words) > most:
		words = append(slices.Clone(words[:most]), "…")
	}
	return strings.Join(words, ", ")
}
