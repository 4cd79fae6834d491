//go:build !linux

package process

import "github.com/abate-go/abate/internal/series"

// Collect sends nothing.
func (Process) Collect(func(series.Sample)) {}
