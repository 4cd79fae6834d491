package page

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// Limits of what is shown, in bytes. The rest is for a download.
const (
	maxText = 256 << 10
	maxHex  = 4 << 10
)

// content is a key, a value or a header's value, as it is shown.
type content struct {
	// Kind is null, empty, json, text, binary or hidden.
	Kind string `json:"kind"`
	// Bytes is its size. What is hidden has one, too.
	Bytes int `json:"bytes"`
	// Text is the text, JSON indented.
	Text string `json:"text,omitempty"`
	// Hex is a dump of the first bytes.
	Hex string `json:"hex,omitempty"`
	// Number is what up to eight bytes that are no text mean as a number, as Spring writes them.
	Number string `json:"number,omitempty"`
	// Cut reports that there is more than is shown.
	Cut bool `json:"cut,omitempty"`
}

// show makes the content of some bytes. whole asks for a dump of what is text, too.
func (p *Page) show(b []byte, whole bool) content {
	c := content{Bytes: len(b)}
	switch {
	case b == nil:
		c.Kind = "null"
		return c
	case p.config.HideValues:
		c.Kind = "hidden"
		return c
	case len(b) == 0:
		c.Kind = "empty"
		return c
	case isText(b):
		c.Kind, c.Text = "text", string(b)
		if len(b) <= maxText {
			if laid, ok := dlq.Indent(b); ok {
				c.Kind, c.Text = "json", string(laid)
			}
		}
		if len(c.Text) > maxText {
			c.Text, c.Cut = strings.ToValidUTF8(c.Text[:maxText], ""), true
		}
	default:
		c.Kind, c.Cut = "binary", len(b) > maxHex
		if len(b) <= 8 {
			c.Number = signed(b)
		}
	}
	if whole || c.Kind == "binary" {
		c.Hex = hex.Dump(b[:min(len(b), maxHex)])
	}
	return c
}

// isText reports whether bytes are meant to be read.
func isText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(c rune) bool {
		return unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t'
	})
}

// signed reads a big-endian two's complement number.
func signed(b []byte) string {
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n.String()
}

// line is some bytes in one line, for lists.
func (p *Page) line(b []byte, n int) string {
	switch c := p.show(b[:min(len(b), maxHex)], false); {
	case b == nil:
		return ""
	case c.Kind == "hidden":
		return "(hidden)"
	case c.Kind == "binary":
		return "0x" + cut(hex.EncodeToString(b[:min(len(b), n)]), n)
	}
	return cut(string(b), n)
}
