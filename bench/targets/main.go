// Command targets reads the output of `go test -bench` (any number of passes,
// from files or standard input), takes the median of every row and compares the
// ratios to what the project promises:
//
//	go run ./targets [-strict] out.txt
//
// A target or a peer that did not run is said to be missing, never guessed. With
// -strict the exit status is 1 when a target is missed or did not run.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	strict := flag.Bool("strict", false, "exit 1 when a target is missed or did not run")
	flag.Parse()
	samples, err := read(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "targets:", err)
		os.Exit(2)
	}
	lines := judge(promises, samples)
	if err := write(os.Stdout, lines); err != nil {
		fmt.Fprintln(os.Stderr, "targets:", err)
		os.Exit(2)
	}
	if *strict && !allMet(lines) {
		os.Exit(1)
	}
}

// read parses all files as one run, or standard input when there are none.
func read(files []string) (results, error) {
	samples := make(results)
	if len(files) == 0 {
		return samples, parse(samples, os.Stdin)
	}
	for _, name := range files {
		if err := readFile(samples, name); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

func readFile(into results, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return parse(into, io.Reader(f))
}
