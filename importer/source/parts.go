package source

import (
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/topology"
	"go.yaml.in/yaml/v3"
)

// Part is one of several words in a scalar, or a member of a list, with its place.
type Part struct {
	Text string
	At   topology.Position
}

// Parts returns the words of a scalar that stand between separators, without spaces around them and without empty ones;
// of a list, those of all its members. In a scalar of several lines all words have the place of the scalar.
func (n Node) Parts(separator string) []Part {
	var parts []Part
	for _, item := range n.List() {
		text, at, y := item.Text(), item.At(), item.resolved()
		straight := y == item.itself() && y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && !strings.Contains(text, "\n")
		column := at.Column
		if straight && y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			column++
		}
		for word := range strings.SplitSeq(text, separator) {
			trimmed := strings.TrimSpace(word)
			if before := strings.Index(word, trimmed); trimmed != "" {
				p := Part{trimmed, at}
				if straight {
					p.At.Column = column + before
				}
				parts = append(parts, p)
			}
			column += utf8.RuneCountInString(word) + utf8.RuneCountInString(separator)
		}
	}
	return parts
}
