package main

import (
	"context"
	"fmt"
	"io"
)

func exportCommand(_ context.Context, _ []string, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "abate export: not there yet")
	return 2
}
