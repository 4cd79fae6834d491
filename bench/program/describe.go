package program

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

var (
	processorName = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)
)

// Machine is a line that says on what the numbers were taken.
func Machine() string {
	processor := "processors"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := processorName.FindSubmatch(text); found != nil {
			processor = string(found[1])
		}
	}
	kernel := "unknown"
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("machine: %d × %s, Linux %s", runtime.NumCPU(), processor, kernel)
}

// Version is the first version number that a program prints about itself.
func Version(ctx context.Context, path, argument string) string {
	text, _ := Output(ctx, path, argument) // wrk -v prints its version and fails
	if number := versionNumber.FindString(text); number != "" {
		return number
	}
	return "(not installed)"
}

// Dependency is the version of a module that this command was built with.
func Dependency(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == module {
				return d.Version
			}
		}
	}
	return "(unknown)"
}
