package cli

import (
	_ "embed" // for what a release writes down
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// released is empty in a checkout. A release has its version, commit and date here: the Go command gives a program that
// it installs from a module proxy only the version.
//
//go:embed released.txt
var released string

// Version returns the version of this program, the commit that it was built from and that commit's date, as far as they
// are known.
func Version() string {
	about := versionOf(released, debug.ReadBuildInfo)
	return fmt.Sprintf("%s %s %s/%s", about, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Release is the version of a release, "" in a checkout.
func Release() string {
	version, _, _ := strings.Cut(strings.TrimSpace(released), " ")
	return version
}

// number returns the version, or "latest" in a build that has none.
func number(released string) string {
	if words := strings.Fields(released); len(words) > 0 {
		return words[0]
	}
	return "latest"
}

func versionOf(released string, read func() (*debug.BuildInfo, bool)) string {
	if words := strings.Fields(released); len(words) == 3 {
		return fmt.Sprintf("%s, commit %s of %s,", words[0], words[1], words[2])
	}
	commit, date, changed := "", "", ""
	if info, ok := read(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.time":
				date = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with changes"
			}
		}
	}
	if commit == "" {
		return "devel, built without its commit,"
	}
	return fmt.Sprintf("devel, commit %s of %s%s,", commit, date, changed)
}
