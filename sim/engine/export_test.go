package engine

import "unsafe"

// Sizes in bytes of what comes and goes by the million.
const (
	CallSize    = unsafe.Sizeof(call{})
	TaskSize    = unsafe.Sizeof(task{})
	AttemptSize = unsafe.Sizeof(attempt{})
)
