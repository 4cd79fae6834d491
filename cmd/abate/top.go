package main

import (
	"context"
	"fmt"
	"io"
)

func topCommand(_ context.Context, _ []string, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "abate top: not there yet")
	return 2
}
