package launch

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// surroundings are what a program has to know to call through the proxy.
type surroundings struct {
	proxy    string            // host:port of the proxy
	tunnels  bool              // the policy file lets CONNECT through
	hosts    []string          // of the services, host:port
	bases    map[string]string // base URL by variable
	preload  string            // path of the file that Node loads first; "" for none
	metadata []string          // addresses that stay direct
}

// metadata are where SDKs of clouds look for credentials. A proxy has nothing to do there.
var metadata = []string{"169.254.169.254", "fd00:ec2::254"}

// variable is the name of the variable that has the base URL of a service.
func variable(service string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, service)
	return "ABATE_URL_" + name
}

// environment is the environment of the program: that of this process, with what points runtimes at the proxy. notes
// say what of the user's own had to give way.
func (s *surroundings) environment(base []string) (env, notes []string) {
	e := &variables{list: slices.Clone(base)}
	url := "http://" + s.proxy
	for _, name := range []string{"HTTP_PROXY", "http_proxy"} {
		if old := e.get(name); old != "" && old != url {
			notes = append(notes, fmt.Sprintf("%s was %s, and is this proxy now: calls to hosts that the policy file does not "+
				"list go there directly", name, old))
		}
		e.set(name, url)
	}
	if s.tunnels {
		e.set("HTTPS_PROXY", url)
		e.set("https_proxy", url)
	}
	past, dropped := s.directly(e.get("no_proxy") + "," + e.get("NO_PROXY"))
	if len(dropped) > 0 {
		notes = append(notes, fmt.Sprintf("NO_PROXY had %s, which would have calls to a service go past the proxy: left out",
			strings.Join(dropped, ", ")))
	}
	e.set("NO_PROXY", past)
	e.set("no_proxy", past)
	e.add("JAVA_TOOL_OPTIONS", s.java())
	if s.preload != "" {
		e.add("NODE_OPTIONS", "--require "+quoted(s.preload))
		e.set("ABATE_RUN_PROXY", s.proxy)
		e.set("ABATE_RUN_HOSTS", strings.Join(s.hosts, ","))
	}
	for name, base := range s.bases {
		e.set(name, base)
	}
	return e.list, notes
}

// java are the system properties that the JDK's own clients look at: java.net.http.HttpClient unless it is given a
// proxy selector, and HttpURLConnection. Unless nonProxyHosts is there and empty, neither asks the proxy for loopback
// addresses: the JDK adds them to whatever else stands there.
func (s *surroundings) java() string {
	host, port, _ := net.SplitHostPort(s.proxy)
	options := "-Dhttp.proxyHost=" + host + " -Dhttp.proxyPort=" + port + " -Dhttp.nonProxyHosts="
	if s.tunnels {
		options += " -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port
	}
	return options
}

// quoted is a path as NODE_OPTIONS wants it.
func quoted(path string) string {
	if !strings.ContainsAny(path, " \"\\") {
		return path
	}
	return strconv.Quote(path)
}

// directly is what goes past the proxy: what the user has said, without what would be a service, and metadata.
func (s *surroundings) directly(before string) (after string, dropped []string) {
	var kept []string
	seen := map[string]bool{}
	for _, entry := range strings.FieldsFunc(before, func(r rune) bool { return r == ',' || r == ' ' }) {
		if seen[entry] {
			continue
		}
		if seen[entry] = true; slices.ContainsFunc(s.hosts, func(host string) bool { return bypasses(entry, host) }) {
			dropped = append(dropped, entry)
		} else {
			kept = append(kept, entry)
		}
	}
	for _, m := range s.metadata {
		if !slices.Contains(kept, m) {
			kept = append(kept, m)
		}
	}
	return strings.Join(kept, ","), dropped
}

// bypasses reports whether an entry of NO_PROXY has a host, for some client at least: they differ in whether a name
// means what is below it too, and in what they know of blocks of addresses.
func bypasses(entry, authority string) bool {
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		host, port = authority, ""
	}
	host = strings.ToLower(host)
	entry = strings.ToLower(entry)
	if entry == "*" {
		return true
	}
	if block, err := netip.ParsePrefix(entry); err == nil {
		addr, err := netip.ParseAddr(host)
		return err == nil && block.Contains(addr.Unmap())
	}
	if name, at, err := net.SplitHostPort(entry); err == nil {
		if at != port {
			return false
		}
		entry = name
	}
	entry = strings.TrimPrefix(strings.TrimPrefix(strings.Trim(entry, "[]"), "*"), ".")
	return entry != "" && (host == entry || strings.HasSuffix(host, "."+entry))
}

// variables is an environment.
type variables struct{ list []string }

func (e *variables) at(name string) int {
	return slices.IndexFunc(e.list, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

func (e *variables) get(name string) string {
	if i := e.at(name); i >= 0 {
		return e.list[i][len(name)+1:]
	}
	return ""
}

func (e *variables) set(name, value string) {
	e.list = slices.DeleteFunc(e.list, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	e.list = append(e.list, name+"="+value)
}

// add puts options behind those that are there.
func (e *variables) add(name, options string) {
	if old := e.get(name); old != "" {
		options = old + " " + options
	}
	e.set(name, options)
}
