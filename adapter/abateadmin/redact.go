package abateadmin

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is how many characters of an error are shown.
const maxText = 200

// What may stand in an error and is nobody's business: who one is at a URL, its query, and values whose name says that
// they are secret.
var (
	userinfo = regexp.MustCompile(`://[^\s/?#"']*@`)
	// A slash or the like in a password: what stands behind the colon is no port.
	slashed = regexp.MustCompile(`://[^\s/?#"'@:\[]*:\d*[^\s\d/?#"'@][^\s"']*@`)
	query   = regexp.MustCompile(`(://[^\s?#"']*)[?#][^\s"']*`)
	bearer  = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`)
	secrets = regexp.MustCompile(
		`(?i)([\w-]*(?:password|passwd|pwd|secret|token|api-?_?key|authorization))` +
			`(["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&"']+)`)
)

// redact makes a text of an error that may be shown.
func redact(err error) string {
	text := fmt.Sprintf("%v", err) // and not Error: it survives one that panics
	if len(text) > 20*maxText {
		text = text[:20*maxText]
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = userinfo.ReplaceAllString(text, "://…@")
	text = slashed.ReplaceAllString(text, "://…@")
	text = query.ReplaceAllString(text, "$1?…")
	text = bearer.ReplaceAllString(text, "$1 …")
	text = secrets.ReplaceAllString(text, "$1$2…")
	return cut(text, maxText)
}

func cut(text string, n int) string {
	count := 0
	for i := range text {
		if count == n-1 && len(text) > i+1 && utf8.RuneCountInString(text[i:]) > 1 {
			return text[:i] + "…"
		}
		count++
	}
	return text
}
