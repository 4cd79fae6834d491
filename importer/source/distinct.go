package source

import "github.com/abate-go/abate/topology"

// Distinct returns remarks without those that were made before: a value that several layers share is read for each.
func Distinct(remarks []topology.Remark) []topology.Remark {
	seen := map[topology.Remark]bool{}
	var out []topology.Remark
	for _, r := range remarks {
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	return out
}
