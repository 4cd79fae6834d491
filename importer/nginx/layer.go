package nginx

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// passing are the directives that pass a request on; each has settings of its own with the same prefix.
var passing = []string{"proxy", "grpc", "fastcgi", "uwsgi", "scgi"}

// passes adds the calls that a block makes itself.
func (in *instance) passes(s *scope) {
	for _, d := range s.directives {
		prefix, isPass := strings.CutSuffix(d.name(), "_pass")
		target, ok := d.arg(1)
		if !isPass || !ok || d.opens || !slices.Contains(passing, prefix) {
			continue
		}
		in.pass(s, prefix, d, target)
	}
}

// pass adds a call for each address that a target can be.
func (in *instance) pass(s *scope, prefix string, d *directive, target word) {
	all := s.resolve(target.text)
	for _, address := range all {
		one, what := *s, target
		if len(all) > 1 {
			one.other = strings.TrimSpace(one.other + " where " + target.text + " is " + address)
			what.text = address
		}
		in.passTo(&one, prefix, d, what, address)
	}
}

// hostOf returns the host of an address, with its port.
func hostOf(address string) string {
	host := address
	if i := strings.Index(host, "://"); i >= 0 {
		host = host[i+3:]
	}
	if !strings.HasPrefix(host, "unix:") {
		host, _, _ = strings.Cut(ofRequest.ReplaceAllString(host, ""), "/")
	}
	return host
}

func (in *instance) passTo(s *scope, prefix string, d *directive, target word, address string) {
	host := hostOf(address)
	u := s.upstreams[host]
	if u == nil {
		u = alone(called(host), target.at)
	}
	to, aliases := u.to()
	in.unfilled(host+" "+to, called(to), target)
	to = called(to)
	if to == "" || source.Template(to) != "" {
		when := "when a request comes"
		if placeholder.MatchString(target.text) {
			if in.files.filledIn[target.at.File] {
				return
			}
			when = "when the file is filled in"
		}
		in.remark("F702", target.at, d.name()+" "+target.text, "where "+target.text+" leads is known only "+when,
			"write a line under calls: for it, or name the upstream")
		return
	}
	in.form.Remarks = append(in.form.Remarks, u.remarks...)
	u.remarks = nil
	if len(aliases) > 0 {
		in.form.Services = append(in.form.Services, topology.Service{Name: to, At: u.at, Aliases: aliases})
	}
	in.calls = append(in.calls, located{topology.Call{From: in.service, To: to, At: d.at(),
		Layers: []topology.Layer{in.layer(s, prefix, d, u)}}, s.rank()})
}

// layer is one location that passes its requests to an upstream.
func (in *instance) layer(s *scope, prefix string, d *directive, u *upstream) topology.Layer {
	at := d.at()
	l := topology.Layer{Kind: topology.Gateway, Product: "nginx", Version: in.version, Name: s.title(), At: at,
		Choice:    "nginx " + in.service,
		Match:     topology.Match{Host: s.name, Path: s.path, Other: s.other},
		PerTry:    value(in, s, prefix+"_read_timeout", duration, 60*time.Second, at),
		Connect:   value(in, s, prefix+"_connect_timeout", duration, 60*time.Second, at),
		Overall:   value(in, s, prefix+"_next_upstream_timeout", duration, 0, at),
		Endpoints: u.count(), StartsOnly: true,
		Backoff: topology.Backoff{First: topology.DefaultOf(time.Duration(0), in.product()+", which has no back-off", at)},
		Cancels: flag(in, s, prefix+"_ignore_client_abort", false, true),
		Answers: []topology.Answer{
			{After: topology.Refused, Gives: topology.S502}, {After: topology.ResetUnsent, Gives: topology.S502},
			{After: topology.ResetSent, Gives: topology.S502}, {After: topology.Hang, Gives: topology.S504},
		},
	}
	if prefix == "grpc" {
		l.Speaks = topology.Write(topology.SpeaksGRPC, at)
	}
	l.Repeats, l.Upgrades = in.repeats(s, prefix, d, u), s.upgrades(prefix)
	if u.servers > 1 || u.unknown != "" {
		l.Ejection = u.ejection(in.product())
	}
	if u.limited {
		l.Limits.Connections = topology.Write(u.conns, u.maxConns)
	}
	return l
}

// upgrades reports whether a location passes on that a client wants a websocket. Headers are inherited only by a block
// that sets none.
func (s *scope) upgrades(prefix string) (v topology.Value[bool]) {
	for ; s != nil; s = s.outer {
		sets := false
		for _, d := range s.directives {
			if d.name() != prefix+"_set_header" {
				continue
			}
			sets = true
			name, _ := d.arg(1)
			if content, _ := d.arg(2); strings.EqualFold(name.text, "upgrade") && content.text != "" {
				return topology.Write(true, d.at())
			}
		}
		if sets {
			return v
		}
	}
	return v
}

// ejection is how a group leaves out a server that fails. One server alone is never left out.
func (u *upstream) ejection(product string) topology.Ejection {
	fails, window := u.fails, u.failFor
	if fails.IsZero() {
		fails = topology.DefaultOf(1, product, u.at)
	}
	if window.IsZero() {
		window = topology.DefaultOf(10*time.Second, product, u.at)
	}
	n, counts := fails.Get()
	if d, ends := window.Get(); counts && n == 0 || ends && d == 0 {
		return topology.Ejection{} // max_fails=0 switches it off, and fail_timeout=0 in effect
	}
	return topology.Ejection{Consecutive: fails, Interval: window, Base: window,
		MaxShare: topology.DefaultOf(1.0, product, u.at)}
}

func (s *scope) title() string {
	t := "location " + s.path
	if s.path == "" {
		t = s.kind
	}
	if s.other != "" {
		t += " " + s.other
	}
	if s.name != "" && s.name != "_" {
		t += " of " + s.name
	}
	return t
}

// tries returns how often a request is tried that may be repeated: as often as there are servers, or fewer.
func (in *instance) tries(s *scope, prefix string, at topology.Position, u *upstream) topology.Value[int] {
	count := u.count()
	limit := value(in, s, prefix+"_next_upstream_tries", source.Int, 0, at)
	n, known := count.Get()
	most, told := limit.Get()
	switch {
	case !told:
		return topology.NotKnown[int](limit.Why, limit.At)
	case most > 0 && (!known || most <= n):
		return limit
	case known && n > 1:
		return topology.DefaultOf(n, in.product()+", which tries each server once", count.At)
	}
	return count
}
