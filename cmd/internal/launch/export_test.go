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

// Socket is a connection as the kernel has it.
type Socket struct {
	Local, Remote netip.AddrPort
	Inode, Cookie uint64
	Carried       bool
}

func (s Socket) inner() socket {
	return socket{local: s.Local, remote: s.Remote, inode: s.Inode, cookie: s.Cookie, carried: s.Carried}
}

// Diagnosed reads what the kernel says of sockets.
func Diagnosed(b []byte) (all []Socket, last, failed bool) {
	list, last, failed := diagnosed(b)
	for _, s := range list {
		all = append(all, Socket{s.local, s.remote, s.inode, s.cookie, s.carried})
	}
	return all, last, failed
}

// Ledger knows whose connections are.
type Ledger struct{ *ledger }

func NewLedger() Ledger { return Ledger{newLedger()} }

func (l Ledger) Proxy(cookie uint64) { l.proxy(cookie) }

func (l Ledger) End(s Socket) { l.end(s.inner()) }

func (l Ledger) Before(list ...Socket) { l.before(inner(list)) }

func inner(list []Socket) (all []socket) {
	for _, s := range list {
		all = append(all, s.inner())
	}
	return all
}

// Look looks at a list, where the program has some of its inodes.
func (l Ledger) Look(now time.Duration, programs uint64, sure bool, to netip.AddrPort,
	list ...Socket) (found []netip.AddrPort) {
	unknown := l.look(now, inner(list), map[netip.AddrPort]string{to: "pay"})
	return l.settle(unknown, map[uint64]whose{programs: whose(2)}, sure)
}

// Passed is how many connections to an address came and went, with content and without.
func (l Ledger) Passed(to netip.AddrPort) (carried, empty int) {
	n := l.passages(map[netip.AddrPort]string{to: "pay"})[to]
	return n.carried, n.empty
}

// Everywhere adds the other addresses of this machine.
func Everywhere(found map[netip.AddrPort]string, local ...netip.Addr) map[netip.AddrPort]string {
	return everywhere(found, local)
}
