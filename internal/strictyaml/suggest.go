package strictyaml

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest says what an unknown key may have been meant to be, or else which keys there are.
func Suggest(key string, known []string) string {
	if near := nearest(key, known); near != "" {
		return "did you mean " + near + "?"
	}
	const most = 40
	if more := len(known) - most; more > 0 {
		known = append(slices.Clone(known[:most]), fmt.Sprintf("and %d more", more))
	}
	return "allowed: " + strings.Join(known, ", ")
}

// misplaced knows keys that exist, but elsewhere: in a section of the same list member, or else anywhere below top; or
// outside of the section.
func misplaced(key string, here, top *Shape) string {
	elsewhere, found := here.member.sectionsWith(key, here)
	if found == 0 && top != here.member {
		elsewhere, found = top.sectionsWith(key, here)
	}
	switch {
	case found != 1:
		return ""
	case elsewhere == "":
		return key + " stands beside the sections, not in one"
	}
	return key + " belongs in the section " + elsewhere
}

// sectionsWith is the section, outside of here and of lists, that has a key, and how many do.
func (s *Shape) sectionsWith(key string, here *Shape) (section string, found int) {
	s.each(func(f *Field) {
		path := strings.TrimPrefix(f.Path, s.prefix)
		if f.Key == key && key != "disabled" && here.byKey[key] != f && !strings.Contains(path, "[]") {
			section, found = strings.TrimSuffix(strings.TrimSuffix(path, f.Key), "."), found+1
		}
	})
	return section, found
}

// nearest is the known word that key is most likely a slip for: other letter case or separators, or few wrong letters.
func nearest(key string, known []string) string {
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
