// Package reach decides which hosts a program may reach through a proxy beside the services of its policy: what CONNECT
// may open a tunnel to, and which plain requests are passed on. It is an allow-list; nothing is allowed that it does
// not name.
//
// It is asked twice. Of the name, before anything is looked up: May. And of every address that is about to be dialled:
// Decide. The second answer is the one that counts. A name means whatever its owner's DNS says at the moment, so an
// address of this machine or of its cloud's metadata service is allowed only if the list has that address itself.
package reach

import (
	"net/netip"
	"strconv"
	"strings"
)

// List is an allow-list. The zero List allows nothing. It is immutable, and may be used by several goroutines.
type List struct {
	entries []entry
}

// entry is one line of an allow-list.
type entry struct {
	text   string
	kind   kind
	name   string       // of a host, or what its end must be
	block  netip.Prefix // of addresses
	port   uint16       // 0 for any
	inText bool         // an address that stands there by itself, not as a block
}

type kind uint8

const (
	anyHost  kind = iota // *
	underOne             // *.example.com
	oneHost              // example.com
	addresses
)

// Mistake is an entry that says nothing.
type Mistake struct {
	Index   int // of the entry
	Problem string
	Fix     string
}

// New reads a list. An entry is a host, "*." and the end of a host's name, an address, a block of addresses, or * for
// any host; behind it may stand a colon and a port, or * for any port. Without one, port is meant. An IPv6 address with
// a port stands in brackets. Entries with mistakes are left out.
func New(entries []string, port uint16) (List, []Mistake) {
	l := List{entries: make([]entry, 0, len(entries))}
	var wrong []Mistake
	for i, text := range entries {
		e, m := parse(text, port)
		if m.Problem != "" {
			m.Index = i
			wrong = append(wrong, m)
			continue
		}
		l.entries = append(l.entries, e)
	}
	return l, wrong
}

const fixHost = `allowed: a host, "*.example.com", an address, a CIDR or "*", each with an optional port; ` +
	`for example "api.example.com:443" or "10.0.0.0/8:*"`

func parse(text string, port uint16) (entry, Mistake) {
	e := entry{text: text, port: port}
	host, written, ok := split(text)
	if !ok {
		return e, Mistake{Problem: strconv.Quote(text) + " is no host", Fix: fixHost}
	}
	switch n, err := strconv.ParseUint(written, 10, 16); {
	case written == "":
	case written == "*":
		e.port = 0
	case strings.Contains(written, "/"): // of a URL
		return e, Mistake{Problem: strconv.Quote(text) + " is no host", Fix: fixHost}
	case err != nil || n == 0:
		return e, Mistake{Problem: strconv.Quote(written) + " is no port", Fix: "write 1 to 65535, or * for any"}
	default:
		e.port = uint16(n)
	}
	if block, err := netip.ParsePrefix(host); err == nil && block.Addr().Zone() == "" {
		if block != block.Masked() {
			return e, Mistake{Problem: strconv.Quote(host) + " has bits behind its length",
				Fix: "write " + strconv.Quote(block.Masked().String())}
		}
		e.kind, e.block = addresses, plainBlock(block)
		return e, Mistake{}
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		e.kind, e.block, e.inText = addresses, netip.PrefixFrom(addr, addr.BitLen()), true
		return e, Mistake{}
	}
	name := plain(host)
	switch end, under := strings.CutPrefix(name, "*."); {
	case host == "*":
		e.kind = anyHost
	case under && isName(end):
		e.kind, e.name = underOne, name[len("*"):]
	case !under && isName(name):
		e.kind, e.name = oneHost, name
	default:
		return e, Mistake{Problem: strconv.Quote(text) + " is no host", Fix: fixHost}
	}
	return e, Mistake{}
}

// plainBlock is a block of IPv4 addresses that was written as IPv6, as IPv4.
func plainBlock(b netip.Prefix) netip.Prefix {
	if b.Addr().Is4In6() && b.Bits() >= 96 {
		return netip.PrefixFrom(b.Addr().Unmap(), b.Bits()-96)
	}
	return b
}

