package launch

import (
	"net/netip"
	"testing"
	"time"
)

// SetPatience changes how long no call may come before something is said.
func SetPatience(t *testing.T, d time.Duration) {
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}

// Environment is what a program would get to know.
func Environment(proxy string, tunnels bool, hosts, base []string) (env, notes []string) {
	s := surroundings{proxy: proxy, tunnels: tunnels, hosts: hosts, preload: "/tmp/a b/preload.cjs", metadata: metadata,
		bases: map[string]string{"ABATE_URL_S": "http://127.0.0.1:7"}}
	return s.environment(base)
}

// Variable is the name of a service's variable.
func Variable(service string) string { return variable(service) }

// Sockets reads a table of connections.
func Sockets(table []byte) (remotes []netip.AddrPort) {
	for _, s := range sockets(table) {
		remotes = append(remotes, s.remote)
	}
	return remotes
}

// ParentOf reads who the parent of a process is.
func ParentOf(stat []byte) (int, bool) { return parentOf(stat) }

// Descendants are a process and all that it has started.
func Descendants(root int, parents map[int]int) map[int]bool { return descendants(root, parents) }
