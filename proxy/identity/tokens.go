package identity

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
)

// Limits of a token file.
const (
	// MaxTokenFile is how large it may be, in bytes.
	MaxTokenFile = 1 << 20
	// MinToken is how long a token has to be, in characters. 16 random ones of base64 have 96 bits: nobody guesses them.
	MinToken = 16
	// MaxToken is how long it may be.
	MaxToken = 1024
	// MaxName is how long the name of a caller may be, in characters.
	MaxName = 128
)

// Tokens are the bearer tokens of a file, each with the name of a caller. They are kept as their SHA-256 only, so that
// the time of a look-up tells nothing about them.
type Tokens struct {
	names map[[sha256.Size]byte]string
}

// ParseTokens reads the content of a token file: on each line a name and a token with white space between them. Empty
// lines, and lines that begin with #, are skipped. A name may stand on several lines, so that a token can be replaced
// without a moment in which neither the old nor the new one is good; a token may stand on one line only.
//
// Names are visible ASCII, tokens what RFC 6750 allows: letters, digits and -._~+/ with = at the end. The error joins
// one for each mistake, "file:line: what, and how to fix it", and never shows a token.
func ParseTokens(file string, data []byte) (*Tokens, error) {
	if len(data) > MaxTokenFile {
		return nil, fmt.Errorf("%s: has %d bytes, a token file may have %d: is it the right file?", file, len(data),
			MaxTokenFile)
	}
	t := &Tokens{names: map[[sha256.Size]byte]string{}}
	lines := map[[sha256.Size]byte]int{}
	var problems []error
	number := 0
	for line := range bytes.Lines(data) {
		number++
		wrong := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("%s:%d: "+format, append([]any{file, number}, args...)...))
		}
		words := bytes.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if len(words) != 2 {
			wrong(`has %d words: write a name and a token, for example "web-shop 3q2-7wXhT0sZ9kQ1"`, len(words))
			continue
		}
		name, token := words[0], words[1]
		problem := nameProblem(name)
		if problem == "" {
			problem = tokenProblem(token)
		}
		hash := sha256.Sum256(token)
		switch first := lines[hash]; {
		case problem != "":
			wrong("%s", problem)
		case first > 0:
			wrong("the token is that of line %d: give each caller one of its own", first)
		default:
			t.names[hash], lines[hash] = string(name), number
		}
	}
	if len(t.names) == 0 && len(problems) == 0 {
		problems = append(problems,
			fmt.Errorf("%s: has no token, so nobody could come in: write a name and a token on a line", file))
	}
	return t, errors.Join(problems...)
}

func nameProblem(name []byte) string {
	for _, c := range name {
		if c < '!' || c > '~' {
			return "the name has a character that is not visible ASCII: write letters, digits and punctuation"
		}
	}
	if len(name) > MaxName {
		return fmt.Sprintf("the name has %d characters, at most %d are taken", len(name), MaxName)
	}
	return ""
}

func tokenProblem(token []byte) string {
	body := bytes.TrimRight(token, "=")
	for i, c := range body {
		if !isTokenChar(c) {
			return fmt.Sprintf("character %d of the token cannot stand in one: write letters, digits and -._~+/", i+1)
		}
	}
	switch {
	case len(body) < MinToken:
		return fmt.Sprintf(`the token has %d characters, which can be guessed: it needs %d; "openssl rand -hex 32" makes one`,
			len(body), MinToken)
	case len(token) > MaxToken:
		return fmt.Sprintf("the token has %d characters, at most %d are taken", len(token), MaxToken)
	}
	return ""
}

func isTokenChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		bytes.IndexByte([]byte("-._~+/"), c) >= 0
}

// Caller is the name that belongs to the value of an Authorization field, which must be "Bearer TOKEN". It allocates
// nothing.
func (t *Tokens) Caller(authorization []byte) (name string, ok bool) {
	const scheme = "bearer "
	if len(authorization) <= len(scheme) || len(authorization) > len(scheme)+MaxToken+16 {
		return "", false
	}
	for i := range len(scheme) - 1 {
		if authorization[i]|0x20 != scheme[i] {
			return "", false
		}
	}
	if authorization[len(scheme)-1] != ' ' {
		return "", false
	}
	name, ok = t.names[sha256.Sum256(bytes.TrimLeft(authorization[len(scheme):], " "))]
	return name, ok
}

// Len is how many tokens there are.
func (t *Tokens) Len() int { return len(t.names) }
