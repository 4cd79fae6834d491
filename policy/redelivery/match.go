package redelivery

import "slices"

// matches reports whether a class of errors is like the pattern, in which each * stands for anything, nothing included.
// It takes time in proportion to the product of their lengths at worst, and allocates nothing.
func matches(pattern, class string) bool {
	star, again := -1, 0 // the last * seen, and where in class what it stands for ends
	p, c := 0, 0
	for c < len(class) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, again = p, c
			p++
		case p < len(pattern) && pattern[p] == class[c]:
			p, c = p+1, c+1
		case star >= 0:
			again++
			p, c = star+1, again
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func anyMatches(patterns []string, class string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, class) })
}
