package proxy

import "time"

// The tests wait longer than the proxy does for what comes a moment later: the machine may stand still in between.
// Clients rest soon, so that many do.
func init() {
	headWait, messageWait, lookEvery, restAfter = 2*time.Second, 2*time.Second, 5*time.Millisecond, 20*time.Millisecond
}

// Endpoints is how many endpoints a service has, and whether all of them are those.
func (p *Proxy) Endpoints(service string, want map[string]bool) (n int, same bool) {
	d, ok := p.plane.policies.Service(service)
	if !ok {
		return 0, false
	}
	f := p.plane.services.of(d.Guard, nil).fleetOf(&d)
	for _, e := range f.endpoints {
		if !want[e.addr] {
			return len(f.endpoints), false
		}
	}
	return len(f.endpoints), len(f.endpoints) == len(want)
}

// Scarce is what the calls to a service are told of what their callers hold.
func (p *Proxy) Scarce(service string) bool {
	return p.plane.policies.Guard(service).Describe().Places.Scarce()
}

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

// Examined is how many endpoints of a service are asked how they are.
func (p *Proxy) Examined(service string) int {
	d, ok := p.plane.policies.Service(service)
	if !ok {
		return 0
	}
	u := &p.plane.services.of(d.Guard, nil).checkup
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.of)
}

// Idle is how many clients would make room for others in time.
func (p *Proxy) Idle() (n int) {
	p.lobby.mu.Lock()
	defer p.lobby.mu.Unlock()
	for c := range p.lobby.clients {
		_, coming := comingSince(c)
		if _, idle := c.idleSince(); idle && !coming {
			n++
		}
	}
	return n
}

// SaidOfFull returns how many are spoken of at the end of each second, in which so many found no room.
func SaidOfFull(each []int) (said []int) {
	var f full
	for i, n := range each {
		f.waited += n
		said = append(said, f.due(time.Duration(i+1)*time.Second))
	}
	return said
}
