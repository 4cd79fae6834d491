package proxy

import (
	"sync"
	"time"
)

// lineLimit lets so many lines a second through and counts the others: an outage must not become a storm of log lines
// too.
type lineLimit struct {
	mu      sync.Mutex
	second  time.Duration
	lines   int
	dropped int
}

// linesPerSecond bounds the records of failed requests. With LogAll there is no bound.
const linesPerSecond = 100

// admit reports whether a line may be written, and how many have not been since the last one that was.
func (l *lineLimit) admit(now time.Duration) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if second := now / time.Second; second != l.second {
		l.second, l.lines = second, 0
	}
	if l.lines >= linesPerSecond {
		l.dropped++
		return 0, false
	}
	l.lines++
	dropped, l.dropped = l.dropped, 0
	return dropped, true
}

// maxLogged bounds what a line shows of a request's path and of its host, which its client makes as long as it likes.
const maxLogged = 1 << 10

func shown(b []byte) string { return string(b[:min(len(b), maxLogged)]) }
