package policyfile

import (
	"fmt"
	"net"
	"reflect"
	"slices"

	"github.com/abate-go/abate/internal/strictyaml"
)

// Protected is one entry of protect: a service that requests arrive at.
type Protected struct {
	Name       string
	Protection Protection
}

// Protection is the protection that the file has for a service, and whether it has one.
func (f *File) Protection(name string) (Protection, bool) {
	for i := range f.Protect {
		if f.Protect[i].Name == name {
			return f.Protect[i].Protection.own(), true
		}
	}
	return Protection{}, false
}

// localName is what the calls from a gate to the service behind it are called, on the page and in metrics.
func localName(protected string) string { return protected + " (local)" }

var protectShape = strictyaml.ShapeOf(reflect.TypeFor[Protection]())

// protect reads the entries of protect. Each starts from DefaultProtection.
func (d *decoder) protect(f *File, entries []strictyaml.Entry) []*reader {
	readers, taken := make([]*reader, 0, len(entries)), make(map[string]bool, len(f.Services))
	for i := range f.Services {
		taken[f.Services[i].Name] = true
	}
	for _, e := range entries {
		if local := localName(e.Key.Value); taken[local] {
			d.Fail(e.Key, "", "protect."+e.Key.Value, "its calls to the service are called "+strictyaml.Quote(local)+
				", and there is a service of that name", "rename one of them")
		}
		p := DefaultProtection()
		r := d.reader(protectShape, "", "protect."+e.Key.Value, e.Key)
		r.Read(protectShape, e.Value, reflect.ValueOf(&p).Elem())
		r.check(fieldErrors(p.Validate()), fieldErrors(p.Ineffective()), p.WithDefaults(), nil)
		f.Protect, readers = append(f.Protect, Protected{e.Key.Value, p}), append(readers, r)
		if d.Stopped() {
			return readers
		}
	}
	c := entranceClaims{protect: f.Protect, readers: readers, routes: map[entrance]string{}, first: map[string]int{},
		ports: map[string]string{}}
	for i := range f.Protect {
		c.check(i)
	}
	return readers
}

// entrance is where requests come in: an address, and which of those that arrive there.
type entrance struct {
	listen string
	place
}

// entranceClaims finds what two entries of protect cannot both have.
type entranceClaims struct {
	protect []Protected
	readers []*reader
	routes  map[entrance]string // to the entry that has it
	first   map[string]int      // by listen: the first entry there
	ports   map[string]string   // by port: the first listen with it
}

// check takes what entry i wants, and reports what another one has already.
func (c *entranceClaims) check(i int) {
	p, r := &c.protect[i].Protection, c.readers[i]
	if p.Listen == "" || slices.Contains(r.Failed(), "listen") {
		return
	}
	first, shared := c.first[p.Listen]
	if !shared {
		c.first[p.Listen] = i
		c.port(p.Listen, r)
	} else if one := &c.protect[first]; one.Protection.TLS != p.TLS {
		r.Add("tls", fmt.Sprintf("is not that of %s, which listens on %s too", strictyaml.Quote(one.Name), p.Listen),
			"write the same tls in both")
	} else if one.Protection.ProxyProtocol != p.ProxyProtocol {
		r.Add("proxyProtocol", fmt.Sprintf("is not that of %s, which listens on %s too", strictyaml.Quote(one.Name),
			p.Listen), "write the same proxyProtocol in both")
	}
	for j, route := range p.Routes {
		c.take(i, fmt.Sprintf("routes[%d]", j), strictyaml.Quote(route.Host+route.Path), entrance{
			p.Listen, routePlace(route.Host, route.Path),
		})
	}
	if len(p.Routes) == 0 && !slices.Contains(r.Failed(), "routes") {
		field := "" // listen may stand elsewhere, behind an alias
		if r.Has("routes") {
			field = "routes"
		}
		c.take(i, field, "every other request to "+p.Listen, entrance{listen: p.Listen})
	}
}

func (c *entranceClaims) take(i int, field, shown string, e entrance) {
	name := c.protect[i].Name
	first, taken := c.routes[e]
	switch {
	case !taken:
		c.routes[e] = name
	case first == name:
		c.readers[i].Add(field, shown+" is among the routes already", "remove one of the two")
	default:
		c.readers[i].Add(field, shown+" belongs to "+strictyaml.Quote(first)+" already",
			"give them different routes, for example routes: [{path: /"+name+"}]")
	}
}

// port reports an address that cannot be listened on because another one includes it.
func (c *entranceClaims) port(listen string, r *reader) {
	if path, _, ok := Socket(listen); ok {
		if other, taken := c.ports[path]; taken {
			r.Add("listen", fmt.Sprintf("%s and %s are one socket", listen, other), "write one of them in both entries")
		}
		c.ports[path] = listen
		return
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return
	}
	other, taken := c.ports[port]
	if !taken {
		c.ports[port] = listen
		return
	}
	if theirs, _, _ := net.SplitHostPort(other); everyAddress(host) || everyAddress(theirs) {
		r.Add("listen", fmt.Sprintf("%s and %s cannot be listened on both", listen, other),
			"write one of them in both entries, or another port")
	}
}

// everyAddress reports whether a host means all addresses of the machine.
func everyAddress(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
