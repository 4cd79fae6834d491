package reach

import "net/netip"

// metadata are where clouds tell a machine its credentials, beside the link-local addresses: AWS over IPv6, Alibaba
// Cloud, Oracle Cloud and Azure.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("192.0.0.192/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("fd20:ce::254/128"), // Google Cloud over IPv6
}

// embeds are the blocks of IPv6 in which an IPv4 address lies, and at which byte: NAT64 (RFC 6052), that of one network
// (RFC 8215), 6to4 (RFC 3056), the translated form of RFC 2765 and the compatible one that RFC 4291 gave up.
var embeds = []struct {
	block netip.Prefix
	at    int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{netip.MustParsePrefix("::/96"), 12},
}

// Special says what is particular about an address that a name alone must not lead to: "loopback", "link-local",
// "metadata", "unspecified" or "multicast". It is "" for all others. IPv4 addresses inside IPv6 ones count as what
// they are.
func Special(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsLoopback():
		return "loopback"
	case addr.IsUnspecified():
		return "unspecified"
	}
	for _, b := range metadata {
		if b.Contains(addr) {
			return "metadata"
		}
	}
	if addr == netip.AddrFrom4([4]byte{169, 254, 169, 254}) {
		return "metadata"
	}
	switch {
	case addr.IsLinkLocalUnicast():
		return "link-local"
	case addr.IsMulticast(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "multicast"
	case addr.Is4() && addr.As4()[0] == 0: // "this network", which Linux takes for this machine
		return "unspecified"
	}
	for _, e := range embeds {
		if addr.Is6() && e.block.Contains(addr) {
			b := addr.As16()
			return Special(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	return ""
}
