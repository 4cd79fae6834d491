package proxy_test

import (
	"runtime"
	"strings"
	"testing"
)

// A policy file that is loaded once the proxy has ended begins nothing: nobody would end it.
func TestAReloadBehindTheEndLooksForNoAddresses(t *testing.T) {
	s := mirror(t)
	r := start(t, single([]string{s.url}))
	r.get("/")
	r.shutdown()
	r.put(newTargets(t, addrOf(s)).policy("http") + "  more: {upstreams: [\"http://m.test\"], " +
		"discovery: {type: file, path: " + newTargets(t, addrOf(s)).path + "}}\n")
	if err := r.proxy.Reload(); err != nil {
		t.Error(err)
	}
	r.adminGet("/guards")
	buf := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "proxy/discovery.") {
			t.Errorf("it is left:\n%s", stack)
		}
	}
}
