package source

import (
	"net"
	"path"
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
)

// vague are names of files and folders that say nothing of the service that they configure.
var vague = []string{"", ".", "/", "..", "-", "app", "application", "bootstrap", "build", "conf", "conf.d", "config",
	"configs", "default", "deploy", "deployment", "docker", "env", "etc", "files", "haproxy", "http.d", "index", "k8s",
	"main", "manifests", "nginx", "proxy", "rendered", "resources", "root", "rootfs", "service_config", "serviceconfig",
	"service-config", "sites-available", "sites-enabled", "snippets", "src", "stdin", "template", "templates"}

// Service returns the name of the service that the text configures: its Owner, or the nearest of its file's name and
// folders that says something; product where none does.
func (d *Document) Service(product string) string {
	if d.Owner != "" {
		return d.Owner
	}
	name := strings.ToLower(d.File)
	for {
		base := path.Base(name)
		stem, _, _ := strings.Cut(strings.TrimPrefix(base, "."), ".")
		if !slices.Contains(vague, base) && !slices.Contains(vague, stem) {
			return stem
		}
		if name = path.Dir(name); name == "." || name == "/" {
			return product
		}
	}
}

// Callee returns the name under which an address is known, from a URL, a host, or a host and a port: the host in lower
// case. On the loopback interface the port tells services apart, so it is part of the name: localhost-8080. It is empty
// for what names no host: a template, a variable, a socket.
func Callee(address string) string {
	if Template(address) != "" || strings.ContainsAny(address, "$%{}") {
		return ""
	}
	rest := address
	if i := strings.Index(rest, "://"); i >= 0 {
		rest = rest[i+3:]
	}
	if strings.HasPrefix(rest, "unix:") || strings.HasPrefix(rest, "/") {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "/")
	host := topology.Strip(rest)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		host = "localhost"
		if _, port, err := net.SplitHostPort(rest); err == nil && port != "" {
			host += "-" + port
		}
	}
	return host
}

// Numeric reports whether an address is that of one machine: an IP address, with or without a port.
func Numeric(address string) bool {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	return net.ParseIP(strings.Trim(host, "[]")) != nil
}

// Behind returns the service behind a group of servers that a proxy chooses among: the host that all of them have, or
// else the group, whose other names are then the hosts. name is the group's, empty for an address that stands alone.
// hosts are results of Callee.
func Behind(name string, hosts []string) (service string, aliases []string) {
	local := func(host string) bool { return host == "localhost" || strings.HasPrefix(host, "localhost-") }
	switch {
	case name == "" && len(hosts) > 0:
		return hosts[0], nil
	case len(hosts) == 1 && net.ParseIP(hosts[0]) == nil && !local(hosts[0]):
		return hosts[0], nil
	}
	for _, h := range hosts {
		if !local(h) {
			aliases = append(aliases, h)
		}
	}
	return name, aliases
}
