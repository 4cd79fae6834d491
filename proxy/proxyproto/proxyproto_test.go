package proxyproto_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/proxyproto"
)

// read gives Parse a connection as it asks for it, and returns how much of it the header has.
func read(t testing.TB, stream []byte) (h proxyproto.Header, n int, err error) {
	t.Helper()
	for {
		h, more, err := proxyproto.Parse(stream[:n:n])
		if err != nil || more == 0 {
			return h, n, err
		}
		if n += more; n > len(stream) {
			return h, -1, nil // it waits for more
		}
	}
}

const sig = "\r\n\r\n\x00\r\nQUIT\n"

func TestHeadersAreReadToTheirEndAndNoFurther(t *testing.T) {
	v4 := "\xc0\x00\x02\x01\xc6\x33\x64\x07\x12\x67\x01\xbb"
	v6 := "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01" + strings.Repeat("\x00", 15) + "\x01\x12\x67\x01\xbb"
	withTLV := v4 + "\x04\x00\x00" + "\x20\x00\x08\x07\x00\x00\x00\x00\x21\x00\x00"
	for _, tt := range []struct{ name, header, source, to string }{
		{"text", "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\n", "192.0.2.1:4711", "198.51.100.7:443"},
		{"text, IPv6", "PROXY TCP6 2001:db8::1 ::1 4711 443\r\n", "[2001:db8::1]:4711", "[::1]:443"},
		{"text, nobody", "PROXY UNKNOWN\r\n", "", ""},
		{"text, nobody with words", "PROXY UNKNOWN ffff:f... :: 1 2\r\n", "", ""},
		{"binary", sig + "\x21\x11\x00\x0c" + v4, "192.0.2.1:4711", "198.51.100.7:443"},
		{"binary, IPv6", sig + "\x21\x21\x00\x24" + v6, "[2001:db8::1]:4711", "[::1]:443"},
		{"extensions", sig + "\x21\x11\x00" + string(rune(len(withTLV))) + withTLV, "192.0.2.1:4711", "198.51.100.7:443"},
		{"local", sig + "\x20\x00\x00\x00", "local", ""},
		{"local with addresses", sig + "\x20\x11\x00\x0c" + v4, "local", ""},
		{"local with rubbish", sig + "\x20\x11\x00\x02xx", "local", ""},
		{"local of a family that nobody knows", sig + "\x20\x99\x00\x02xx", "local", ""},
		{"unspecified", sig + "\x21\x00\x00\x00", "", ""},
		{"a Unix socket", sig + "\x21\x31\x00\xd8" + strings.Repeat("x", 216), "", ""},
		{"a datagram", sig + "\x21\x12\x00\x0c" + v4, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, n, err := read(t, []byte(tt.header+"GET / HTTP/1.1\r\n"))
			if err != nil || n != len(tt.header) {
				t.Fatalf("%d of %d bytes, %v", n, len(tt.header), err)
			}
			source, to := "", ""
			if h.Source.IsValid() {
				source, to = h.Source.String(), h.Destination.String()
			}
			if h.Local {
				source = "local"
			}
			if source != tt.source || to != tt.to {
				t.Errorf("from %s to %s", source, to)
			}
			for n := range len(tt.header) {
				if _, got, err := read(t, []byte(tt.header[:n])); err != nil || got >= 0 {
					t.Errorf("after %d bytes: %d, %v", n, got, err)
				}
			}
		})
	}
}

func TestWhatIsNoHeaderIsRefused(t *testing.T) {
	for name, stream := range map[string]string{
		"HTTP": "GET / HTTP/1.1\r\nHost: s\r\n\r\n", "POST": "POST / HTTP/1.1\r\n\r\n",
		"TLS":                "\x16\x03\x01\x02\x00" + strings.Repeat("x", 20),
		"no end":             "PROXY TCP4 " + strings.Repeat("1", 200),
		"another word":       "PROXY TCP5 192.0.2.1 198.51.100.7 4711 443\r\n",
		"IPv6 as IPv4":       "PROXY TCP4 ::1 ::1 4711 443\r\n",
		"IPv4 as IPv6":       "PROXY TCP6 192.0.2.1 192.0.2.1 4711 443\r\n",
		"a zone":             "PROXY TCP6 fe80::1%eth0 ::1 4711 443\r\n",
		"a port too high":    "PROXY TCP4 192.0.2.1 198.51.100.7 65536 443\r\n",
		"a long port":        "PROXY TCP4 192.0.2.1 198.51.100.7 99999999999999999999 443\r\n",
		"a port with a zero": "PROXY TCP4 192.0.2.1 198.51.100.7 04711 443\r\n",
		"no port":            "PROXY TCP4 192.0.2.1 198.51.100.7  443\r\n",
		"a sign":             "PROXY TCP4 192.0.2.1 198.51.100.7 +1 443\r\n",
		"two spaces":         "PROXY TCP4  192.0.2.1 198.51.100.7 4711 443\r\n",
		"a tab":              "PROXY TCP4\t192.0.2.1 198.51.100.7 4711 443\r\n",
		"too few words":      "PROXY TCP4 192.0.2.1\r\n",
		"too many words":     "PROXY TCP4 192.0.2.1 198.51.100.7 4711 443 x\r\n",
		"version 1 in 2":     sig + "\x11\x11\x00\x0c", "version 3": sig + "\x31\x11\x00\x0c",
		"a command": sig + "\x22\x11\x00\x0c",
		"a family":  sig + "\x21\x41\x00\x0c", "a protocol": sig + "\x21\x13\x00\x0c",
		"only a protocol":  sig + "\x21\x01\x00\x00",
		"too short":        sig + "\x21\x11\x00\x0b" + strings.Repeat("x", 12),
		"too long":         sig + "\x21\x11\xff\xff",
		"half a TLV":       sig + "\x21\x11\x00\x0e" + strings.Repeat("x", 14),
		"a TLV too long":   sig + "\x21\x11\x00\x0f" + strings.Repeat("x", 12) + "\x04\x00\x01",
		"a checksum of 3":  sig + "\x21\x11\x00\x12" + strings.Repeat("x", 12) + "\x03\x00\x03abc",
		"a wrong checksum": sig + "\x21\x11\x00\x13" + strings.Repeat("x", 12) + "\x03\x00\x04abcd",
	} {
		if h, n, err := read(t, []byte(stream)); err == nil {
			t.Errorf("%s: taken as %+v of %d bytes", name, h, n)
		}
	}
}

