package nginx

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// upstream is a group of servers among which nginx chooses.
type upstream struct {
	name      string
	at        topology.Position
	hosts     []string // each once, in the order of the file
	servers   int      // that are not down
	named     bool     // a server is named by a host name, which may have several addresses
	unknown   string   // why it is not known how many servers there are
	limited   bool     // every server says max_conns
	conns     int
	maxConns  topology.Position
	fails     topology.Value[int]
	failFor   topology.Value[time.Duration]
	keepalive *directive
	remarks   []topology.Remark
}

// upstreams returns the groups of a block.
func upstreams(s *scope) map[string]*upstream {
	out := map[string]*upstream{}
	for _, d := range s.directives {
		if name, ok := d.arg(1); ok && d.name() == "upstream" && d.opens {
			out[name.text] = group(d, name.text)
		}
	}
	return out
}

func group(d *directive, name string) *upstream {
	u := &upstream{name: name, at: d.at(), limited: true}
	for _, s := range d.block {
		switch s.name() {
		case "server":
			u.server(s)
		case "keepalive":
			u.keepalive = s
		}
	}
	u.limited = u.limited && u.servers > 0
	return u
}

// ofPort is one host with a port from the environment: one server, whatever is put there. Anything else that a template
// fills in may be another one in each round of a loop.
var ofPort = regexp.MustCompile(`^([\w.-]+:)(?:\{\{-?\s*env\s[^{}]*\}\}|\$\{\w+\})`)

func (u *upstream) server(d *directive) {
	address, ok := d.arg(1)
	if !ok {
		return
	}
	rest := ofPort.ReplaceAllString(text(d.words[1:]), "$1")
	if t := source.Template(rest); t != "" && !standing.MatchString(address.text) && u.unknown == "" {
		u.unknown = "are written by the template " + t
	}
	limited := false
	for _, w := range d.words[2:] {
		name, v, _ := strings.Cut(w.text, "=")
		switch name {
		case "down":
			return
		case "service": // of NGINX Plus: each record that DNS has of it is a server
			u.unknown = "are those that DNS has of the service " + v
		case "max_fails":
			if u.fails.IsZero() {
				u.fails, u.remarks = word2(w, v, source.Int, u.remarks)
			}
		case "fail_timeout":
			if u.failFor.IsZero() {
				u.failFor, u.remarks = word2(w, v, duration, u.remarks)
			}
		case "max_conns":
			if n, err := source.Int(v); err == nil && n > 0 {
				limited, u.conns, u.maxConns = true, u.conns+n, w.at
			}
		}
	}
	u.limited = u.limited && limited
	u.servers++
	u.named = u.named || !source.Numeric(address.text) && !strings.HasPrefix(address.text, "unix:")
	if host := callee(address.text); host != "" && !slices.Contains(u.hosts, host) {
		u.hosts = append(u.hosts, host)
	}
}

// word2 reads the value of a parameter, name=value.
func word2[T topology.Scalar](w word, text string, parse func(string) (T, error),
	remarks []topology.Remark) (topology.Value[T],
	[]topology.Remark) {
	v, more := source.Word(text, w.at, parse)
	return v, append(remarks, more...)
}

// alone is the group of an address that proxy_pass names itself.
func alone(address string, at topology.Position) *upstream {
	u := &upstream{at: at, servers: 1, named: !source.Numeric(address) && !strings.HasPrefix(address, "unix:")}
	if host := callee(address); host != "" {
		u.hosts = []string{host}
	}
	return u
}

// count returns how many servers there are to try.
func (u *upstream) count() topology.Value[int] {
	switch {
	case u.unknown != "":
		return topology.NotKnown[int]("the servers of "+u.name+" "+u.unknown, u.at)
	case u.named:
		v := topology.Assume(u.servers, "one address for each server that is named; nginx tries every address of a name")
		v.At = u.at
		return v
	}
	return topology.Write(u.servers, u.at)
}

// to returns the service behind the group, and its other names when it is the group that gives the name.
func (u *upstream) to() (service string, aliases []string) { return source.Behind(u.name, u.hosts) }

// callee is source.Callee, with a name for sockets: that of the file.
func callee(address string) string {
	rest := address
	if i := strings.Index(rest, "://"); i >= 0 {
		rest = rest[i+3:]
	}
	if file, ok := strings.CutPrefix(rest, "unix:"); ok {
		file, _, _ = strings.Cut(file, ":")
		return strings.ToLower(strings.TrimSuffix(path.Base(file), ".sock"))
	}
	return source.Callee(address)
}
