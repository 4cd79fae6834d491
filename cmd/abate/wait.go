package main

import (
	"context"
	"fmt"
	"io"
)

func waitCommand(_ context.Context, _ []string, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "abate wait: not there yet")
	return 2
}
