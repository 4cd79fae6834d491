package tidy

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// The words and folders are put together here so that this file does not match
// itself.
var (
	leftover = regexp.MustCompile(
		`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "WI" + "P"}, "|") + `)\b`)

	// machinePath is a folder of somebody's machine at the start of a path.
	machinePath = regexp.MustCompile("(?m)(?:^|[\\s\"'`(=:,>\\[])(" +
		strings.Join([]string{"/wo" + "rk/", "/ho" + "me/", "/Us" + "ers/", "/ro" + "ot/", `C:\\Us` + "ers"}, "|") + ")")
)

// leftovers finds marks of unfinished work.
func leftovers(t *tree) []finding {
	return grep(t, leftover, func(path string, line int, word string) finding {
		return banned(path, line, "the mark "+word, "an issue, or do it now", "a mark in the code is read by nobody")
	})
}

// machinePaths finds paths that exist on one machine only.
func machinePaths(t *tree) []finding {
	return grep(t, machinePath, func(path string, line int, word string) finding {
		return banned(path, line, "a path under "+word, "a path from the repository's root", "it exists on one machine only")
	})
}

// grep reports the first group of every match in every text, except in checksums.
func grep(t *tree, pattern *regexp.Regexp, report func(path string, line int, word string) finding) []finding {
	var found []finding
	for _, f := range t.texts {
		if path.Ext(f.path) == ".sum" {
			continue
		}
		for _, at := range pattern.FindAllSubmatchIndex(f.body, -1) {
			line := 1 + strings.Count(string(f.body[:at[2]]), "\n")
			found = append(found, report(f.path, line, string(f.body[at[2]:at[3]])))
		}
	}
	return found
}

func TestNoLeftoverMarks(t *testing.T) { holds(t, leftovers) }

func TestNoPathsOfOneMachine(t *testing.T) { holds(t, machinePaths) }

func TestLeftoverRuleFails(t *testing.T) {
	provoke(t, leftovers, []example{
		{"in code", "a.go:3: error: the mark TO" + "DO", source{"a.go": "package p\n\n// TO" + "DO: later\n"}},
		{"in prose", "docs/a.md:1: error: the mark FIX" + "ME", source{"docs/a.md": "FIX" + "ME\n"}},
		{"inside a word", "", source{"a.md": "ALL_TO" + "DOS and MXX" + "XM\n"}},
		{"in a checksum", "", source{"go.sum": "h1:a/XX" + "X/b=\n"}},
		{"in a binary", "", source{"a.png": "\x00TO" + "DO"}},
	})
}

func TestMachinePathRuleFails(t *testing.T) {
	provoke(t, machinePaths, []example{
		{"in code", "a.go:3: error: a path under /wo" + "rk/", source{"a.go": "package p\n\nvar a = \"/wo" + "rk/main\"\n"}},
		{"in prose", "a.md:2:", source{"a.md": "see\n/ho" + "me/me/notes\n"}},
		{"in a flag", "Makefile:1:", source{"Makefile": "x: ; go build -o=/ro" + "ot/bin\n"}},
		{"in a configuration", "a.yaml:1:", source{"a.yaml": "dir: /Us" + "ers/me\n"}},
		{"inside another path", "", source{"a.md": "https://example.com/wo" + "rk/main and docs/ho" + "me/a\n"}},
	})
}