// split parts a host from the port behind it. "::1" has none; "[::1]" may have one, and so may "fd00::/8".
func split(text string) (host, port string, ok bool) {
	if rest, bracketed := strings.CutPrefix(text, "["); bracketed {
		host, port, ok = strings.Cut(rest, "]")
		if !ok || strings.IndexByte(host, ':') < 0 {
			return "", "", false
		}
		if port == "" {
			return host, "", true
		}
		port, ok = strings.CutPrefix(port, ":")
		return host, port, ok && port != ""
	}
	switch colon := strings.LastIndexByte(text, ':'); {
	case colon < 0:
		return text, "", text != ""
	case strings.IndexByte(text, ':') == colon:
		return text[:colon], text[colon+1:], colon > 0 && colon < len(text)-1
	case strings.IndexByte(text, '/') >= 0 && strings.IndexByte(text, '/') < colon: // fd00::/8:443
		return text[:colon], text[colon+1:], colon < len(text)-1
	}
	return text, "", true
}

// plain is a name in lower case, without the dot at its end.
func plain(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// isName reports whether a text may be the name of a host.
func isName(s string) bool {
	if s == "" || len(s) > 253 || s[0] == '.' || strings.Contains(s, "..") {
		return false
	}
	for _, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !letter && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// Empty reports whether nothing is allowed.
func (l List) Empty() bool { return len(l.entries) == 0 }

// named finds the first entry that has a host by its name.
func (l List) named(host string, port uint16) (entry, bool) {
	host = plain(host)
	for _, e := range l.entries {
		if e.port != 0 && e.port != port {
			continue
		}
		switch {
		case e.kind == anyHost, e.kind == oneHost && host == e.name,
			e.kind == underOne && len(host) > len(e.name) && strings.HasSuffix(host, e.name):
			return e, true
		}
	}
	return entry{}, false
}

// addressed finds the first entry that has an address.
func (l List) addressed(addr netip.Addr, port uint16) (entry, bool) {
	for _, e := range l.entries {
		if e.kind == addresses && (e.port == 0 || e.port == port) && e.block.Contains(addr) {
			return e, true
		}
	}
	return entry{}, false
}

// May reports whether some address of a host may be allowed, so that it is worth a look-up. host is a name, or an
// address without brackets: of an address that a name alone must not lead to, and that * has, the answer is yes, and
// Decide says why it is not allowed.
func (l List) May(host string, port uint16) bool {
	if _, ok := l.named(host, port); ok {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return l.Decide(host, port, addr).Allowed
	}
	for _, e := range l.entries {
		if e.kind == addresses && (e.port == 0 || e.port == port) {
			return true
		}
	}
	return false
}

// Names reports whether the list has the host itself, by its name or by an address that is not a block: what somebody
// wrote who meant this host.
func (l List) Names(host string, port uint16) bool {
	host = plain(host)
	addr, _ := netip.ParseAddr(host)
	addr = addr.Unmap()
	for _, e := range l.entries {
		if (e.port == 0 || e.port == port) && (e.kind == oneHost && e.name == host ||
			e.inText && addr.IsValid() && e.block.Addr() == addr) {
			return true
		}
	}
	return false
}

// Verdict is what Decide says of an address.
type Verdict struct {
	Allowed bool
	Entry   string // of the list, as it is written; "" if none has it
	// Special is what kind of address it is that has to be in the list itself: "loopback", "link-local", "metadata",
	// "unspecified" or "multicast"; "" for all others.
	Special string
}

// Decide says whether an address may be dialled for a host at a port. host is the name that was asked for, or the
// address itself.
func (l List) Decide(host string, port uint16, addr netip.Addr) Verdict {
	addr = addr.Unmap().WithZone("")
	v := Verdict{Special: Special(addr)}
	if e, ok := l.addressed(addr, port); ok {
		v.Allowed, v.Entry = true, e.text
		return v
	}
	if e, ok := l.named(host, port); ok {
		v.Allowed, v.Entry = v.Special == "" && addr.IsValid(), e.text
	}
	return v
}
