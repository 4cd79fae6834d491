package proxy

// Outside is what went past the policy, as /outside shows it.
type Outside struct {
	Tunnels []TunnelWay      `json:"tunnels"`
	Open    []OpenTunnel     `json:"open"`
	Refused map[string]int64 `json:"refused"` // tunnels, by reason
	// PassThrough is requests that were passed on to hosts that the policy file does not list.
	PassThrough []Passed `json:"passThrough"`
}

func (p *plane) outsideReport() Outside {
	var o Outside
	o.Tunnels, o.Open, o.Refused = p.tunnels.report()
	o.PassThrough = p.outside.report()
	return o
}
