package proxy

// Outside is what went past the policy, as /outside shows it.
type Outside struct {
	Tunnels []TunnelWay      `json:"tunnels"`
	Open    []OpenTunnel     `json:"open"`
	Refused map[string]int64 `json:"refused"` // tunnels, by reason
	// PassThrough is requests that were passed on to hosts that the policy file does not list.
	PassThrough []Passed `json:"passThrough"`
	// NoService is requests that got a 404, since they belong to no service of the policy file: by the service that they
	// were meant for (see ServeFor), which the file does not have; "" where that is not known. Those at addresses of the
	// file's protect are not among them.
	NoService map[string]int64 `json:"noService"`
}

func (p *plane) outsideReport() Outside {
	var o Outside
	o.Tunnels, o.Open, o.Refused = p.tunnels.report()
	o.PassThrough = p.outside.report()
	o.NoService = p.outside.strays()
	return o
}
