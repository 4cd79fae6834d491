package h1

import (
	"bytes"
	"net/http"
	"net/netip"
)

var (
	errConnect  = bad("target of CONNECT is not a host, a colon and a port: write for example api.example:443")
	errTarget   = bad("target holds a space, a control character, a '#' or a byte outside ASCII: escape it with %")
	errForm     = bad("target must begin with /, http:// or https://, or be * with OPTIONS")
	errEscape   = bad("target's path holds a % without two hexadecimal digits behind it: write % as %25")
	errUserInfo = bad("host holds an @: user and password do not belong there, send Authorization")
	errHost     = bad("host is not a name, an IPv4 address or a bracketed IPv6 address, with an optional port")

	schemeHTTP, schemeHTTPS = []byte("http"), []byte("https")
	slash, asterisk         = []byte("/"), []byte("*")
)

// target splits r.Target into Scheme, Host and Path (RFC 9112 section 3.2).
func (r *Request) target() *Error {
	if string(r.Method) == http.MethodConnect {
		if !validHost(r.Target) || !hasPort(r.Target) {
			return errConnect
		}
		r.Host = r.Target
		return nil
	}
	if !all(r.Target, isTarget) {
		return errTarget
	}
	options := string(r.Method) == http.MethodOptions
	switch t := r.Target; {
	case t[0] == '/':
		r.Path = t
	case string(t) == "*" && options:
		r.Path = t
	case foldPrefix(t, "http://"):
		r.Scheme = schemeHTTP
		return r.absolute(t[len("http://"):], options)
	case foldPrefix(t, "https://"):
		r.Scheme = schemeHTTPS
		return r.absolute(t[len("https://"):], options)
	default:
		return errForm
	}
	return checkEscapes(r.Path)
}

// absolute splits what follows the scheme into Host and Path.
func (r *Request) absolute(rest []byte, options bool) *Error {
	i := bytes.IndexAny(rest, "/?")
	if i < 0 {
		i = len(rest)
	}
	r.Host, r.Path = rest[:i:i], rest[i:]
	if err := checkHost(r.Host); err != nil {
		return err
	}
	switch {
	case len(r.Path) == 0 && options: // the server itself is meant, RFC 9112 section 3.2.4
		r.Path = asterisk
	case len(r.Path) == 0:
		r.Path = slash
	case r.Path[0] == '?':
		r.Path = append(slash[:1:1], r.Path...)
	}
	return checkEscapes(r.Path)
}

// checkEscapes checks the escapes in a path; in the query everybody takes any '%'.
func checkEscapes(path []byte) *Error {
	for {
		i := bytes.IndexByte(path, '%')
		if i < 0 || bytes.IndexByte(path[:i], '?') >= 0 {
			return nil
		}
		path = path[i+1:]
		if len(path) < 2 || chars[path[0]]&chars[path[1]]&isHex == 0 {
			return errEscape
		}
	}
}

// checkHost checks a host and its optional port. Of what RFC 3986 allows in a name it
// takes what names of hosts consist of: no escapes, and nothing that separates parts
// elsewhere in HTTP.
func checkHost(host []byte) *Error {
	if validHost(host) {
		return nil
	}
	if bytes.IndexByte(host, '@') >= 0 {
		return errUserInfo
	}
	return errHost
}

func validHost(host []byte) bool {
	if len(host) > 0 && host[0] == '[' {
		address, port, closed := bytes.Cut(host[1:], []byte{']'})
		parsed, err := netip.ParseAddr(string(address))
		return closed && err == nil && parsed.Is6() && parsed.Zone() == "" && (len(port) == 0 || validPort(port))
	}
	name, port := host, []byte(nil)
	if i := bytes.IndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	return len(name) > 0 && all(name, isHost) && name[0] != '.' && !bytes.Contains(name, twoDots) &&
		(len(port) == 0 || validPort(port))
}

// hasPort reports whether a host that is valid ends with a port that can be connected to.
func hasPort(host []byte) bool {
	i := bytes.LastIndexByte(host, ':')
	return i >= 0 && bytes.IndexByte(host[i:], ']') < 0 && string(host[i:]) != ":0"
}

// twoDots is an empty label, which some servers take for none: the host would have a second name. One dot at the end is
// in order.
var twoDots = []byte("..")

// validPort reports whether b is a colon and a port number, as everybody writes it: a zero before it would make it a
// second name.
func validPort(b []byte) bool {
	if b[0] != ':' || len(b) < 2 || len(b) > len(":65535") || b[1] == '0' && len(b) > 2 {
		return false
	}
	n := 0
	for _, c := range b[1:] {
		if chars[c]&isDigit == 0 {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n <= 65535
}
