package identity_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/identity"
)

const (
	good  = "0123456789abcdef"
	other = "fedcba9876543210=="
)

func TestTokensNameTheirCallers(t *testing.T) {
	tokens, err := identity.ParseTokens(
		"tokens", []byte("# who may come in\n\nshop\t"+good+"\r\n  shop "+other+"  \nback-office A-._~+/9876543210zz"))
	if err != nil || tokens.Len() != 3 {
		t.Fatal(tokens, err)
	}
	for authorization, want := range map[string]string{
		"Bearer " + good: "shop", "bearer  " + good: "shop", "BEARER " + other: "shop",
		"Bearer A-._~+/9876543210zz": "back-office",
		"":                           "", "Bearer": "", "Bearer ": "", good: "", "Basic " + good: "", "Bearer\t" + good: "",
		"Bearer " + good + " ": "", "Bearer " + good + "," + other: "",
		"Bearer " + strings.ToUpper(good): "", "Bearer " + good[1:]: "", "Bearer fedcba9876543210=": "", "Bearer #": "",
		"Bearerx" + good:                       "",
		"Bearer " + strings.Repeat("x", 1<<20): "",
	} {
		if got, ok := tokens.Caller([]byte(authorization)); got != want || ok != (want != "") {
			t.Errorf("%.60q is %q, %v; want %q", authorization, got, ok, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { tokens.Caller([]byte("Bearer " + good)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestBadTokenFilesNameEveryMistakeAndNoToken(t *testing.T) {
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"nothing", "", []string{"f: has no token, so nobody could come in"}},
		{"comments only", "# " + good, []string{"f: has no token"}},
		{"words", "shop\n\nshop a b\nshop " + good, []string{
			"f:1: has 1 words: write a name and a token", "f:3: has 3 words",
		}},
		{"too short", "shop 0123456789abcde\nshop 12345678901234==", []string{
			"f:1: the token has 15 characters, which can be guessed: it needs 16", "f:2: the token has 14 characters",
		}},
		{"too long", "shop " + strings.Repeat("a", 1025), []string{"f:1: the token has 1025 characters, at most 1024"}},
		{"not a token", "shop 0123456789abcde!f\nshop 0123=456789abcdef", []string{
			"f:1: character 16 of the token cannot stand in one", "f:2: character 5 of the token",
		}},
		{"names", "caf\xc3\xa9 " + good + "\n" + strings.Repeat("n", 129) + " " + other, []string{
			"f:1: the name has a character that is not visible ASCII", "f:2: the name has 129 characters",
		}},
		{"twice", "a " + good + "\nb " + good, []string{"f:2: the token is that of line 1: give each caller one of its own"}},
		{"huge", strings.Repeat("# x\n", 1<<18+1), []string{"f: has 1048580 bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := identity.ParseTokens("f", []byte(c.file))
			if err == nil {
				t.Fatal("taken")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("%d mistakes, want %d:\n%v", len(lines), len(c.want), err)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("got %q, want %q", lines[i], want)
				}
			}
			if strings.Contains(err.Error(), good) || strings.Contains(err.Error(), "0123456789abcde") {
				t.Errorf("it shows a token: %v", err)
			}
		})
	}
}

// FuzzParseTokens compares with a second reading of the rules: what was taken lets in who it names, and nobody else.
func FuzzParseTokens(f *testing.F) {
	f.Add("a " + good + "\n# b " + other + "\nc " + other)
	f.Add("a  " + good + "\r\n\r\n\tb\t" + other)
	f.Add("a " + good + "\nb " + good)
	f.Add("x\x00y " + good)
	f.Fuzz(func(t *testing.T, file string) {
		tokens, err := identity.ParseTokens("f", []byte(file))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("no file in %q", line)
				}
			}
			return
		}
		known := map[string]string{}
		for line := range strings.SplitSeq(file, "\n") {
			if words := strings.Fields(line); len(words) == 2 && words[0][0] != '#' {
				known[words[1]] = words[0]
			}
		}
		if tokens.Len() != len(known) {
			t.Fatalf("%d tokens, want %d", tokens.Len(), len(known))
		}
		for token, name := range known {
			if got, ok := tokens.Caller([]byte("Bearer " + token)); !ok || got != name {
				t.Errorf("%q is %q, want %q", token, got, name)
			}
			if _, ok := tokens.Caller([]byte("Bearer " + token + "x")); ok && known[token+"x"] == "" {
				t.Errorf("%q is known", token+"x")
			}
		}
	})
}

// hops are the fields X-Forwarded-For of a request, and others.
func hops(values ...string) []h1.Field {
	fields := []h1.Field{{Name: []byte("Host"), Value: []byte("s")}}
	for _, v := range values {
		fields = append(fields, h1.Field{Name: []byte("X-Forwarded-For"), Value: []byte(v)}, h1.Field{
			Name: []byte("Accept"), Value: []byte("192.0.2.99"),
		})
	}
	return fields
}

