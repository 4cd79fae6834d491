package source

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// Scalar reads a node as a value: absent when the file has none, unknown when it is a template or is not what parse
// reads, otherwise written at its place. A value that parse does not read is a remark as well.
func Scalar[T topology.Scalar](n Node, parse func(string) (T, error)) (topology.Value[T], []topology.Remark) {
	if !n.Exists() {
		return topology.Value[T]{}, nil
	}
	return Word(n.Text(), n.At(), parse)
}

// Word is Scalar for a word of a format that is not YAML.
func Word[T topology.Scalar](word string, at topology.Position, parse func(string) (T, error)) (topology.Value[T],
	[]topology.Remark) {
	if t := Template(word); t != "" {
		return topology.NotKnown[T]("template "+t, at), []topology.Remark{{Rule: "F702", At: at, Subject: "value " + word,
			Text: t + " stands where a value belongs, so what follows from it is not known",
			Fix:  "pass the file as it is rendered, or write the value into a topology file"}}
	}
	v, err := parse(word)
	if err != nil {
		return topology.NotKnown[T](err.Error(), at), []topology.Remark{{Rule: "F702", At: at, Subject: "value " + word,
			Text: err.Error(), Fix: "correct it"}}
	}
	return topology.Write(v, at), nil
}

// Int reads a whole number that is not negative.
func Int(word string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(word))
	if err != nil || n < 0 || n >= topology.Unbounded {
		return 0, fmt.Errorf("%q is no whole number from 0 up", word)
	}
	return n, nil
}

// Float reads a number that is not negative; with a percent sign, its hundredth.
func Float(word string) (float64, error) {
	text, percent := strings.CutSuffix(strings.TrimSpace(word), "%")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0) || f > 1e15 {
		return 0, fmt.Errorf("%q is no number from 0 up", word)
	}
	if percent {
		f /= 100
	}
	return f, nil
}

// Bool reads true or false, as YAML and most programs write them.
func Bool(word string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", word)
}

// Duration reads a duration as Go, Envoy, Kubernetes and Istio write it: 1.5s, 250ms, 1m30s.
func Duration(word string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(word))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no duration such as 250ms or 1.5s", word)
	}
	return d, nil
}

// DurationIn returns a function that reads a duration with a unit, or a bare number of the unit given.
func DurationIn(unit time.Duration) func(string) (time.Duration, error) {
	return func(word string) (time.Duration, error) {
		if n, err := strconv.ParseFloat(strings.TrimSpace(word), 64); err == nil && n >= 0 && n < 1e12 {
			return time.Duration(n * float64(unit)), nil
		}
		return Duration(word)
	}
}

// Text reads any word.
func Text(word string) (string, error) { return word, nil }
