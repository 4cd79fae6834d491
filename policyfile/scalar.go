package policyfile

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate"
)

// Bounds of a text: names and addresses are short, and messages quote them; the body of a fallback may be a page.
const (
	longestText = 1 << 10
	longestBody = 64 << 10
)

// scalar reads one value into the field, or says what is wrong with it.
func (f *field) scalar(n *yaml.Node, into reflect.Value) (problem, mend string) {
	longest := longestText
	if f.path == "fallback.body" {
		longest = longestBody
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		return describe(n) + " is not " + f.noun(), f.mend()
	case n.ShortTag() == "!!null":
		return "has no value", f.mendNothing()
	case len(n.Value) > longest:
		return fmt.Sprintf("%d bytes are too long", len(n.Value)), fmt.Sprintf("allowed: at most %d", longest)
	}
	problem, mend = f.parse(n, into)
	switch {
	case problem == "":
	case f.readsUnquoted(n, into):
		mend = "remove the quotes: write " + show(n)
	case mend == "":
		mend = f.mend()
	}
	return problem, mend
}

// readsUnquoted tells whether the quotes around a value are all that is wrong with it. into is overwritten.
func (f *field) readsUnquoted(n *yaml.Node, into reflect.Value) bool {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
		return false
	}
	problem, _ := f.parse(&yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}, into)
	return problem == ""
}

// leadingZero is a number that some read as octal, and some as decimal.
var leadingZero = regexp.MustCompile(`^[-+]?0[0-9]`)

// ambiguous says what is wrong with such a number.
func ambiguous(n *yaml.Node) (problem, mend string) {
	mend = "write it without the leading zero"
	octal, err := strconv.ParseInt(n.Value, 0, 64)
	decimal, decimalErr := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || decimalErr != nil || octal == decimal {
		return show(n) + " has a leading zero", mend
	}
	return fmt.Sprintf("%s could mean %d or %d", show(n), octal, decimal), mend
}

// parse is scalar for a text that may be one. An empty mend stands for the field's own.
func (f *field) parse(n *yaml.Node, into reflect.Value) (problem, mend string) {
	switch f.kind {
	case toggle:
		return f.readFlag(n, into)
	case whole:
		return f.readWhole(n, into)
	case number:
		return f.readNumber(n, into)
	case duration:
		return f.readDuration(n, into)
	case custom:
		if leadingZero.MatchString(n.Value) && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
			return ambiguous(n)
		}
		if err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			return err.Error(), ""
		}
		if into.IsZero() {
			return "has no value", f.mendNothing()
		}
		return "", ""
	default:
		return f.readWord(n, into)
	}
}

func (f *field) readFlag(n *yaml.Node, into reflect.Value) (problem, mend string) {
	if n.ShortTag() != "!!bool" {
		return describe(n) + " is not true or false", ""
	}
	into.SetBool(strings.EqualFold(n.Value, "true"))
	return "", ""
}

func (f *field) readWhole(n *yaml.Node, into reflect.Value) (problem, mend string) {
	v, err := strconv.ParseInt(n.Value, 0, 64)
	switch tag := n.ShortTag(); {
	case tag != "!!int" && tag != "!!float":
		return describe(n) + " is not a whole number", ""
	case leadingZero.MatchString(n.Value):
		return ambiguous(n)
	case errors.Is(err, strconv.ErrRange) || err == nil && !f.holds(float64(v)):
		return show(n) + " is out of range", ""
	case err != nil:
		return describe(n) + " is not a whole number", ""
	}
	into.SetInt(v)
	return "", ""
}

func (f *field) readNumber(n *yaml.Node, into reflect.Value) (problem, mend string) {
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" {
		if share, ok := strings.CutSuffix(n.Value, "%"); ok {
			if v, err := strconv.ParseFloat(share, 64); err == nil && f.holds(v/100) {
				return describe(n) + " is not a number", "write " + strconv.FormatFloat(v/100, 'g', 10, 64)
			}
		}
		if _, err := strconv.ParseFloat(n.Value, 64); errors.Is(err, strconv.ErrRange) {
			return show(n) + " is out of range", ""
		}
		return describe(n) + " is not a number", ""
	}
	if leadingZero.MatchString(n.Value) {
		return ambiguous(n)
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	if i, intErr := strconv.ParseInt(n.Value, 0, 64); intErr == nil {
		v, err = float64(i), nil
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return show(n) + " is out of range", ""
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return show(n) + " is not a finite number", ""
	case !f.holds(v):
		return show(n) + " is out of range", ""
	}
	into.SetFloat(v + 0) // no negative zero
	return "", ""
}

func (f *field) readDuration(n *yaml.Node, into reflect.Value) (problem, mend string) {
	v, err := time.ParseDuration(n.Value)
	switch tag := n.ShortTag(); {
	case err != nil && lacksUnit(n.Value): // only its writer knows which one is meant
		return show(n) + " has no unit", fmt.Sprintf("write %s for seconds or %s for milliseconds; %s", quote(n.Value+"s"), quote(n.Value+"ms"), f.mend())
	case (tag == "!!int" || tag == "!!float") && n.Value != "0":
		return show(n) + " has no unit", "units are ms, s, m and h; " + f.mend()
	case tag != "!!str" && n.Value != "0":
		return describe(n) + " is not a duration", ""
	case err != nil && durationForm.MatchString(n.Value): // longer than 292 years
		return show(n) + " is out of range", ""
	case err != nil:
		return describe(n) + " is not a duration", "units are ms, s, m and h; " + f.mend()
	case !f.holds(float64(v)):
		return show(n) + " is out of range", ""
	}
	into.SetInt(int64(v))
	return "", ""
}

// lacksUnit tells of a text that a unit at its end would make a duration.
func lacksUnit(s string) bool {
	_, err := time.ParseDuration(s + "s")
	return err == nil && strings.ContainsAny(s[len(s)-1:], "0123456789.") // not the m of a minute
}

// durationForm is what time.ParseDuration reads, apart from durations that are too long for it.
var durationForm = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

func (f *field) readWord(n *yaml.Node, into reflect.Value) (problem, mend string) {
	if n.ShortTag() != "!!str" {
		return describe(n) + " is not text", "write it in quotes: " + quote(n.Value)
	}
	if f.allowed == nil {
		into.SetString(n.Value)
		return "", ""
	}
	for _, a := range f.allowed {
		if a == n.Value {
			into.SetString(n.Value)
			return "", ""
		}
	}
	if near := nearest(n.Value, f.allowed); near != "" {
		return quote(n.Value) + " is not known", "did you mean " + near + "? " + f.mend()
	}
	return quote(n.Value) + " is not known", ""
}

// holds tells whether v, in the field's unit, is in its limits.
func (f *field) holds(v float64) bool {
	if f.limits == "" {
		return true
	}
	low, high := abate.ParseRange(f.limits)
	return v >= low && v <= high
}

// noun is what the field wants to be.
func (f *field) noun() string {
	switch f.kind {
	case section:
		return "a mapping"
	case sections, words:
		return "a list"
	case toggle:
		return "true or false"
	case whole:
		return "a whole number"
	case number:
		return "a number"
	case duration:
		return "a duration"
	}
	return "text"
}

// describe shows what stands in the file, with its kind where that is the mistake.
func describe(n *yaml.Node) string {
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return "the text " + quote(n.Value)
	case "!!int", "!!float":
		return "the number " + show(n)
	}
	return show(n)
}

// show is a value as it is written, cut when it is long.
func show(n *yaml.Node) string {
	quoted := quote(n.Value)
	return quoted[1 : len(quoted)-1]
}
