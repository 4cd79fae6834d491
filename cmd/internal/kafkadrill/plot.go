package kafkadrill

import (
	"fmt"

	"github.com/abate-go/abate/internal/plot"
)

// plotTop is what the top of both plots stands for. What the worst seconds need above it is cut off: the normal load must stay visible.
func (r *Result) plotTop() float64 {
	const most = 4 // times the capacity
	top := 1.0
	for _, a := range r.Acts {
		for _, p := range a.Series {
			top = max(top, float64(p.Attempts), float64(p.Handled))
		}
	}
	return plot.Top(min(top, most*r.Setup.CapacityPerSecond))
}

// plot draws one act, a column per second: attempts as a shade, what was handled as solid blocks in front of it, the outage below.
func (a *ActResult) plot(s Setup, top float64) string {
	p := plot.Plot{Top: top, Label: fmt.Sprintf("%.0f", top), Axis: 6, Note: fmt.Sprintf("▲ outage of %.3g s", s.OutageSeconds), At: int(s.BeforeSeconds)}
	for _, b := range a.Series {
		p.Columns = append(p.Columns, plot.Column{
			Shade: float64(b.Attempts), Solid: float64(b.Handled),
			Wrong: b.AtSeconds >= s.BeforeSeconds && b.AtSeconds < s.BeforeSeconds+s.OutageSeconds,
		})
	}
	return fmt.Sprintf("%s: attempts %c and messages handled %c per second\n%v", a.Act, plot.Shade, plot.Solid, &p)
}
