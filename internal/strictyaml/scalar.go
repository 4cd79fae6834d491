package strictyaml

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/nearest"
)

// Scalar reads one value, of a kind that is a scalar, into the field, or says what is wrong with it. After that the
// value of into means nothing.
func (f *Field) Scalar(n *yaml.Node, into reflect.Value) (problem, fix string) {
	const short = 1 << 10 // names and addresses: messages quote them
	longest := cmp.Or(f.Longest, short)
	switch {
	case n.Kind != yaml.ScalarNode:
		return Describe(n) + " is not " + f.noun(), f.Fix()
	case n.ShortTag() == "!!null":
		return "has no value", f.mendNothing()
	case len(n.Value) > longest:
		return fmt.Sprintf("%d bytes are too long", len(n.Value)), fmt.Sprintf("allowed: at most %d", longest)
	}
	problem, fix = f.parse(n, into)
	switch {
	case problem == "":
	case f.readsUnquoted(n, into):
		fix = "remove the quotes: write " + show(n)
	case fix == "":
		fix = f.Fix()
	}
	return problem, fix
}

// readsUnquoted reports whether the quotes around a value are all that is wrong with it. into is overwritten.
func (f *Field) readsUnquoted(n *yaml.Node, into reflect.Value) bool {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
		return false
	}
	problem, _ := f.parse(&yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}, into)
	return problem == ""
}

// leadingZero is a number that some read as octal, and some as decimal.
var leadingZero = regexp.MustCompile(`^[-+]?0[0-9]`)

// ambiguous says what is wrong with such a number.
func ambiguous(n *yaml.Node) (problem, fix string) {
	fix = "write it without the leading zero"
	octal, err := strconv.ParseInt(n.Value, 0, 64)
	decimal, decimalErr := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || decimalErr != nil || octal == decimal {
		return show(n) + " has a leading zero", fix
	}
	return fmt.Sprintf("%s could mean %d or %d", show(n), octal, decimal), fix
}

// parse is scalar for a text that may be one. An empty fix stands for the field's own.
func (f *Field) parse(n *yaml.Node, into reflect.Value) (problem, fix string) {
	switch f.Kind {
	case Toggle:
		return f.readFlag(n, into)
	case Whole:
		return f.readWhole(n, into)
	case Number:
		return f.readNumber(n, into)
	case Duration:
		return f.readDuration(n, into)
	case Custom:
		if leadingZero.MatchString(n.Value) && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
			return ambiguous(n)
		}
		return f.readCustom(n, into)
	default:
		return f.readWord(n, into)
	}
}

// readCustom hands the text to its type, whose error says what is wrong, and with a method Fix() string what would be
// right.
func (f *Field) readCustom(n *yaml.Node, into reflect.Value) (problem, fix string) {
	if n.Value == "" {
		return "has no value", f.mendNothing()
	}
	err := into.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value))
	if err == nil {
		return "", ""
	}
	problem = oneLine(err.Error())
	var mender interface{ Fix() string }
	if errors.As(err, &mender) {
		fix = oneLine(mender.Fix())
		problem = strings.TrimSuffix(problem, "; "+fix) // the text of an error may end with it
	}
	return problem, fix
}

// oneLine keeps a message on the one line that a mistake has.
func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ") }

func (f *Field) readFlag(n *yaml.Node, into reflect.Value) (problem, fix string) {
	if n.ShortTag() != "!!bool" {
		return Describe(n) + " is not true or false", ""
	}
	into.SetBool(strings.EqualFold(n.Value, "true"))
	return "", ""
}

func (f *Field) readWhole(n *yaml.Node, into reflect.Value) (problem, fix string) {
	v, err := strconv.ParseInt(n.Value, 0, 64)
	value, unsigned, u := float64(v), into.CanUint(), uint64(v)
	if unsigned && v > 0 && errors.Is(err, strconv.ErrRange) {
		u, err = strconv.ParseUint(strings.TrimPrefix(n.Value, "+"), 0, 64)
		value = float64(u)
	}
	switch tag := n.ShortTag(); {
	case tag != "!!int" && tag != "!!float":
		return Describe(n) + " is not a whole number", ""
	case leadingZero.MatchString(n.Value):
		return ambiguous(n)
	case errors.Is(err, strconv.ErrRange) || err == nil && (!f.holds(value) || unsigned && v < 0):
		return show(n) + " is out of range", ""
	case err != nil:
		return Describe(n) + " is not a whole number", ""
	}
	if unsigned {
		into.SetUint(u)
	} else {
		into.SetInt(v)
	}
	return "", ""
}

