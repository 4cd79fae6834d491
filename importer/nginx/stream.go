package nginx

import (
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// stream reads the connections that are passed on without being looked into. Only opening a connection is tried again.
func (in *instance) stream(s *scope) {
	groups := upstreams(s)
	for _, d := range s.directives {
		if d.name() != "server" || !d.opens {
			continue
		}
		server := &scope{outer: s, kind: "server", directives: d.block, upstreams: groups}
		if listen, _ := server.find("listen"); listen != nil {
			server.other = text(listen.words)
		}
		for _, p := range d.block {
			if target, ok := p.arg(1); ok && p.name() == "proxy_pass" {
				in.connect(server, p, target)
			}
		}
	}
}

func (in *instance) connect(s *scope, d *directive, target word) {
	for _, address := range s.resolve(target.text) {
		in.connectTo(s, d, target, address)
	}
}

func (in *instance) connectTo(s *scope, d *directive, target word, address string) {
	u := s.upstreams[address]
	if u == nil {
		u = alone(called(address), target.at)
	}
	to, aliases := u.to()
	in.unfilled(address+" "+to, called(to), target)
	to = called(to)
	if to == "" {
		in.remark("F702", target.at, "proxy_pass "+target.text,
			"where "+address+" leads is known only when a connection comes",
			"write a line under calls: for it")
		return
	}
	at := d.at()
	l := topology.Layer{Kind: topology.Gateway, Product: "nginx", Version: in.version, Name: "stream " + s.other, At: at,
		Match:     topology.Match{Other: s.other},
		Choice:    "nginx " + in.service,
		PerTry:    value(in, s, "proxy_timeout", duration, 10*time.Minute, at),
		Connect:   value(in, s, "proxy_connect_timeout", duration, 60*time.Second, at),
		Overall:   value(in, s, "proxy_next_upstream_timeout", duration, 0, at),
		Endpoints: u.count(), StartsOnly: true,
		Backoff: topology.Backoff{First: topology.DefaultOf(time.Duration(0), in.product()+", which has no back-off", at)},
		Cancels: topology.DefaultOf(true, in.product(), at),
		Answers: []topology.Answer{{After: topology.Refused, Gives: topology.ResetSent},
			{After: topology.Hang, Gives: topology.ResetSent}},
	}
	if on := value(in, s, "proxy_next_upstream", source.Bool, true, at); on.Or(true) {
		l.Repeats = []topology.Repeat{{On: []topology.Outcome{topology.Refused}, Methods: topology.AllMethods,
			Tries: in.tries(s, "proxy", at, u), Word: "proxy_next_upstream", At: at, Elsewhere: true}}
	}
	if u.servers > 1 || u.unknown != "" {
		l.Ejection = u.ejection(in.product())
	}
	if len(aliases) > 0 {
		in.form.Services = append(in.form.Services, topology.Service{Name: to, At: u.at, Aliases: aliases})
	}
	in.calls = append(in.calls, located{call: topology.Call{From: in.service, To: to, At: at,
		Layers: []topology.Layer{l}}})
}
