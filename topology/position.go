package topology

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is a place in a file. The zero Position is no place.
type Position struct {
	File   string // as it was given to the importer, with slashes
	Line   int    // from 1; 0 when only the file is known
	Column int    // from 1, in characters; 0 when only the line is known
}

// String is file:line:column, as far as they are known, in one line.
func (p Position) String() string {
	s := OneLine(p.File)
	if p.Line > 0 {
		s += ":" + strconv.Itoa(p.Line)
		if p.Column > 0 {
			s += ":" + strconv.Itoa(p.Column)
		}
	}
	return s
}

// IsZero reports whether p is no place.
func (p Position) IsZero() bool { return p == Position{} }

// MarshalText is String.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *Position) UnmarshalText(text []byte) error {
	rest := string(text)
	var numbers []int
	for len(numbers) < 2 {
		i := strings.LastIndexByte(rest, ':')
		if i < 0 {
			break
		}
		n, err := strconv.Atoi(rest[i+1:])
		if err != nil || n < 1 {
			break
		}
		numbers, rest = append(numbers, n), rest[:i]
	}
	if rest == "" {
		return fmt.Errorf("%q names no file; write file:line:column, for example app.yaml:12:7", text)
	}
	*p = Position{File: rest}
	switch len(numbers) {
	case 1:
		p.Line = numbers[0]
	case 2:
		p.Line, p.Column = numbers[1], numbers[0]
	}
	return nil
}

// Before orders positions by file, line and column.
func (p Position) Before(q Position) bool {
	if p.File != q.File {
		return p.File < q.File
	}
	if p.Line != q.Line {
		return p.Line < q.Line
	}
	return p.Column < q.Column
}