func (f *Field) readNumber(n *yaml.Node, into reflect.Value) (problem, fix string) {
	if f.Percent && strings.HasSuffix(n.Value, "%") {
		return f.readPercent(n, into)
	}
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" {
		if share, ok := strings.CutSuffix(n.Value, "%"); ok {
			if v, err := strconv.ParseFloat(share, 64); err == nil && f.holds(v/100) {
				return Describe(n) + " is not a number", "write " + strconv.FormatFloat(v/100, 'g', 10, 64)
			}
		}
		if _, err := strconv.ParseFloat(n.Value, 64); errors.Is(err, strconv.ErrRange) {
			return show(n) + " is out of range", ""
		}
		return Describe(n) + " is not " + f.noun(), ""
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

// percentForm is a share of a hundred; strconv alone would take 0x1p3 and 1e9, too.
var percentForm = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)%$`)

func (f *Field) readPercent(n *yaml.Node, into reflect.Value) (problem, fix string) {
	if !percentForm.MatchString(n.Value) {
		return Describe(n) + " is not " + f.noun(), ""
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(n.Value, "%")+"e-2", 64) // exact, where a division would round twice
	if err != nil || !f.holds(v) {
		return show(n) + " is out of range", ""
	}
	into.SetFloat(v + 0) // no negative zero
	return "", ""
}

func (f *Field) readDuration(n *yaml.Node, into reflect.Value) (problem, fix string) {
	v, err := time.ParseDuration(n.Value)
	switch tag := n.ShortTag(); {
	case err != nil && lacksUnit(n.Value): // only its writer knows which one is meant
		return show(n) + " has no unit",
			fmt.Sprintf("write %s for seconds or %s for milliseconds; %s", Quote(n.Value+"s"), Quote(n.Value+"ms"), f.Fix())
	case (tag == "!!int" || tag == "!!float") && n.Value != "0":
		return show(n) + " has no unit", "units are ms, s, m and h; " + f.Fix()
	case tag != "!!str" && n.Value != "0":
		return Describe(n) + " is not a duration", ""
	case err != nil && durationForm.MatchString(n.Value): // longer than 292 years
		return show(n) + " is out of range", ""
	case err != nil:
		return Describe(n) + " is not a duration", "units are ms, s, m and h; " + f.Fix()
	case !f.holds(float64(v)):
		return show(n) + " is out of range", ""
	}
	into.SetInt(int64(v))
	return "", ""
}

// lacksUnit reports a text that a unit at its end would make a duration.
func lacksUnit(s string) bool {
	_, err := time.ParseDuration(s + "s")
	return err == nil && strings.ContainsAny(s[len(s)-1:], "0123456789.") // not the m of a minute
}

// durationForm is what time.ParseDuration reads, apart from durations that are too long for it.
var durationForm = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

func (f *Field) readWord(n *yaml.Node, into reflect.Value) (problem, fix string) {
	if n.ShortTag() != "!!str" {
		return Describe(n) + " is not text", "write it in quotes: " + Quote(n.Value)
	}
	if f.Allowed == nil {
		into.SetString(n.Value)
		return "", ""
	}
	if slices.Contains(f.Allowed, n.Value) {
		into.SetString(n.Value)
		return "", ""
	}
	if near := nearest.To(n.Value, f.Allowed); near != "" {
		return Quote(n.Value) + " is not known", "did you mean " + near + "? " + f.Fix()
	}
	return Quote(n.Value) + " is not known", ""
}

// Describe shows what stands in the file, with its kind where that is the mistake.
func Describe(n *yaml.Node) string {
	switch n = Resolve(n); n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return "the text " + Quote(n.Value)
	case "!!int", "!!float":
		return "the number " + show(n)
	}
	return show(n)
}

// show is a value as it is written, cut when it is long.
func show(n *yaml.Node) string {
	quoted := Quote(n.Value)
	return quoted[1 : len(quoted)-1]
}
