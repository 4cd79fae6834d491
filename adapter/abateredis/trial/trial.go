// Package trial is a Redis inside this process, for trying what needs one. It keeps nothing, and other processes that
// start one have another.
package trial

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// step is how often keys expire.
const step = 50 * time.Millisecond

// Start starts one on a free port of the loopback interface. stop ends it.
func Start() (addr string, stop func(), err error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return "", nil, fmt.Errorf("trial: the embedded Redis: %w", err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(step)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-end:
				server.Close()
				return
			case now := <-ticker.C: // its keys expire only when FastForward is called
				server.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	return server.Addr(), func() { close(end); <-ended }, nil
}
