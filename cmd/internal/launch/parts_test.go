package launch_test

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/launch"
)

func TestProgramGetsWhatItsRuntimeNeeds(t *testing.T) {
	env, notes := launch.Environment("127.0.0.1:1234", false, []string{"pay.test:80", "10.0.0.7:8080"}, []string{
		"NO_PROXY=corp.example,other.example", "PATH=/bin", "http_proxy=http://old:1",
		"no_proxy=.test,10.0.0.0/8,other.example,pay.test:81",
		"NODE_OPTIONS=--inspect",
		"JAVA_TOOL_OPTIONS=-Xmx1g", "HTTPS_PROXY=http://corp:3128"})
	got := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := got[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		got[name] = value
	}
	want := map[string]string{
		"PATH": "/bin", "HTTP_PROXY": "http://127.0.0.1:1234", "http_proxy": "http://127.0.0.1:1234",
		"HTTPS_PROXY":       "http://corp:3128",
		"no_proxy":          "other.example,pay.test:81,corp.example,169.254.169.254,fd00:ec2::254",
		"NO_PROXY":          "other.example,pay.test:81,corp.example,169.254.169.254,fd00:ec2::254",
		"NODE_OPTIONS":      `--inspect --require "/tmp/a b/preload.cjs"`,
		"JAVA_TOOL_OPTIONS": "-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=1234 -Dhttp.nonProxyHosts=",
		"ABATE_RUN_PROXY":   "127.0.0.1:1234", "ABATE_RUN_HOSTS": "pay.test:80,10.0.0.7:8080",
		"ABATE_URL_S": "http://127.0.0.1:7",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if said := strings.Join(notes, "\n"); !strings.Contains(said, "http://old:1") || !strings.Contains(said,
		".test, 10.0.0.0/8") {
		t.Errorf("what gave way is not said: %s", said)
	}
	env, _ = launch.Environment("127.0.0.1:1", true, nil, nil)
	if !slices.Contains(env, "https_proxy=http://127.0.0.1:1") || !slices.ContainsFunc(env, func(v string) bool {
		return strings.Contains(v, "-Dhttps.proxyPort=1")
	}) {
		t.Errorf("with tunnels allowed: %v", env)
	}
}

func TestVariableIsTheNameInCapitals(t *testing.T) {
	for service, want := range map[string]string{"payment-service": "ABATE_URL_PAYMENT_SERVICE",
		"a.b/c9": "ABATE_URL_A_B_C9"} {
		if got := launch.Variable(service); got != want {
			t.Errorf("%s: %s", service, got)
		}
	}
}

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1 0 100 0 0 10 0
   1: 0100007F:A0B2 0100007F:1F91 01 00000000:00000000 00:00000000 00000000     0        0 18 1 0 20 4 30 10 -1
   2: 0100007F:A0B4 0100007F:1F91 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0
   3: 0000000000000000FFFF00000100007F:A0B6 0000000000000000FFFF00000100007F:1F92 01 0:0 0:0 0 0 0 19 1 0
   4: nonsense
`

func TestTableOfConnectionsIsRead(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return // the table is that of a machine with the other order of bytes
	}
	got := launch.Sockets([]byte(table))
	want := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8081"), netip.MustParseAddrPort("127.0.0.1:8082")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestProcessesOfAProgramAreThoseItHasStarted(t *testing.T) {
	if parent, ok := launch.ParentOf([]byte("12 (a) b) (c) S 7 12 12 0")); parent != 7 || !ok {
		t.Errorf("parent %d, %v", parent, ok)
	}
	got := launch.Descendants(10, map[int]int{10: 1, 11: 10, 12: 11, 13: 1, 14: 13, 15: 16, 16: 15})
	if want := map[int]bool{10: true, 11: true, 12: true}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// FuzzProc: what the kernel writes, or anything else, is read without a panic.
func FuzzProc(f *testing.F) {
	f.Add([]byte(table), []byte("1 (x) S 2 3"))
	f.Fuzz(func(t *testing.T, table, stat []byte) {
		for _, at := range launch.Sockets(table) {
			if !at.IsValid() {
				t.Errorf("an address that is none of %q", table)
			}
		}
		launch.ParentOf(stat)
	})
}