func TestAChecksumIsChecked(t *testing.T) {
	header := []byte(
		sig + "\x21\x11\x00\x17" + strings.Repeat("x", 12) + "\x03\x00\x04\x00\x00\x00\x00" + "\x04\x00\x01y",
	)
	at := 16 + 12 + 3
	binary.BigEndian.PutUint32(header[at:], crc32.Checksum(header, crc32.MakeTable(crc32.Castagnoli)))
	if _, n, err := read(t, header); err != nil || n != len(header) {
		t.Fatal(n, err)
	}
	for i := 16; i < len(header); i++ {
		bad := bytes.Clone(header)
		bad[i] ^= 1
		if _, n, err := read(t, bad); err == nil && n == len(bad) && bad[16+12] == 3 {
			t.Errorf("byte %d does not count", i)
		}
	}
	two := []byte(
		sig + "\x21\x11\x00\x1a" + strings.Repeat("x", 12) + "\x03\x00\x04\x00\x00\x00\x00\x03\x00\x04\x00\x00\x00\x00",
	)
	if _, _, err := read(t, two); err == nil {
		t.Error("two checksums")
	}
}

func TestWhatIsWrittenIsReadAsItWas(t *testing.T) {
	four, other := netip.MustParseAddrPort("192.0.2.1:4711"), netip.MustParseAddrPort("198.51.100.7:443")
	six := netip.MustParseAddrPort("[2001:db8::1]:80")
	zoned := netip.MustParseAddrPort("[fe80::1%eth0]:80")
	for _, h := range []proxyproto.Header{
		{Source: four, Destination: other}, {Source: six, Destination: six}, {Source: four, Destination: six},
		{Source: six, Destination: four}, {Source: four}, {Source: six}, {Source: zoned, Destination: six}, {}, {Local: true},
	} {
		for version := 1; version <= 2; version++ {
			text := proxyproto.Append(nil, h, version)
			got, n, err := read(t, append(text, "GET"...))
			want := h.Source
			if h.Source == zoned {
				want = netip.MustParseAddrPort("[fe80::1]:80")
			}
			if err != nil || n != len(text) || got.Source != want || got.Source.IsValid() && h.Destination.IsValid() &&
				got.Destination != h.Destination || version == 2 && got.Local != h.Local {
				t.Errorf("version %d: %+v is %q is %+v, %v", version, h, text, got, err)
			}
		}
	}
}

// FuzzParse: nothing behind a header is ever asked for, what is read can be written, and the same is read from that.
func FuzzParse(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 198.51.100.7 4711 443\r\nGET"))
	f.Add([]byte("PROXY TCP6 2001:db8::1 ::1 4711 443\r\n"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(sig + "\x21\x11\x00\x13" + strings.Repeat("x", 12) + "\x03\x00\x04abcd"))
	f.Add([]byte(sig + "\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		h, n, err := read(t, stream)
		if err != nil || n < 0 {
			return
		}
		if n > proxyproto.MaxLength || n < 15 {
			t.Fatalf("a header of %d bytes", n)
		}
		if bytes.HasPrefix(stream, []byte("PROXY ")) && !bytes.HasSuffix(stream[:n], []byte("\r\n")) ||
			n > 107 && stream[0] == 'P' {
			t.Fatalf("%q is a header", stream[:n])
		}
		for version := 1; version <= 2; version++ {
			again, m, err := read(t, proxyproto.Append(nil, h, version))
			if err != nil || m < 0 || again.Source != h.Source || again.Destination != h.Destination ||
				version == 2 && again.Local != h.Local {
				t.Fatalf("%+v is written as %+v, %v", h, again, err)
			}
		}
	})
}
