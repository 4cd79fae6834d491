package lint

import "fmt"

// beyond says, behind what is proved of a service, what one request at the same root can become at most, however the
// service fails, if that is more.
func (r *run) beyond(l loudest) string {
	most := l.r.Proved
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
	if most > l.r.Proved {
		return fmt.Sprintf(" (proved; at most %s, however that fails)", number(most))
	}
	return ""
}
