package reach_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/abate-go/abate/policy/reach"
)

func list(t *testing.T, entries ...string) reach.List {
	t.Helper()
	l, wrong := reach.New(entries, 443)
	if len(wrong) > 0 {
		t.Fatalf("%q: %+v", entries, wrong)
	}
	return l
}

func TestAddressThatIsDialledDecides(t *testing.T) {
	for _, c := range []struct {
		entries, host string
		port          uint16
		addr          string
		allowed       bool
		special       string
	}{
		{"", "api.example", 443, "203.0.113.7", false, ""},
		{"api.example", "api.example", 443, "203.0.113.7", true, ""},
		{"API.example.", "api.EXAMPLE.", 443, "203.0.113.7", true, ""},
		{"api.example", "api.example", 80, "203.0.113.7", false, ""},
		{"api.example:80", "api.example", 80, "203.0.113.7", true, ""},
		{"api.example:*", "api.example", 5432, "203.0.113.7", true, ""},
		{"*.example", "api.example", 443, "203.0.113.7", true, ""},
		{"*.example", "example", 443, "203.0.113.7", false, ""},
		{"*.example", "notexample", 443, "203.0.113.7", false, ""},
		{"*", "anything", 443, "10.0.0.7", true, ""},
		{"*", "anything", 22, "10.0.0.7", false, ""},
		{"10.0.0.0/8:*", "db.internal", 5432, "10.1.2.3", true, ""},
		{"10.0.0.0/8:*", "db.internal", 5432, "11.1.2.3", false, ""},
		{"::ffff:10.0.0.0/104:*", "db.internal", 5432, "10.1.2.3", true, ""},
		{"fd00::/8:443", "x", 443, "fd12::1", true, ""},
		// What a name alone must not lead to, whoever answers for it: DNS rebinding.
		{"*:*", "rebind.example", 80, "127.0.0.1", false, "loopback"},
		{"*:*", "rebind.example", 80, "::1", false, "loopback"},
		{"*:*", "rebind.example", 80, "::ffff:127.0.0.1", false, "loopback"},
		{"*:*", "rebind.example", 80, "64:ff9b::7f00:1", false, "loopback"},
		{"*:*", "rebind.example", 80, "64:ff9b:1::7f00:1", false, "loopback"},
		{"*:*", "rebind.example", 80, "64:ff9b:1:fffe::a9fe:a9fe", false, "metadata"},
		{"*:*", "rebind.example", 80, "::ffff:0:7f00:1", false, "loopback"},
		{"*:*", "rebind.example", 80, "2002:7f00:1::", false, "loopback"},
		{"*:*", "rebind.example", 80, "0.0.0.0", false, "unspecified"},
		{"*:*", "rebind.example", 80, "0.1.2.3", false, "unspecified"},
		{"*:*", "rebind.example", 80, "::", false, "unspecified"},
		{"*:*", "rebind.example", 80, "169.254.169.254", false, "metadata"},
		{"*:*", "rebind.example", 80, "::ffff:169.254.169.254", false, "metadata"},
		{"*:*", "rebind.example", 80, "64:ff9b::a9fe:a9fe", false, "metadata"},
		{"*:*", "rebind.example", 80, "fd00:ec2::254", false, "metadata"},
		{"*:*", "rebind.example", 80, "100.100.100.200", false, "metadata"},
		{"*:*", "rebind.example", 80, "168.63.129.16", false, "metadata"},
		{"*:*", "rebind.example", 80, "169.254.1.1", false, "link-local"},
		{"*:*", "rebind.example", 80, "fe80::1%eth0", false, "link-local"},
		{"*:*", "rebind.example", 80, "224.0.0.1", false, "multicast"},
		{"*:*", "rebind.example", 80, "255.255.255.255", false, "multicast"},
		{"metadata.internal:80", "metadata.internal", 80, "169.254.169.254", false, "metadata"},
		{"localhost:5432", "localhost", 5432, "127.0.0.1", false, "loopback"},
		// The list has the address itself.
		{"169.254.169.254:80", "metadata.internal", 80, "169.254.169.254", true, "metadata"},
		{"169.254.169.254:80", "169.254.169.254", 443, "169.254.169.254", false, "metadata"},
		{"127.0.0.0/8:*", "localhost", 5432, "127.0.0.1", true, "loopback"},
		{"[::1]:5432", "localhost", 5432, "::1", true, "loopback"},
		{"::1", "localhost", 443, "::1", true, "loopback"},
	} {
		l := list(t, strings.Fields(c.entries)...)
		v := l.Decide(c.host, c.port, netip.MustParseAddr(c.addr))
		if v.Allowed != c.allowed || v.Special != c.special {
			t.Errorf("%q, %s:%d at %s: %+v; want allowed %v, special %q", c.entries, c.host, c.port, c.addr, v, c.allowed,
				c.special)
		}
		if v.Allowed && !l.May(c.host, c.port) {
			t.Errorf("%q, %s:%d: allowed at %s, and not worth a look-up", c.entries, c.host, c.port, c.addr)
		}
	}
}

