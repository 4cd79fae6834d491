package haproxy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// pool is the servers of a backend.
type pool struct {
	at       topology.Position
	servers  int // that take requests
	hosts    []string
	named    bool
	unknown  string // the template that hides how many there are
	limited  bool   // each has a maxconn
	maxConns int
	limitAt  topology.Position
	h2       bool // a server is asked in HTTP/2
	observed line // the parameters of a server that is taken out when it fails
}

// pool returns the servers of a section. A default-server line is for those behind it.
func (in *instance) pool(s *section) *pool {
	p := &pool{at: s.at, limited: true}
	var base line
	if l, _ := s.find("default-server"); l != nil && s.defaults != nil {
		base = l[1:]
	}
	for _, l := range s.lines {
		switch {
		case l.is("default-server"):
			base = l[1:]
		case l.is("server"):
			if address, ok := l.arg(2); ok {
				p.add(1, address, append(slices.Clone(l[3:]), base...))
			}
		case l.is("server-template"):
			if address, ok := l.arg(3); ok {
				p.add(howMany(l[2].text), address, append(slices.Clone(l[4:]), base...))
			}
		}
	}
	p.limited = p.limited && p.servers > 0
	return p
}

// howMany reads the number of servers that a template makes: 5, or 1-5. It is 0 for what is neither.
func howMany(word string) int {
	low, high, isRange := strings.Cut(word, "-")
	a, err := strconv.Atoi(low)
	if err != nil || a < 0 {
		return 0
	}
	if !isRange {
		return a
	}
	b, err := strconv.Atoi(high)
	if err != nil || b < a {
		return 0
	}
	return b - a + 1
}

func (p *pool) add(n int, address word, parameters line) {
	if t := source.Template(address.text + " " + parameters.String()); t != "" && p.unknown == "" {
		p.unknown = t
	}
	limited := false
	for i, w := range parameters {
		switch w.text {
		case "disabled", "backup": // a backup serves only while no other is there
			return
		case "maxconn":
			if v, ok := parameters.arg(i + 1); ok && !limited {
				if most, err := source.Int(v.text); err == nil && most > 0 {
					limited, p.maxConns, p.limitAt = true, p.maxConns+n*most, v.at
				}
			}
		case "proto":
			v, _ := parameters.arg(i + 1)
			p.h2 = p.h2 || v.text == "h2"
		case "observe":
			p.observed = parameters
		}
	}
	p.limited = p.limited && limited
	p.servers += n
	p.named = p.named || !source.Numeric(address.text)
	if host := source.Callee(address.text); host != "" && !slices.Contains(p.hosts, host) {
		p.hosts = append(p.hosts, host)
	}
}

// count returns how many servers there are.
func (p *pool) count() topology.Value[int] {
	if p.unknown != "" {
		return topology.NotKnown[int]("the servers are written by the template "+p.unknown, p.at)
	}
	return topology.Write(p.servers, p.at)
}
