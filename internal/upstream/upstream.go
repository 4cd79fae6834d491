// Package upstream reads the base URLs of services: those of HTTP, and those that name a Unix socket.
package upstream

import (
	"net"
	"net/url"
	"strings"
)

// URL is a base URL, taken apart.
type URL struct {
	Scheme string // http, https or h2c
	Host   string // the authority that the service expects, with a port if the URL has one
	Base   string // the path before that of requests, escaped, without a slash at its end
	Socket string // the path of the Unix socket; "" for TCP
	port   string
}

// LongestSocket is how long the path of a Unix socket may be, in bytes, so that it fits into an address on every
// system: 104 on some, with a zero at the end.
const LongestSocket = 103

// Parse reads a base URL, such as "https://payments:8443/v2", or "unix:/run/payments.sock" for HTTP over a Unix socket.
// "https+unix:" and "h2c+unix:" are the other schemes there, and "?host=payments" is the Host that the service expects;
// without it that is localhost. ok is false if raw is none of these.
func Parse(raw string) (u URL, ok bool) {
	parsed, err := url.Parse(raw)
	if err != nil {
		return URL{}, false
	}
	u = URL{Scheme: parsed.Scheme, Host: parsed.Host, Base: strings.TrimRight(parsed.EscapedPath(), "/"),
		port: parsed.Port()}
	if scheme, over := strings.CutSuffix("+"+parsed.Scheme, "+unix"); over {
		u.Scheme = strings.TrimPrefix(scheme, "+")
		if u.Scheme == "" {
			u.Scheme = "http"
		}
		query := parsed.Query()
		host := query.Get("host")
		query.Del("host")
		if parsed.Host != "" || len(query) > 0 || len(parsed.Path) < 2 || parsed.Path[0] != '/' ||
			len(parsed.Path) > LongestSocket ||
			strings.ContainsAny(host, "/ @?#\r\n") {
			return URL{}, false
		}
		if u.Socket, u.Base, u.Host = parsed.Path, "", host; host == "" {
			u.Host = "localhost"
		}
	}
	return u, u.Host != "" && (u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "h2c")
}

// Address is what to dial: a network and an address in it.
func (u *URL) Address() (network, address string) {
	switch {
	case u.Socket != "":
		return "unix", u.Socket
	case u.port != "":
		return "tcp", u.Host
	case u.Scheme == "https":
		return "tcp", net.JoinHostPort(u.Name(), "443")
	}
	return "tcp", net.JoinHostPort(u.Name(), "80")
}

// Name is the host without its port: what the certificate of the service names.
func (u *URL) Name() string { return (&url.URL{Host: u.Host}).Hostname() }
