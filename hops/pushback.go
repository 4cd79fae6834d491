package hops

import (
	"strconv"
	"time"
)

// Pushback is what a server said in grpc-retry-pushback-ms (gRPC A6): when to come back, or never.
type Pushback struct {
	// Never: do not try again.
	Never bool
	// Wait is how long to wait at least. 0: nothing was said, or there is no need to wait.
	Wait time.Duration
}

// ParsePushback reads the values of the header. One that is negative or no number, and more than one, mean never, as in
// grpc-go. It allocates nothing.
func ParsePushback(values []string) Pushback {
	switch len(values) {
	case 0:
		return Pushback{}
	case 1:
	default:
		return Pushback{Never: true}
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 0 || n >= mostMilliseconds {
		return Pushback{Never: true}
	}
	return Pushback{Wait: time.Duration(n) * time.Millisecond}
}

// AppendPushback appends a value of the header: whole milliseconds, rounded up, -1 for never. It allocates nothing if
// dst has room.
func AppendPushback(dst []byte, p Pushback) []byte {
	if p.Never {
		return append(dst, "-1"...)
	}
	p.Wait = min(p.Wait, (mostMilliseconds-1)*time.Millisecond)
	ms := (p.Wait + time.Millisecond - 1) / time.Millisecond
	return strconv.AppendInt(dst, max(int64(ms), 0), 10)
}
