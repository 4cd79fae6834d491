package discovery

import (
	"cmp"
	"fmt"
	"log/slog"
	"sort"
	"time"
)

// Config says what a Watcher looks for.
type Config struct {
	Service string // its name in the policy file, for the log

	Type      string // dns, srv, file or kubernetes
	Name      string // the DNS name, or that of the Service in Kubernetes
	Namespace string // of the Service; "" means the one that this program runs in
	Port      string // with dns, that of each address; with kubernetes, the name or number of one, "" for the only one
	Path      string // of the file
	Server    string // the DNS server, host:port; "" means those of /etc/resolv.conf
	Zone      string // where this program runs, for the hints of EndpointSlices; "" for unknown

	Cluster *Cluster // the API server of Kubernetes; nil means that of the pod
	Log     *slog.Logger
	// Interval is how often a file is looked at, and how long a name server is left alone at least. 0 means a second.
	Interval time.Duration
	// Changed is called when the list is another one, and after the first answer. It must return soon.
	Changed func()
}

// Same reports whether two configurations look for the same: then one Watcher does for both.
func (c *Config) Same(d *Config) bool {
	return c.Type == d.Type && c.Name == d.Name && c.Namespace == d.Namespace && c.Port == d.Port && c.Path == d.Path &&
		c.Server == d.Server
}

// from says in words where the addresses come from.
func (c *Config) from() string {
	switch c.Type {
	case "srv":
		return "SRV record " + c.Name
	case "file":
		return "file " + c.Path
	case "kubernetes":
		return "Kubernetes service " + cmp.Or(c.Namespace, "(own namespace)") + "/" + c.Name
	}
	return "DNS name " + c.Name
}

// Endpoint is one address of a service.
type Endpoint struct {
	Addr   string // host and port to dial
	Zone   string // where it runs; "" for unknown
	Weight int    // 1 to 1000; 0 if nobody says, which counts as 1
}

// compare is the order of a list: that of the addresses, so that two answers with the same addresses are the same.
func order(list []Endpoint) {
	sort.SliceStable(list, func(i, j int) bool { return list[i].Addr < list[j].Addr })
}

// Status is what a Watcher knows of its own work, for pages and metrics.
type Status struct {
	From      string    // in words
	Endpoints int       // how many there are
	Changed   time.Time // when the list changed last; zero for never
	Answered  time.Time // when an answer came last; zero for never
	Failures  int64     // looks without an answer, ever
	Err       error     // why the last look brought none; nil if it did
}

// Problem says in one sentence what is wrong, "" for nothing.
func (s *Status) Problem() string {
	switch {
	case s.Err == nil:
		return ""
	case s.Answered.IsZero():
		return fmt.Sprintf("%s has never been found: %v", s.From, s.Err)
	}
	return fmt.Sprintf("%s: %v; the %d endpoints of the last answer are kept", s.From, s.Err, s.Endpoints)
}
