package launch

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

// ledger knows whose the connections to services are, by their cookies. It never takes one of the proxy for one of the
// program: the proxy's are known before they are made. It may be used by several goroutines.
type ledger struct {
	mu       sync.Mutex
	open     map[uint64]whose           // connections that have not ended, as far as they were looked at
	ended    [2]remains                 // of those that ended lately, and a while ago
	forgot   bool                       // there were too many: what is listed may be somebody's after all
	late     map[ends]bool              // those that were counted, though their notices may come yet
	turned   time.Duration              // when ended was turned
	suspects map[uint64]bool            // those of which nobody knew anything in the last list
	passed   map[netip.AddrPort]passage // what ended and was nobody's
}

// whose is who has a connection.
type whose int

const (
	proxys whose = iota + 1
	programs
	others
)

// remains are what is left of connections that have ended, and may still be listed: the cookies of those that were
// somebody's, the ends of those that were not. Nobody had asked for the cookies of these before, and the kernel lists
// such a connection, after its end, under another one.
type remains struct {
	cookies map[uint64]bool
	ends    map[ends]bool
}

func newRemains() remains { return remains{map[uint64]bool{}, map[ends]bool{}} }

// ends are the two of a connection.
type ends struct{ local, remote netip.AddrPort }

func (s *socket) ends() ends { return ends{s.local, s.remote} }

// passage is how many connections to an address came and went of which nobody saw whose they were.
type passage struct {
	carried int // with content
	empty   int // without: they were refused, say, or only tried the port
}

// lingers is how long the kernel lists a connection that has ended, and a little more.
const lingers = 90 * time.Second

// mostPassed is how many addresses are kept of which nobody knows yet whether a service has them.
const mostPassed = 4096

// mostRemains is how many connections are remembered that have ended: some tens of megabytes at most.
const mostRemains = 100_000

func newLedger() *ledger {
	return &ledger{open: map[uint64]whose{}, ended: [2]remains{newRemains(), newRemains()}, late: map[ends]bool{},
		passed: map[netip.AddrPort]passage{}}
}

// proxy notes a connection of the proxy, which is about to be made.
func (l *ledger) proxy(cookie uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[cookie] = proxys
}

// before notes what there was before the program began.
func (l *ledger) before(list []socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range list {
		if l.open[s.cookie] == 0 {
			l.open[s.cookie] = others
		}
	}
}

// end notes that a connection has ended. One without a port was cut off by its own end, and nobody knows where it led.
func (l *ledger) end(s socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch known := l.knows(s.cookie); {
	case known:
		delete(l.open, s.cookie)
		l.ended[0].cookies[s.cookie] = true
	case s.remote.Port() != 0 && !l.late[s.ends()]:
		l.pass(s)
	}
	delete(l.late, s.ends())
}

// pass counts a connection that was nobody's. mu is held.
func (l *ledger) pass(s socket) {
	n, known := l.passed[s.remote]
	if !known && len(l.passed) >= mostPassed {
		return
	}
	if s.carried {
		n.carried++
	} else {
		n.empty++
	}
	l.passed[s.remote] = n
	l.ended[0].ends[s.ends()] = true
}

// knows reports whether a connection is, or was, somebody's. mu is held.
func (l *ledger) knows(cookie uint64) bool {
	return l.open[cookie] != 0 || l.ended[0].cookies[cookie] || l.ended[1].cookies[cookie]
}

// counted reports whether a connection that has ended was counted. mu is held.
func (l *ledger) counted(e ends) bool { return l.ended[0].ends[e] || l.ended[1].ends[e] }

// look reads a list of all connections, and returns those to some addresses of which somebody has to find out whose
// they are. What has ended without a notice is counted when it is in two lists: the notice may have been on its way.
func (l *ledger) look(now time.Duration, list []socket, to map[netip.AddrPort]string) (unknown []socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	if len(l.passed) > mostPassed/2 {
		maps.DeleteFunc(l.passed, func(at netip.AddrPort, _ passage) bool { return to[at] == "" })
	}
	before := l.suspects
	l.suspects = map[uint64]bool{}
	for _, s := range list {
		switch _, ok := to[s.remote]; {
		case !ok || l.knows(s.cookie):
		case s.inode != 0:
			unknown = append(unknown, s)
			l.suspects[s.cookie] = before[s.cookie]
		case l.counted(s.ends()) || l.forgot:
		case before[s.cookie]:
			l.pass(s)
			l.late[s.ends()] = true
		default:
			l.suspects[s.cookie] = true
		}
	}
	return unknown
}

// turn forgets what is not listed any more. mu is held.
func (l *ledger) turn(now time.Duration) {
	if len(l.ended[0].cookies)+len(l.ended[0].ends) > mostRemains {
		l.forgot = true // for good: notices still count
		l.turned = now - lingers
	}
	if now-l.turned >= lingers {
		l.ended, l.turned = [2]remains{newRemains(), l.ended[0]}, now
		clear(l.late)
	}
}

// settle notes whose some connections are that look returned, and returns where those of the program lead. One that
// is not the program's in two lists is somebody else's, if sure says that all of the program could be looked into.
func (l *ledger) settle(unknown []socket, has map[uint64]whose, sure bool) (found []netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range unknown {
		who := has[s.inode]
		if who == programs {
			found = append(found, s.remote)
		}
		if s.cookie == 0 {
			continue
		}
		if who == 0 && sure && l.suspects[s.cookie] {
			who = others
		}
		if l.suspects[s.cookie] = true; who != 0 && !l.knows(s.cookie) { // else it has ended meanwhile
			l.open[s.cookie] = who
		}
	}
	return found
}

// passages are the connections that came and went to some addresses without being anybody's.
func (l *ledger) passages(to map[netip.AddrPort]string) map[netip.AddrPort]passage {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[netip.AddrPort]passage{}
	for at, n := range l.passed {
		if _, ok := to[at]; ok {
			all[at] = n
		}
	}
	return all
}
