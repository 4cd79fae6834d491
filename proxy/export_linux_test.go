package proxy

// Resting is how many clients rest.
func (p *Proxy) Resting() int {
	p.lobby.roost.mu.Lock()
	defer p.lobby.roost.mu.Unlock()
	return len(p.lobby.roost.resting)
}
