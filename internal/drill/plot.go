package drill

import (
	"fmt"

	"github.com/abate-go/abate/internal/plot"
)

// plotTop returns the attempts per second that the top of all plots stands for, so that acts can be compared by eye.
func (r *Result) plotTop() float64 {
	top := 1.0
	for _, a := range r.Acts {
		for _, b := range a.Series {
			top = max(top, float64(b.Attempts)/a.BinSeconds, float64(b.Answered)/a.BinSeconds)
		}
	}
	return plot.Top(top)
}

// Plot draws one act: attempts as a shade, goodput as solid blocks in front of it, and the trouble below. It is at most
// 80 columns wide.
func (a *ActResult) Plot(s Setup, top float64) string {
	p := plot.Plot{Top: top, Label: thousands(top), Axis: 8, Note: "▲ " + s.Trouble, At: int(s.BeforeSeconds / a.BinSeconds)}
	for _, b := range a.Series {
		p.Columns = append(p.Columns, plot.Column{
			Shade: float64(b.Attempts) / a.BinSeconds, Solid: float64(b.Answered) / a.BinSeconds,
			Wrong: b.AtSeconds >= s.BeforeSeconds && b.AtSeconds < s.BeforeSeconds+s.TroubleSeconds,
		})
	}
	return fmt.Sprintf("%s: attempts %c and answers %c per second, one column is %.3g s\n%v", a.Act, plot.Shade, plot.Solid, a.BinSeconds, &p)
}
