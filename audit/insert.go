package audit

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// setter is how a product's files say a number of tries that they leave out.
type setter struct {
	key   string // "num_retries: %d"
	first int    // 1 if the number counts the first try, 0 if it counts those after it
}

// setters of each product, in the order in which they are tried. Which of them a place takes is seen by reading the
// file again.
var setters = map[string][]setter{
	"envoy":         {{"num_retries: %d", 0}, {"numRetries: %d", 0}},
	"istio":         {{"retries: {attempts: %d}", 0}, {"attempts: %d", 0}, {"retry: {attempts: %d}", 0}},
	"envoy-gateway": {{"numRetries: %d", 0}, {"attempts: %d", 0}},
	"kuma":          {{"numRetries: %d", 0}},
	"kong":          {{"retries: %d", 0}},
	"dapr":          {{"maxRetries: %d", 0}},
	"abate":         {{"maxRetries: %d", 0}},
	"resilience4j":  {{"maxAttempts: %d", 1}},
	"haproxy":       {{"retries %d", 0}},
	"nginx":         {{"%s_next_upstream_tries %d;", 1}},
	"ingress-nginx": {{`nginx.ingress.kubernetes.io/proxy-next-upstream-tries: "%d"`, 1},
		{`annotations: {nginx.ingress.kubernetes.io/proxy-next-upstream-tries: "%d"}`, 1}},
	"kong-ingress-controller": {{`konghq.com/retries: "%d"`, 0}},
}

// inserts finds the edits that write a number that a file leaves out.
type inserts struct {
	files  map[string][]byte
	assume source.Assume
	known  map[question]*Edit // nil where there is none
	// remarks are how many each file has as it is, where that was counted.
	remarks map[string]int
}

// question is a place, with what is to stand there.
type question struct {
	product string
	at      topology.Position
	to      int
}

// edit returns the edit that writes the number of tries to at a place that leaves it out: the block of a default, or
// the directive beside which it may stand. It is an edit only if the file, read again, has that number there and
// nothing new to complain about.
func (in *inserts) edit(product string, at topology.Position, to int) (Edit, bool) {
	q := question{product, at, to}
	if e, asked := in.known[q]; asked {
		if e == nil {
			return Edit{}, false
		}
		return *e, true
	}
	in.known[q] = nil
	line, ok := lineOf(in.files[at.File], at.Line)
	if !ok || at.Column < 1 {
		return Edit{}, false
	}
	for _, s := range setters[product] {
		for _, e := range s.places(in.files[at.File], string(line), at, to) {
			if in.holds(e, at, to) {
				in.known[q] = &e
				return e, true
			}
		}
	}
	return Edit{}, false
}

// quiet reports whether the file with an edit of a number gives nothing new to complain about.
func (in *inserts) quiet(e Edit) bool {
	q := question{at: e.At}
	if _, asked := in.known[q]; !asked {
		in.known[q] = nil
		if in.same([]Edit{e}) {
			in.known[q] = &e
		}
	}
	return in.known[q] != nil
}

// holds reports whether the file with an edit says the number of tries where it was written, or, if that is one, no
// longer has the default.
func (in *inserts) holds(e Edit, at topology.Position, to int) bool {
	before := importer.File{Name: at.File, Data: in.files[at.File]}
	changed, left := Apply([]importer.File{before}, []Edit{e})
	if len(left) > 0 {
		return false
	}
	was, _ := importer.Read([]importer.File{before}, in.assume)
	is, _ := importer.Read(changed, in.assume)
	if len(is.Remarks) > len(was.Remarks) {
		return false
	}
	line := e.At.Line + strings.Count(e.New, "\n")
	said := triesOf(&is, func(v topology.Value[int]) bool {
		return v.Origin != topology.Default && v.At.Line == line && v.V == to
	})
	byDefault := func(v topology.Value[int]) bool { return v.Origin == topology.Default && v.At == at }
	return said > 0 || to == 1 && triesOf(&was, byDefault) > 0 && triesOf(&is, byDefault) == 0
}

// triesOf counts the rules of a form whose number of tries is one of those asked for.
func triesOf(f *topology.Form, is func(topology.Value[int]) bool) int {
	n := 0
	eachLayer(f, func(l *topology.Layer) {
		for i := range l.Repeats {
			if is(l.Repeats[i].Tries) {
				n++
			}
		}
	})
	return n
}

// eachLayer calls do with each layer of a form.
func eachLayer(f *topology.Form, do func(*topology.Layer)) {
	for i := range f.Policies {
		do(&f.Policies[i].Layer)
	}
	for i := range f.Calls {
		for j := range f.Calls[i].Layers {
			do(&f.Calls[i].Layers[j])
		}
	}
}

