//go:build !unix

package httpdrill

import "time"

func cpuTime() time.Duration { return 0 }

// FileLimit returns how many file descriptors this process may open; false where there is no such limit.
func FileLimit() (uint64, bool) { return 0, false }
