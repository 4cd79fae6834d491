package audit

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer"
)

// diffs returns the changes of all files. Git takes no path that leads out of the folder where it runs, so those of
// files that lie elsewhere are relative to the folder that they have in common, and a line before them says so.
func diffs(before, after []importer.File) string {
	byStart := map[string][]int{}
	var starts []string
	for i := range before {
		if bytes.Equal(before[i].Data, after[i].Data) {
			continue
		}
		start := outside(before[i].Name)
		if byStart[start] == nil {
			starts = append(starts, start)
		}
		byStart[start] = append(byStart[start], i)
	}
	slices.Sort(starts) // what lies below the current folder comes first
	var out strings.Builder
	for _, start := range starts {
		folder := ""
		if start != "" {
			folder = common(before, byStart[start])
			fmt.Fprintf(&out, "The paths below are relative to %s: git -C %q apply\n", folder, folder)
		}
		for _, i := range byStart[start] {
			name := strings.TrimPrefix(strings.TrimPrefix(before[i].Name, folder), "/")
			out.WriteString(Diff(name, before[i].Data, after[i].Data))
		}
	}
	return out.String()
}

// outside returns how a name leads out of the current folder: "../../", "/", "C:". It is empty for one that does not.
func outside(name string) string {
	up := 0
	for strings.HasPrefix(name[up:], "../") {
		up += len("../")
	}
	switch {
	case up > 0:
		return name[:up]
	case path.IsAbs(name):
		return "/"
	case len(name) > 1 && name[1] == ':':
		return name[:2]
	}
	return ""
}

// common returns the innermost folder in which some of the files lie. Their names lead out of the current one in the
// same way.
func common(files []importer.File, some []int) string {
	folder := path.Dir(files[some[0]].Name)
	for _, i := range some[1:] {
		for folder != path.Dir(folder) && !strings.HasPrefix(files[i].Name, strings.TrimSuffix(folder, "/")+"/") {
			folder = path.Dir(folder)
		}
	}
	return folder
}
