package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/internal/nearest"
)

// Suggest says what an unknown key may have been meant to be, or else which keys there are.
func Suggest(key string, known []string) string {
	if near := nearest.To(key, known); near != "" {
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
