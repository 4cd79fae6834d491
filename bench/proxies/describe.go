package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

const grpcModule = "google.golang.org/grpc"

var (
	processorName = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	versionNumber = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)
)

// describe says where and with what the numbers were taken.
func (l *lab) describe(m mode) []string {
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
	load := m.load
	switch {
	case load != "":
	case l.wrk == "":
		load = "this command (wrk is not installed)"
	default:
		load = fmt.Sprintf("wrk %s -t%d -c%d", l.version("wrk", "-v"), threads, connections)
	}
	return []string{
		fmt.Sprintf("machine: %d × %s, Linux %s", runtime.NumCPU(), processor, kernel),
		fmt.Sprintf("versions: %s, nginx %s, HAProxy %s, fasthttp %s, grpc-go %s; 2 processors each", runtime.Version(),
			l.version("nginx", "-v"), l.version("haproxy", "-v"), dependency("github.com/valyala/fasthttp"),
			dependency(grpcModule)),
		fmt.Sprintf("upstream: %s; load: %s; passes: %d, interleaved: medians (min–max)", l.upstream, load,
			m.passesOf(l.opt)),
	}
}

// version is the first version number that a program prints about itself.
func (l *lab) version(program, argument string) string {
	text, _ := l.output(program, argument) // wrk -v prints its version and fails
	if number := versionNumber.FindString(text); number != "" {
		return number
	}
	return "(not installed)"
}

// dependency is the version of a module that this command was built with.
func dependency(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == module {
				return d.Version
			}
		}
	}
	return "(unknown)"
}
