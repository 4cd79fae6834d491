package proxy

import "time"

// The tests wait longer than the proxy does for what comes a moment later: the machine may stand still in between.
func init() { headWait, messageWait = 2*time.Second, 2*time.Second }

// Clients is how many are connected.
func (p *Proxy) Clients() int {
	p.lobby.mu.Lock()
	defer p.lobby.mu.Unlock()
	return len(p.lobby.clients)
}

// UpstreamSlots sets how many connections to services there are for streams beside each client's own. It returns how
// many wait.
func (p *Proxy) UpstreamSlots(n int64) (waiting func() int) {
	p.plane.out.upstreamSlots.stock = n
	return func() int { return int(p.plane.out.upstreamSlots.waiting.Load()) }
}
