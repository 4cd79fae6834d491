package spring

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/importer/source"
)

// entry is one line of a properties file.
type entry struct {
	key, text         string
	line, column, val int // the key's place, and the column of the value
}

// properties reads a properties file: each of its documents, which a line #--- separates, as entries.
func properties(data []byte) [][]entry {
	out := [][]entry{nil}
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines); i++ {
		number, raw := i+1, strings.TrimSuffix(lines[i], "\r")
		text := strings.TrimLeft(raw, " \t\f")
		if strings.HasPrefix(text, "#---") || strings.HasPrefix(text, "!---") {
			out = append(out, nil)
			continue
		}
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		column := len(raw) - len(text) + 1
		for continues(text) && i+1 < len(lines) {
			i++
			text = text[:len(text)-1] + strings.TrimLeft(strings.TrimSuffix(lines[i], "\r"), " \t\f")
		}
		key, value, begin := cut(text)
		e := entry{key: unescape(key), text: unescape(value), line: number, column: column,
			val: column + utf8.RuneCountInString(text[:begin])}
		out[len(out)-1] = append(out[len(out)-1], e)
	}
	return out
}

// continues reports whether a line ends in an odd number of backslashes.
func continues(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// cut separates the key of a line from its value, which begins at a byte of the line.
func cut(text string) (key, value string, begin int) {
	end := 0
	for end < len(text) && strings.IndexByte("=: \t\f", text[end]) < 0 {
		if text[end] == '\\' && end+1 < len(text) {
			end++
		}
		end++
	}
	begin = end
	for seen := false; begin < len(text); begin++ {
		if c := text[begin]; (c == '=' || c == ':') && !seen {
			seen = true
		} else if c != ' ' && c != '\t' && c != '\f' {
			break
		}
	}
	return text[:end], strings.TrimRight(text[begin:], " \t"), begin
}

// unescape reads backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'u':
			if i+4 < len(s) {
				if r, err := strconv.ParseUint(s[i+1:i+5], 16, 16); err == nil {
					b.WriteRune(rune(r))
					i += 4
				}
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// overlayProperties puts the entries of a document over the tree.
func (t *tree) overlayProperties(d *source.Document, entries []entry) {
	for _, e := range entries {
		t.add(e.key, d.At(e.line, e.column)).write(e.text, d.At(e.line, e.val))
	}
}
