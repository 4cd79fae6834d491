package proxy

import (
	"time"

	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/calltree"
)

// gatesReport is /gates.
type gatesReport struct {
	Listening []listenReport `json:"listening"`
	// Problems are what is not in force: addresses that cannot be opened, certificates and tokens that cannot be read.
	Problems []string       `json:"problems,omitempty"`
	Redis    *redisReport   `json:"redis,omitempty"`
	Gates    []gateReport   `json:"gates"`
	Trees    calltree.State `json:"callTrees"`
}

type listenReport struct {
	Listen  string `json:"listen"`
	Address string `json:"address"`
	TLS     bool   `json:"tls"`
}

type gateReport struct {
	Gate      string           `json:"gate"`
	Listen    string           `json:"listen"`
	Shed      *shedReport      `json:"shed,omitempty"`
	RateLimit *limitReport     `json:"rateLimit,omitempty"`
	Keys      *keysReport      `json:"idempotency,omitempty"`
	Tokens    int              `json:"bearerTokens,omitempty"`
	Learned   []string         `json:"learned,omitempty"` // see serviceReport
	Endpoints []endpointReport `json:"endpoints"`
	Discovery *discoveryReport `json:"discovery,omitempty"`
}

type shedReport struct {
	Shadow     bool    `json:"shadow,omitempty"`
	Limit      int     `json:"limit"`
	InFlight   int     `json:"inFlight"`
	Queued     int     `json:"queued"`
	QueueDelay string  `json:"queueDelay"`
	CPU        float64 `json:"cpu"`
	RetryShare float64 `json:"retryShare"`
}

type limitReport struct {
	Shadow bool   `json:"shadow,omitempty"`
	Limit  string `json:"limit"`
	Burst  int    `json:"burst"`
	Fleet  bool   `json:"fleet,omitempty"`
	Keys   int    `json:"keys"`
	// Shared counts the requests that found no place for a bucket of their own.
	Shared int64 `json:"shared"`
}

type keysReport struct {
	Methods []string `json:"methods"`
	Fleet   bool     `json:"fleet,omitempty"`
}

func (p *admin) gatesReport() gatesReport {
	r := gatesReport{Listening: []listenReport{}, Problems: p.entrances.problems(),
		Redis: p.entrances.instances.report(), Gates: []gateReport{}}
	r.Trees = p.plane.trees.State()
	for _, e := range p.entrances.list() {
		r.Listening = append(r.Listening, listenReport{e.Listen, e.Addr.String(), e.TLS})
	}
	for _, name := range p.plane.policies.GateNames() {
		if g, ok := p.plane.policies.Gate(name); ok {
			one := p.plane.services.addGate(g).report()
			if at, ok := p.plane.policies.Protection(name); ok {
				one.Listen = at.Listen
			}
			r.Gates = append(r.Gates, one)
		}
	}
	return r
}

func (w *watchpost) report() gateReport {
	p, state := w.gate.Describe(), w.gate.State()
	r := gateReport{Gate: w.gate.Name(), Endpoints: []endpointReport{}, Learned: abateadmin.LearnedByGate(w.gate)}
	if p.Shed.Enabled() {
		s := state.Shed
		r.Shed = &shedReport{p.Shed.Shadow, s.Limit, s.InFlight, s.Queued,
			s.QueueDelay.Round(time.Microsecond).String(), s.CPU, s.RetryShare}
	}
	if l := p.RateLimit; l.Enabled() {
		r.RateLimit = &limitReport{l.Shadow, l.Limit.String(), l.Burst, l.Fleet, state.RateLimit.Keys, state.RateLimit.Shared}
	}
	if k := p.Idempotency; k.Enabled() {
		r.Keys = &keysReport{k.Methods, k.Fleet}
	}
	if now := w.current.Load(); now != nil {
		if now.tokens != nil && now.tokens.value.Load() != nil {
			r.Tokens = now.tokens.value.Load().Len()
		}
		r.Endpoints = now.service.fleet.Load().report(core.Now(), &now.service.checkup)
		r.Discovery = now.service.discoveryReport()
	}
	return r
}
