// Package caught counts and logs panics that are caught because they have nowhere to go.
package caught

import (
	"log/slog"
	"math/bits"
	"runtime/debug"
	"sync/atomic"
)

// Panics are those of one guard or gate: an observer's, and that of a copy whose call is over. The zero Panics only
// counts.
type Panics struct {
	// Log is called for each one; nil for nobody.
	Log func(who string, nth uint64, of string, value any)

	count atomic.Uint64
}

// Count returns how many there were so far.
func (p *Panics) Count() uint64 { return p.count.Load() }

// Note counts and logs one: who is the guard or gate, of what panicked.
func (p *Panics) Note(who, of string, value any) {
	nth := p.count.Add(1)
	if p.Log != nil {
		p.Log(who, nth, of, value)
	}
}

// Log writes a panic to slog.Default: the first of a guard or gate, the second, the fourth and so on, because an
// observer that is broken breaks with every event.
func Log(who string, nth uint64, of string, value any) {
	if bits.OnesCount64(nth) != 1 {
		return
	}
	defer func() { _ = recover() }() // a handler of slog that panics, too, is nobody's to fix here
	slog.Default().Error("abate: caught a panic", "of", of, "at", who, "panic", value, "nth", nth, "stack",
		string(debug.Stack()))
}
