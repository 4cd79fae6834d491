package proxy

import (
	"sync"
	"time"
)

// throttle lets so many lines a second through and counts the others: an outage must not become a storm of log lines
// too.
type throttle struct {
	mu      sync.Mutex
	second  time.Duration
	lines   int
	dropped int
}

// linesPerSecond bounds the records of failed requests. With LogAll there is no bound.
const linesPerSecond = 100

// admit reports whether a line may be written, and how many have not been since the last one that was.
func (t *throttle) admit(now time.Duration) (dropped int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if second := now / time.Second; second != t.second {
		t.second, t.lines = second, 0
	}
	if t.lines >= linesPerSecond {
		t.dropped++
		return 0, false
	}
	t.lines++
	dropped, t.dropped = t.dropped, 0
	return dropped, true
}

// maxLogged bounds what a line shows of a request's path and of its host, which its client makes as long as it likes.
const maxLogged = 1 << 10

func shown(b []byte) string { return string(b[:min(len(b), maxLogged)]) }
