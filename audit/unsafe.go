package audit

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// once switches off what sends requests again that are known to be unsafe, by when they may have been carried out: the
// errors of rule F301. It returns the changes, which are made in the form too.
func (p *plan) once(form *topology.Form, o lint.Options) []Edit {
	unsafe := map[topology.Position]bool{}
	for _, f := range p.lint(form, o) {
		if f.Rule == "F301" && f.Severity == lint.Error {
			unsafe[f.At] = true
		}
	}
	if len(unsafe) == 0 {
		return nil
	}
	places := map[topology.Position]bool{}
	for i := range form.Calls {
		for j := range form.Calls[i].Layers {
			l := &form.Calls[i].Layers[j]
			for k := range l.Repeats {
				if rep := &l.Repeats[k]; unsafe[rep.At] || unsafe[rep.Tries.At] || unsafe[l.At] {
					places[p.place(l, rep)] = true
				}
			}
		}
	}
	var all []Edit
	for _, s := range p.settings(form, places, p.off) {
		all = append(all, p.make(form, []*setting{s})...)
	}
	return all
}

// off returns the change that leaves one try: a number where the product takes it, and of gRPC, which refuses a policy
// of one attempt, the removal of the policy.
func (p *plan) off(l *topology.Layer, r *topology.Repeat) (e Edit, beside []Edit, to int, ok bool) {
	if e, beside, to, ok = p.fewest(l, r); ok && to == 1 {
		return e, beside, 1, true
	}
	if l.Product == "grpc" && r.Tries.Origin == topology.Written {
		if all := p.inserts.withoutPolicy(r.Tries.At); len(all) > 0 {
			return all[0], all[1:], 1, true
		}
	}
	return Edit{}, nil, 0, false
}

var retryPolicy = regexp.MustCompile(`,?\s*"(?:retry|hedging)Policy"\s*:\s*$`)

// withoutPolicy returns the edits that take the JSON member away in whose object a number stands, a retry policy of
// gRPC. There are none where the file, read again, has more to complain about.
func (in *inserts) withoutPolicy(at topology.Position) []Edit {
	data := in.files[at.File]
	number, ok := offsetOf(data, at)
	if !ok {
		return nil
	}
	text, places := unquoted(data, number)
	if places != nil {
		number, _ = slices.BinarySearch(places, number)
	}
	open := bytes.LastIndexByte(text[:number], '{')
	if open < 0 {
		return nil
	}
	end := endOfObject(text, open)
	key := retryPolicy.FindIndex(text[:open])
	if end < 0 || number >= end || key == nil {
		return nil
	}
	from, end, ok := member(text, key[0], end)
	if !ok {
		return nil
	}
	if places != nil {
		from, end = places[from], places[end]
	}
	all := removal(data, at.File, from, end)
	if len(all) == 0 || !in.same(all) {
		return nil
	}
	named := slices.IndexFunc(all, func(e Edit) bool { return strings.Contains(e.Old, `Policy`) })
	all[0], all[named] = all[named], all[0] // it says best what is done
	return all
}

// unquoted returns the text in double quotes around a place, and where each of its bytes stands, with one more for its
// end. Where the place is in no such text it returns all of data, and no places.
func unquoted(data []byte, at int) (text []byte, places []int) {
	for i := bytes.LastIndexByte(data[:at], '\n') + 1; i < len(data) && data[i] != '\n'; i++ {
		if data[i] != '"' {
			continue
		}
		text, places = nil, nil
		for i++; i < len(data) && data[i] != '"' && data[i] != '\n'; i++ {
			c := data[i]
			places = append(places, i)
			if c == '\\' && i+1 < len(data) {
				i++
				if c = data[i]; c != '"' && c != '\\' {
					c = ' ' // the end of a line, a tab, or a character that is nothing to JSON
				}
			}
			text = append(text, c)
		}
		places = append(places, i)
		if places[0] <= at && at < i {
			return text, places
		}
	}
	return data, nil
}

// member returns the bytes of a JSON member with the comma that goes with it. It is not ok where a comment may stand
// around it: then which comma that is does not follow from the text beside it, and one too many breaks the file.
func member(data []byte, from, to int) (start, end int, ok bool) {
	if data[from] == ',' {
		return from, to, !commented(data, from)
	}
	before, behind := bytes.TrimRight(data[:from], " \t\r\n"), bytes.TrimLeft(data[to:], " \t\r\n")
	if !bytes.HasSuffix(before, []byte("{")) || commented(data, len(before)) || len(behind) == 0 {
		return 0, 0, false
	}
	if behind[0] == ',' { // the first member: the comma behind it goes
		to = len(data) - len(behind) + 1
	}
	return from, to, behind[0] == ',' || behind[0] == '}'
}

// commented reports whether a comment may have begun in the line before a place.
func commented(data []byte, at int) bool {
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	line := quotedText.ReplaceAll(data[start:at], nil)
	return bytes.Contains(line, []byte("//")) || bytes.Contains(line, []byte("/*")) || bytes.Contains(line, []byte("#"))
}

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// offsetOf returns where a position is in a file, in bytes.
func offsetOf(data []byte, at topology.Position) (int, bool) {
	start := 0
	for range at.Line - 1 {
		next := bytes.IndexByte(data[start:], '\n')
		if next < 0 {
			return 0, false
		}
		start += next + 1
	}
	line, _, _ := bytes.Cut(data[start:], []byte("\n"))
	runes := []rune(string(line))
	if at.Line < 1 || at.Column < 1 || at.Column > len(runes) {
		return 0, false
	}
	return start + len(string(runes[:at.Column-1])), true
}

// endOfObject returns the byte after the brace that closes the one at open, -1 if there is none.
func endOfObject(data []byte, open int) int {
	depth, quoted := 0, false
	for i := open; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// removal returns the edits, one for each line, that take the bytes from from to end away.
func removal(data []byte, file string, from, end int) []Edit {
	var all []Edit
	start := bytes.LastIndexByte(data[:from], '\n') + 1
	n := 1 + bytes.Count(data[:from], []byte("\n"))
	for line := range strings.SplitAfterSeq(string(data[start:end]), "\n") {
		text, column := strings.TrimRight(line, "\r\n"), 1
		if skip := from - start; skip > 0 {
			column, text = len([]rune(text[:skip]))+1, text[skip:]
		} else {
			trimmed := strings.TrimLeft(text, " \t")
			column, text = len(text)-len(trimmed)+1, trimmed
		}
		if text != "" {
			all = append(all, Edit{At: topology.Position{File: file, Line: n, Column: column}, Old: text})
		}
		from, start, n = 0, 0, n+1
	}
	return all
}