var (
	mapping     = regexp.MustCompile(`^[\s-]*[^\s#:][^#:]*:[ \t]*(?:&\S+[ \t]*)?(?:#.*)?$`) // a key, its value below it
	flow        = regexp.MustCompile(`^[^#]*?:[ \t]*\{`)
	propertyKey = regexp.MustCompile(`^\s*((?:[\w-]+\.)+)[\w-]+\s*[=:]`)
	directed    = regexp.MustCompile(`^\s*(proxy|grpc|fastcgi|uwsgi|scgi)_(?:pass|next_upstream)\b[^#;]*;`)
)

// places returns the edits that may write the number at a place, the likeliest first.
func (s setter) places(data []byte, line string, at topology.Position, to int) []Edit {
	line = strings.TrimSuffix(line, "\r")
	number := to - 1 + s.first
	if m := directed.FindStringSubmatch(line); m != nil { // nginx
		return []Edit{below(data, at, at.Line, indentOf(line)+fmt.Sprintf(s.key, m[1], number))}
	}
	text := fmt.Sprintf(s.key, number)
	if !strings.Contains(text, ":") { // HAProxy: the lines of a section stand below its name
		return []Edit{below(data, at, at.Line, inside(data, at.Line, "  ")+text)}
	}
	var all []Edit
	runes := []rune(line)
	start := min(at.Column-1, len(runes))
	if m := propertyKey.FindStringSubmatch(line); m != nil {
		key, value, _ := strings.Cut(text, ": ")
		all = append(all, below(data, at, at.Line, m[1]+key+"="+value))
	}
	if start < len(runes) && runes[start] == '{' {
		all = append(all, within(at, start+1, string(runes[start+1:]), text))
	}
	if m := flow.FindString(string(runes[start:])); m != "" {
		open := start + len([]rune(m))
		all = append(all, within(at, open, string(runes[open:]), text))
	}
	if mapping.MatchString(line) {
		if indent := inside(data, at.Line, ""); len(indent) > start {
			all = append(all, below(data, at, at.Line, indent+text))
		}
	}
	return append(all, below(data, at, lastOf(data, at.Line, start), strings.Repeat(" ", start)+text))
}

// below is an edit that adds a line below another.
func below(data []byte, at topology.Position, n int, text string) Edit {
	line, _ := lineOf(data, n)
	end, newline := string(line), "\n"
	if cut, ok := strings.CutSuffix(end, "\r"); ok {
		end, newline = cut, "\r\n"
	}
	return Edit{At: topology.Position{File: at.File, Line: n, Column: len([]rune(end)) + 1}, New: newline + text}
}

// within is an edit that adds the first entry of a mapping in braces.
func within(at topology.Position, column int, rest, text string) Edit {
	if quote := quoteOf(strings.TrimSpace(rest)); strings.HasSuffix(quote, `"`) || strings.TrimSpace(rest) == "" { // JSON
		key, value, _ := strings.Cut(text, ": ")
		quote = cmp.Or(quote, `"`)
		text = quote + key + quote + ": " + strings.Replace(value, "{attempts:", "{"+quote+"attempts"+quote+":", 1)
	}
	switch trimmed := strings.TrimSpace(rest); {
	case strings.HasPrefix(trimmed, "}"):
	case trimmed == "":
		text += ","
	default:
		text += ", "
	}
	return Edit{At: topology.Position{File: at.File, Line: at.Line, Column: column + 1}, New: text}
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// following returns the lines below the n-th that have text, with their numbers. Comments are left out.
func following(data []byte, n int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i, more := 1, true; more; i++ {
			var line []byte
			line, data, more = bytes.Cut(data, []byte("\n"))
			if text := bytes.TrimSpace(line); i > n && len(text) > 0 && text[0] != '#' && !yield(i, string(line)) {
				return
			}
		}
	}
}

// inside returns the indentation of the next line, or other where that has none.
func inside(data []byte, n int, other string) string {
	for _, line := range following(data, n) {
		return cmp.Or(indentOf(line), other)
	}
	return other
}

// lastOf returns the last line of the entry that begins at a line, in the column after start: those below it stand
// further to the right, or are a list in the same column.
func lastOf(data []byte, n, start int) int {
	last := n
	for i, line := range following(data, n) {
		indent := len(indentOf(line))
		if indent < start || indent == start && !strings.HasPrefix(line[indent:], "- ") {
			break
		}
		last = i
	}
	return last
}
