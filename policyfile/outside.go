package policyfile

import (
	"fmt"
	"reflect"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/policy/reach"
)

// Outside is what programs may reach through the proxy beside the services of the file: the section outside. No policy
// guards what goes there; it is counted. The zero Outside lets nothing through.
type Outside struct {
	// Connect are the hosts that CONNECT, which is what https_proxy means to a client, may open a tunnel to. An entry is a
	// host, "*.example.com", an address, a block of addresses, or "*"; behind it may stand a port, or "*" for any. Without
	// one port 443 is meant. Loopback, link-local and metadata addresses are dialled only if an entry has the address
	// itself, whatever name leads there. Empty: CONNECT is refused.
	Connect []string `yaml:"connect" example:"[\"api.stripe.com\", \"*.example.com:443\"]"`
	// PassThrough are the hosts that plain requests are passed on to although no service lists them, without a guard. An
	// entry is as in connect; without a port, port 80 is meant. Empty: such a request gets a 404.
	PassThrough []string `yaml:"passThrough" example:"[\"*:*\"]"`
}

// Enabled reports whether anything is let through.
func (o Outside) Enabled() bool { return len(o.Connect) > 0 || len(o.PassThrough) > 0 }

// The ports that entries without one mean.
const (
	connectPort = 443
	plainPort   = 80
)

// Lists returns what Connect and PassThrough allow. Entries with mistakes allow nothing.
func (o Outside) Lists() (connect, pass reach.List) {
	connect, _ = reach.New(o.Connect, connectPort)
	pass, _ = reach.New(o.PassThrough, plainPort)
	return connect, pass
}

var outsideShape = newOutsideShape()

func newOutsideShape() *strictyaml.Shape {
	s := strictyaml.ShapeOf(reflect.TypeFor[Outside]())
	s.Find("connect").NotEmpty = "name at least one host, or remove connect"
	s.Find("passThrough").NotEmpty = "name at least one host, or remove passThrough"
	return s
}

// outside reads the section outside.
func (d *decoder) outside(e strictyaml.Entry, into *Outside) {
	r := d.reader(outsideShape, "", "outside", e.Key)
	r.Read(outsideShape, e.Value, reflect.ValueOf(into).Elem())
	var m mistakes
	for _, list := range []struct {
		key     string
		entries []string
		port    uint16
	}{{"connect", into.Connect, connectPort}, {"passThrough", into.PassThrough, plainPort}} {
		_, wrong := reach.New(list.entries, list.port)
		for _, w := range wrong {
			m.add(fmt.Sprintf("%s[%d]", list.key, w.Index), w.Problem, w.Fix)
		}
	}
	r.check(m, nil, *into, nil)
}

// Outside is what the file in force lets programs reach beside its services. It is shared: do not change it. It is the
// same pointer until a file is loaded that says something else.
func (s *Set) Outside() *Outside { return s.current.Load().outside }