// inside trusts 10.0.0.0/8 and fd00::/8.
func inside(a netip.Addr) bool {
	return netip.MustParsePrefix("10.0.0.0/8").Contains(a) || netip.MustParsePrefix("fd00::/8").Contains(a)
}

func TestTheClientIsTheFirstWhomNobodyVouchesFor(t *testing.T) {
	for _, c := range []struct {
		peer   string
		values []string
		want   string
	}{
		{"10.0.0.1", nil, "10.0.0.1"},
		{"192.0.2.1", []string{"198.51.100.7"}, "192.0.2.1"},
		{"10.0.0.1", []string{"198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1", []string{"203.0.113.9, 198.51.100.7, 10.0.0.2 ,10.0.0.3"}, "198.51.100.7"},
		{"10.0.0.1", []string{"203.0.113.9", "198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		{"10.0.0.1", []string{"10.0.0.9, 10.0.0.8"}, "10.0.0.9"},
		{"10.0.0.1", []string{"198.51.100.7,, ,"}, "198.51.100.7"},
		{"10.0.0.1", []string{"", " "}, "10.0.0.1"},
		{"10.0.0.1", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"10.0.0.1", []string{"203.0.113.9, unknown, 10.0.0.7"}, "10.0.0.7"},
		{"10.0.0.1", []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{"10.0.0.1", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		{"10.0.0.1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"fd00::1", []string{"2001:db8::1, fd00::2"}, "2001:db8::1"},
		{"10.0.0.1", []string{"203.0.113.9, ::ffff:10.0.0.4"}, "203.0.113.9"},
		{"10.0.0.1", []string{"fe80::1%eth0"}, "10.0.0.1"},
		{"10.0.0.1", []string{"198.51.100.7:"}, "10.0.0.1"},
		{"10.0.0.1", []string{"198.51.100.7:port"}, "10.0.0.1"},
		{"10.0.0.1", []string{"[2001:db8::1"}, "10.0.0.1"},
		{"10.0.0.1", []string{`"198.51.100.7"`}, "10.0.0.1"},
		{"10.0.0.1", []string{"198.51.100.300"}, "10.0.0.1"},
		{"10.0.0.1", []string{strings.Repeat("9", 60000)}, "10.0.0.1"},
	} {
		if got := identity.Client(hops(c.values...), netip.MustParseAddr(c.peer), inside); got.String() != c.want {
			t.Errorf("%s with %.60q is %v, want %s", c.peer, c.values, got, c.want)
		}
	}
	fields, peer := hops("203.0.113.9, 198.51.100.7, 10.0.0.2"), netip.MustParseAddr("10.0.0.1")
	if n := testing.AllocsPerRun(100, func() { identity.Client(fields, peer, inside) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzClient compares with a walk over a list that was split before.
func FuzzClient(f *testing.F) {
	f.Add("10.0.0.1", "203.0.113.9, 198.51.100.7", "10.0.0.2")
	f.Add("10.0.0.1", "unknown", "10.0.0.2,")
	f.Add("fd00::1", "[fd00::2]:80, 10.0.0.3:81", "fd00::5")
	f.Add("192.0.2.1", ",,", "")
	f.Fuzz(func(t *testing.T, peer, one, two string) {
		from, err := netip.ParseAddr(peer)
		if err != nil {
			return
		}
		got := identity.Client(hops(one, two), from, inside)
		want := from
		words := strings.Split(one+","+two, ",")
		for _, word := range slices.Backward(words) {
			if word = strings.Trim(word, " \t"); word == "" {
				continue
			}
			if !inside(want) {
				break
			}
			next, ok := hop(word)
			if !ok {
				break
			}
			want = next
		}
		if got != want {
			t.Errorf("%s with %q and %q is %v, want %v", peer, one, two, got, want)
		}
		if got != from && !strings.Contains(one+two, ".") && !strings.Contains(one+two, ":") {
			t.Errorf("%v came from nowhere", got)
		}
	})
}

// hop reads an address as net/netip does, with or without a port.
func hop(word string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(word)
	if err != nil && strings.HasPrefix(word, "[") && strings.HasSuffix(word, "]") {
		if a, err = netip.ParseAddr(word[1 : len(word)-1]); err == nil && a.Is4() {
			return a, true // nobody writes it, and it does no harm
		}
	}
	if err != nil {
		host, port, _ := strings.Cut(word, "]")
		if !strings.HasPrefix(word, "[") {
			host, port, _ = strings.Cut(word, ":")
			port = ":" + port
		}
		var n int
		if _, bad := fmt.Sscanf(port, ":%d", &n); bad != nil || len(port) > 6 || strings.Trim(port[1:], "0123456789") != "" {
			return a, false
		}
		a, err = netip.ParseAddr(strings.TrimPrefix(host, "["))
	}
	return a.Unmap(), err == nil && a.Zone() == "" && len(word) <= 64
}