func TestOnlyWhatIsWrittenOutNamesAHost(t *testing.T) {
	l := list(t, "*:*", "*.example:*", "10.0.0.0/8:*", "pay.example", "10.0.0.7:8443")
	for _, c := range []struct {
		host string
		port uint16
		want bool
	}{
		{"pay.example", 443, true}, {"pay.example", 80, false}, {"other.example", 443, false}, {"10.0.0.8", 443, false},
		{"10.0.0.7", 8443, true}, {"10.0.0.7", 443, false},
	} {
		if got := l.Names(c.host, c.port); got != c.want {
			t.Errorf("Names(%s, %d) = %v", c.host, c.port, got)
		}
	}
}

func TestMistakesInAListSayWhatToWrite(t *testing.T) {
	bad := []string{"", ":443", "a:", "a:b", "a:0", "a:65536", "http://a", "a/b", "*.", "*x", "a..b", ".a", "[a]:1",
		"[::1",
		"[::1]x", "10.0.0.1/8", "fe80::1%eth0", "a b", "ü", "*.*"}
	l, wrong := reach.New(bad, 443)
	if !l.Empty() || len(wrong) != len(bad) {
		t.Fatalf("%d of %d are mistakes: %+v", len(wrong), len(bad), wrong)
	}
	for i, m := range wrong {
		if m.Index != i || m.Problem == "" || m.Fix == "" {
			t.Errorf("%q: %+v", bad[i], m)
		}
	}
}

// FuzzNoNameReachesThisMachine: whatever the list says and the name is, a special address is dialled only if the list
// has an address.
func FuzzNoNameReachesThisMachine(f *testing.F) {
	for _, s := range []string{"*:*", "*.example:80", "127.0.0.1", "localhost:*", "fd00::/8:1", "[::1]:5", "0.0.0.0/0",
		"::/0:*"} {
		f.Add(s, "localhost", uint16(80), []byte{127, 0, 0, 1})
		f.Add(s, "a.example", uint16(443), []byte{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 169, 254, 169, 254})
	}
	f.Fuzz(func(t *testing.T, text, host string, port uint16, raw []byte) {
		addr, ok := netip.AddrFromSlice(raw)
		l, wrong := reach.New([]string{text}, 443)
		if l.Empty() != (len(wrong) > 0) {
			t.Fatalf("%q: %v mistakes, empty %v", text, wrong, l.Empty())
		}
		if !ok || l.Empty() {
			return
		}
		v := l.Decide(host, port, addr)
		if v.Allowed && !l.May(host, port) {
			if _, err := netip.ParseAddr(host); err != nil {
				t.Errorf("%q: %q:%d is allowed at %v, and not worth a look-up", text, host, port, addr)
			}
		}
		numbers := strings.ContainsAny(text, ":/0123456789") && !strings.HasPrefix(text, "*")
		if v.Allowed && v.Special != "" && !numbers {
			t.Errorf("%q lets %q to %v, which is %s", text, host, addr, v.Special)
		}
	})
}
