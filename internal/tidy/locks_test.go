package tidy

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// quick are acts that nobody waits for: decisions may not do them, but whoever holds a lock may.
var quick = []string{
	"time.Now", "time.Since", "time.Until", "time.NewTimer", "time.AfterFunc", "time.Timer",
	"math/rand", "hash/maphash", "runtime.",
}

// mayWait reports whether whoever does it may have to wait: for a channel, for another goroutine, for the
// network or a disk, for a user.
func mayWait(act *fn) bool {
	if strings.HasPrefix(act.name, "a user's ") && strings.HasSuffix(act.name, "Observer") {
		return true
	}
	return act.act != "" && act.act != "a go statement" &&
		!slices.ContainsFunc(quick, func(prefix string) bool { return strings.HasPrefix(act.name, prefix) })
}

// waitsUnderLock finds locks that decisions take, and that somebody holds while he waits: then a decision waits, too.
func (e exceptions) waitsUnderLock(t *tree) []finding {
	g, err := e.graphOf(t)
	if err != nil {
		return []finding{{"go.work", 1, err.Error()}}
	}
	ways := g.ways(mayWait, func(*fn) bool { return true }, func(c call) bool { return !c.named })
	deciding := make(map[types.Object]bool)
	for _, l := range g.locks {
		deciding[l.mutex] = deciding[l.mutex] || g.decides(l.in)
	}
	var found []finding
	for _, l := range g.locks {
		if l.unlocks || !deciding[l.mutex] {
			continue
		}
		until := g.unlocked(l)
		for _, c := range l.in.calls {
			if c.named || c.at <= l.at || c.at >= until || !mayWait(c.to) && ways[c.to] == nil {
				continue
			}
			at := g.place(c.at)
			way, act := g.way(l.in, c, ways)
			found = append(found, finding{at.Filename, at.Line, fmt.Sprintf(
				"%s is banned here, use it after unlocking %s, which decisions lock (%s)%s",
				act.name, l.mutex.Name(), whyPure, way)})
			break
		}
	}
	return found
}

// unlocked is where the text unlocks next what is locked at l.
func (g *graph) unlocked(l lock) token.Pos {
	until := l.in.decl.End()
	for _, u := range g.locks {
		if u.unlocks && !u.deferred && u.in == l.in && u.mutex == l.mutex && u.at > l.at {
			until = min(until, u.at)
		}
	}
	return until
}

func TestNobodyWaitsWhileADecisionsLockIsHeld(t *testing.T) {
	holds(t, exceptions{ports, handed}.waitsUnderLock)
}
