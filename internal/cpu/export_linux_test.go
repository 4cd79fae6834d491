package cpu

import "time"

// At measures the machine whose file system is at root.
func At(root string) func(now time.Time) float64 {
	m := &meter{sources: sources{root: root}}
	return m.share
}
