package lint

import (
	"fmt"
	"math"
)

// beyond says, behind what is proved of a service, what one request at the same root can become at most, however the
// service fails, if that is more.
func (r *run) beyond(l loudest) string {
	most := l.r.Proved
	if math.IsInf(most, 1) {
		return ""
	}
	for _, b := range r.amplified.Bounds {
		for _, root := range b.Roots {
			if b.Service != l.b.Service || root.Root != l.r.Root || root.Outside != l.r.Outside {
				continue
			}
			if !root.Known {
				return " (proved; it may be more, for some values are not known)"
			}
			most = max(most, root.Worst)
		}
	}
	switch {
	case math.IsInf(most, 1):
		return " (proved; nothing bounds what it may be)"
	case number(most) != number(l.r.Proved): // as large numbers are written, some are the same
		return fmt.Sprintf(" (proved; at most %s, however that fails)", number(most))
	}
	return ""
}
