package abate

import (
	"log/slog"
	"math/bits"
	"runtime/debug"
)

// logPanic writes a panic that was caught and cannot go on to slog.Default: the first of a guard or gate, the second, the fourth
// and so on, because an observer that is broken breaks with every event.
func logPanic(who string, nth uint64, of string, value any) {
	if bits.OnesCount64(nth) != 1 {
		return
	}
	defer func() { _ = recover() }() // a handler of slog that panics, too, is nobody's to mend here
	slog.Default().Error("abate: caught a panic", "of", of, "at", who, "panic", value, "nth", nth, "stack", string(debug.Stack()))
}
