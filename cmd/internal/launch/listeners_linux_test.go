package launch_test

import (
	"net"
	"strings"
	"testing"
)

// TestListenersAreThoseOfTheProxy: plain TCP, for only there the kernel bounds what a client leaves untaken.
func TestListenersAreThoseOfTheProxy(t *testing.T) {
	looked := 0
	code, _, errs := run(t, func(out, _ string) bool {
		if !strings.Contains(out, "ready") {
			return false
		}
		for _, url := range strings.Fields(strings.TrimPrefix(out, "ready")) {
			d := net.Dialer{}
			d.SetMultipathTCP(true)
			c, err := d.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Error(err)
				continue
			}
			if multi, err := c.(*net.TCPConn).MultipathTCP(); multi || err != nil {
				t.Errorf("%s speaks Multipath TCP: %v", url, err)
			}
			c.Close()
			looked++
		}
		return true
	}, "-c", policyFor(t, "http://192.0.2.1"), "--", "sh", "-c",
		"echo ready $http_proxy $ABATE_URL_PAY; while :; do sleep 0.05; done")
	if looked != 2 || code != 143 {
		t.Errorf("looked at %d listeners; code %d: %s", looked, code, errs)
	}
}
