// Package nearest guesses what a misspelt word was meant to be.
package nearest

import "strings"

// To returns the known word that key is most likely a slip for: other letter case or separators, or few wrong letters
// for a word of its length. It is empty when none is near, or key is longer than 64 bytes.
func To(key string, known []string) string {
	const longest = 64
	if len(key) > longest {
		return ""
	}
	best, bestDistance := "", 1+max(1, min(3, len(key)/3))
	for _, k := range known {
		if plain(k) == plain(key) {
			return k
		}
		if d := len(k) - len(key); max(d, -d) >= bestDistance { // at least so many letters differ
			continue
		}
		if d := distance(strings.ToLower(key), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func plain(s string) string { return strings.ToLower(separators.Replace(s)) }

// distance is how many letters have to be put in, left out, changed or swapped with their neighbour.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
