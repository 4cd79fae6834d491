package plot_test

import (
	"testing"

	"github.com/abate-go/abate/internal/plot"
)

func TestHalfACellIsShadedAndANoteFitsTheLine(t *testing.T) {
	p := plot.Plot{Top: 64, Label: "64", Axis: 3, Note: "a note of some length, longer than what is left of a line for it", At: 20, Columns: []plot.Column{
		{Shade: 3}, {Shade: 4, Wrong: true}, {Shade: 60, Solid: 13, Wrong: true}, {Shade: 1e9, Solid: 1e9},
	}}
	want := ` 64 ┤  ░█
    ┤  ░█
    ┤  ░█
    ┤  ░█
    ┤  ░█
    ┤  ░█
    ┤  ▅█
  0 ┤ ░██
    └─══─
           a note of some length, longer than what is left of a line for it
`
	if got := p.String(); got != want {
		t.Errorf("drawn:\n%swant:\n%s", got, want)
	}
}
