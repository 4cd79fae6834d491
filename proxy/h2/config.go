package h2

import "time"

// Config holds the settings of a connection. The zero Config is ready for use: a zero field stands for its default.
type Config struct {
	// MaxStreams is how many streams a client may have open at once; more are refused (REFUSED_STREAM). Twice as many may
	// have a goroutine, because a goroutine may outlive its stream. Default 1000. Only servers use it.
	MaxStreams int
	// StreamWindow is how much content of one stream the peer may send before it is read. It doubles, up to
	// MaxStreamWindow, while a stream is read as fast as it comes. The default and the least is 65535 bytes.
	StreamWindow int
	// MaxStreamWindow is how large the window of a stream becomes. Default 512 KiB.
	MaxStreamWindow int
	// ConnWindow is how much content of all streams together the peer may send before it is read: the most that received
	// content takes of memory. Default 2 MiB, least 65535 bytes.
	ConnWindow int
	// MaxHeadBytes bounds a head or a trailer as RFC 9113 §6.5.2 measures it: names, values, and 32 bytes for each field.
	// A longer request is answered with 431, a longer answer fails. Default 64 KiB.
	MaxHeadBytes int
	// HeaderTimeout is how long the peer has for its first SETTINGS frame, and for a head once it has begun. Default 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection may be without streams before it sends GOAWAY and ends. Default 2 min; negative
	// for no limit.
	IdleTimeout time.Duration
	// PingAfter is how long the peer may be silent, while there are streams, before it gets a PING; again after twice and
	// four times that, and from then on every five minutes or a little more: servers of gRPC end a connection that asks
	// more often. Default 15 s; negative for never.
	PingAfter time.Duration
	// PingTimeout is how long the peer has for an answer to that PING. Then the connection ends. Default 5 s.
	PingTimeout time.Duration
	// StallTimeout is how long the peer may accept nothing. If it accepts nothing of what is written, the connection ends;
	// if the window of one stream stays closed, that stream is reset. It also bounds a pause within a frame that has
	// begun. Default 30 s. On Linux, what lies in the buffers of the socket counts as not accepted.
	StallTimeout time.Duration
	// Bounded says that the kernel has been told already, for the socket, how long the peer may leave there what was
	// written. Default false: it is told when a connection is made.
	Bounded bool
	// MaxResets is how many streams a client may reset within 100 ms of opening them before the connection ends
	// (ENHANCE_YOUR_CALM). Each stream that is answered allows for one more, and each second for a tenth of MaxResets.
	// Default 1000.
	MaxResets int
	// ExtendedConnect has a server take an extended CONNECT (RFC 8441), which begins another protocol in a stream: its
	// Head has a Protocol.
	ExtendedConnect bool
	// OnClosing, if not nil, is called once, when a connection takes no more streams: after GOAWAY of either side, or at
	// its end. It must not wait.
	OnClosing func(*Conn)
}

// withDefaults returns c with a value for every field.
func (c Config) withDefaults() Config {
	number := func(n *int, fallback, least int) {
		if *n <= 0 {
			*n = fallback
		}
		*n = max(*n, least)
	}
	period := func(d *time.Duration, fallback time.Duration) {
		if *d == 0 {
			*d = fallback
		}
	}
	number(&c.MaxStreams, 1000, 1)
	number(&c.StreamWindow, initialWindow, initialWindow)
	number(&c.MaxStreamWindow, 512<<10, c.StreamWindow)
	number(&c.ConnWindow, 2<<20, initialWindow)
	number(&c.MaxHeadBytes, 64<<10, 1<<10)
	number(&c.MaxResets, 1000, 10)
	period(&c.HeaderTimeout, 10*time.Second)
	period(&c.IdleTimeout, 2*time.Minute)
	period(&c.PingAfter, 15*time.Second)
	period(&c.PingTimeout, 5*time.Second)
	period(&c.StallTimeout, 30*time.Second)
	return c
}
