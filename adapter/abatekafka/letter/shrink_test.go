package letter_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

func TestRecordsShrinkStepByStepAndKeepTheirPlace(t *testing.T) {
	l := sample()
	l.Value = bytes.Repeat([]byte("v"), 5000)
	l.Message = strings.Repeat("m", 1000)
	r := record(&l, letter.Abate)
	steps := []letter.Letter{l}
	for letter.Shrink(r) {
		got, problems := letter.Read(r)
		if problems != nil {
			t.Fatal(problems)
		}
		steps = append(steps, got)
	}
	if len(steps) != 6 {
		t.Fatalf("%d steps, want 5: the trace, message and history, the value, the headers, the key", len(steps)-1)
	}
	want := l
	want.Trace = ""
	same(t, steps[1], want)
	want.History, want.Message = nil, strings.Repeat("m", 125)+"…"
	same(t, steps[2], want)
	want.Value, want.Pointer = nil, true
	same(t, steps[3], want)
	want.Headers = nil
	same(t, steps[4], want)
	want.Key = nil
	same(t, steps[5], want)
}

// Without a place to point to the value would be lost.
func TestValueStaysIfNobodyKnowsWhereItCameFrom(t *testing.T) {
	l := letter.Letter{Value: []byte("v"), Key: []byte("k"), Message: "m"}
	if r := record(&l, letter.Abate); letter.Shrink(r) {
		t.Errorf("shrunk to %v", r)
	}
}
