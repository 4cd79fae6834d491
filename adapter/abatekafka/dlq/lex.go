package dlq

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is a kind of token.
type tokenKind int

const (
	endOfText tokenKind = iota
	wordToken
	textToken   // "..." or '...': token.value has what it says
	numberToken // 10, 2.5, -3, 90s, 1h30m
	signToken   // operators and brackets
	badToken    // told already
)

// token is a piece of an expression; at is its byte offset.
type token struct {
	kind  tokenKind
	at    int
	text  string
	value string
}

const signs = "&&||==!=<=>=" // two bytes each

// lex takes a text apart. Mistakes are told to fail.
func lex(text string, fail func(at int, problem, mend string)) (tokens []token) {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		t := token{at: at}
		switch {
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			at += size
			continue
		case r == '"' || r == '\'':
			t.kind, t.text = textToken, quotedText(text[at:])
			var ok bool
			if t.value, ok = unquote(t.text); !ok {
				t.kind = badToken
				fail(at, "the quotes are not closed, or what is in them cannot be read", `write "text" with \" for a quote and \\ for a backslash, or 'text' as it is`)
			}
		case isDigit(text[at]) || r == '-' && at+1 < len(text) && isDigit(text[at+1]):
			t.kind, t.text = numberToken, text[at:at+1]+span1(text[at+1:], func(r rune) bool { return isAlnum(r) || r == '.' || r == 'µ' })
		case unicode.IsLetter(r):
			t.kind, t.text = wordToken, span1(text[at:], func(r rune) bool {
				return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_' || r == '-'
			})
		case len(text)-at >= 2 && isSign(text[at:at+2]):
			t.kind, t.text = signToken, text[at:at+2]
		case strings.ContainsRune("<>~!()", r):
			t.kind, t.text = signToken, text[at:at+1]
		default:
			t.kind, t.text = badToken, text[at:at+size]
			fail(at, strconv.Quote(t.text)+" is not expected here", signMend(r))
		}
		tokens = append(tokens, t)
		at += len(t.text)
	}
	return append(tokens, token{kind: endOfText, at: len(text)})
}

func isSign(two string) bool {
	at := strings.Index(signs, two)
	return at >= 0 && at%2 == 0
}

func signMend(r rune) string {
	switch r {
	case '=':
		return "write == to compare"
	case '&':
		return "write && for and"
	case '|':
		return "write || for or"
	case '“', '”', '‘', '’', '`':
		return `put text in "straight quotes"`
	}
	return "an expression has words, numbers, \"text\", comparisons and && || ! ( )"
}

// span1 is the beginning of s in which all runes fit.
func span1(s string, fits func(rune) bool) string {
	if end := strings.IndexFunc(s, func(r rune) bool { return !fits(r) }); end >= 0 {
		return s[:end]
	}
	return s
}

// quotedText is the beginning of s up to its closing quote, or all of it.
func quotedText(s string) string {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return s[:i+1]
		case s[i] == '\\' && s[0] == '"':
			i++
		}
	}
	return s
}

func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != s[len(s)-1] {
		return "", false
	}
	if s[0] == '\'' {
		return s[1 : len(s)-1], true
	}
	value, err := strconv.Unquote(s)
	return value, err == nil
}
