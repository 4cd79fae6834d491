package launch_test

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/launch"
)

var (
	service = netip.MustParseAddrPort("10.0.0.7:80")
	client  = netip.MustParseAddrPort("10.0.0.1:40000")
)

const (
	mine = 7 // an inode of the program
	sec  = time.Second
)

// open and over are connections to the service, over without anybody who has it.
func open(cookie, inode uint64) launch.Socket {
	return launch.Socket{Local: client, Remote: service, Cookie: cookie, Inode: inode}
}

func over(cookie uint64) launch.Socket {
	return launch.Socket{Local: client, Remote: service, Cookie: cookie, Carried: true}
}

func TestConnectionThatNobodySawIsCountedOnce(t *testing.T) {
	empty, reset := over(3), over(4)
	empty.Carried, reset.Remote = false, netip.AddrPortFrom(service.Addr(), 0)
	for name, c := range map[string]struct {
		happens        func(l launch.Ledger)
		carried, empty int
	}{
		"a notice":               {func(l launch.Ledger) { l.End(over(1)) }, 1, 0},
		"a notice of a try":      {func(l launch.Ledger) { l.End(empty) }, 0, 1},
		"cut off":                {func(l launch.Ledger) { l.End(reset) }, 0, 0},
		"listed once":            {func(l launch.Ledger) { l.Look(sec, mine, true, service, over(1)) }, 0, 0},
		"a lost notice":          {twice(over(1)), 1, 0},
		"the proxy's":            {func(l launch.Ledger) { l.Proxy(1); l.End(over(1)); twice(over(1))(l) }, 0, 0},
		"the proxy's, not ended": {func(l launch.Ledger) { l.Proxy(1); twice(open(1, 2))(l); l.End(over(1)) }, 0, 0},
		"somebody else's, seen":  {func(l launch.Ledger) { twice(open(1, 2))(l); l.End(over(1)) }, 0, 0},
		"the program's, seen": {func(l launch.Ledger) {
			twice(open(1, mine))(l)
			l.End(over(1))
			twice(over(1))(l)
		}, 0, 0},
		"seen once, by whom ever": {func(l launch.Ledger) {
			l.Look(sec, mine, true, service, open(1, 2))
			l.End(over(1))
		}, 1, 0},
		"of before": {func(l launch.Ledger) {
			l.Before(over(1), open(2, 2))
			twice(over(1))(l)
			l.End(over(2))
		}, 0, 0},
		"listed by another cookie after its notice": {func(l launch.Ledger) { l.End(over(1)); twice(over(9))(l) }, 1, 0},
		"a notice after the list, by another cookie": {func(l launch.Ledger) {
			twice(over(9))(l)
			l.End(over(1))
		}, 1, 0},
		"two with the same ends":  {func(l launch.Ledger) { twice(over(9))(l); l.End(over(1)); l.End(over(2)) }, 2, 0},
		"a notice after the list": {func(l launch.Ledger) { twice(over(1))(l); l.End(over(1)) }, 1, 0},
		"somebody may hide": {func(l launch.Ledger) {
			for range 3 {
				l.Look(sec, mine, false, service, open(1, 2))
			}
			l.End(over(1))
		}, 1, 0},
		"the proxy's, long after": {func(l launch.Ledger) {
			l.Proxy(1)
			l.Look(100*sec, mine, true, service)
			l.Look(180*sec, mine, true, service)
			l.End(over(1))
			for at := 181 * sec; at <= 245*sec; at += sec {
				l.Look(at, mine, true, service, over(1))
			}
		}, 0, 0},
	} {
		l := launch.NewLedger()
		c.happens(l)
		if carried, empty := l.Passed(service); carried != c.carried || empty != c.empty {
			t.Errorf("%s: %d with content, %d without; want %d, %d", name, carried, empty, c.carried, c.empty)
		}
	}
}

// twice lists a connection twice.
func twice(one launch.Socket) func(l launch.Ledger) {
	return func(l launch.Ledger) {
		l.Look(sec, mine, true, service, one)
		l.Look(2*sec, mine, true, service, one)
	}
}

func TestConnectionOfTheProgramIsFound(t *testing.T) {
	l := launch.NewLedger()
	l.Proxy(1)
	got := l.Look(sec, mine, true, service, open(1, mine), open(2, mine), open(3, 4),
		launch.Socket{Remote: client, Cookie: 5, Inode: mine})
	if len(got) != 1 || got[0] != service {
		t.Errorf("found %v", got)
	}
	// What /proc lists has no cookie.
	for range 2 {
		if got := l.Look(sec, mine, true, service, open(0, mine), open(0, 4)); len(got) != 1 {
			t.Errorf("without cookies: found %v", got)
		}
	}
}

// However many addresses others connect to, those of services are counted.
func TestManyOtherAddressesHideNoService(t *testing.T) {
	l := launch.NewLedger()
	for i := range 10_000 {
		one := over(uint64(i + 10))
		one.Remote = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 80)
		if l.End(one); i%1000 == 0 {
			l.Look(sec, mine, true, service)
		}
	}
	l.End(over(1))
	if carried, _ := l.Passed(service); carried != 1 {
		t.Errorf("%d were counted", carried)
	}
}

// So many connections of the proxy end that they cannot all be remembered. None is taken for the program's, and the
// program's still count.
func TestMoreConnectionsThanAreRememberedAccuseNobody(t *testing.T) {
	l := launch.NewLedger()
	for i := range uint64(300_000) {
		l.Proxy(i + 10)
		l.End(over(i + 10))
		if i%100_000 == 0 {
			l.Look(sec, mine, true, service)
		}
	}
	for at := 2 * sec; at < 5*sec; at += sec {
		l.Look(at, mine, true, service, over(10), over(250_000))
	}
	if carried, _ := l.Passed(service); carried != 0 {
		t.Errorf("%d of the proxy's were counted", carried)
	}
	l.End(over(1))
	if carried, _ := l.Passed(service); carried != 1 {
		t.Errorf("%d were counted", carried)
	}
}

func TestServiceOfThisMachineIsWatchedAtAllOfItsAddresses(t *testing.T) {
	at := netip.MustParseAddrPort
	local := []netip.Addr{at("127.0.0.1:1").Addr(), at("[::1]:1").Addr(), at("10.0.0.1:1").Addr()}
	got := launch.Everywhere(map[netip.AddrPort]string{at("0.0.0.0:80"): "any", at("127.0.0.1:81"): "pay",
		at("10.0.0.1:81"): "other", at("10.0.0.9:82"): "far"}, local...)
	want := map[netip.AddrPort]string{at("0.0.0.0:80"): "any", at("127.0.0.1:80"): "any", at("[::1]:80"): "any",
		at("10.0.0.1:80"): "any", at("127.0.0.1:81"): "pay", at("10.0.0.1:81"): "other", at("10.0.0.9:82"): "far"}
	delete(got, at("[::1]:81")) // of pay or other, which both are there
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// notice is what the kernel writes of a socket: see struct inet_diag_msg and struct tcp_info.
func notice(family byte, segments uint32) []byte {
	b := make([]byte, 16+72+4+160)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], 20)
	m := b[16:]
	m[0] = family
	binary.BigEndian.PutUint16(m[4:], 40000)
	binary.BigEndian.PutUint16(m[6:], 80)
	if family == 2 {
		copy(m[8:], []byte{10, 0, 0, 1})
		copy(m[24:], []byte{10, 0, 0, 7})
	} else { // as Java has it
		copy(m[8:], []byte{10: 255, 255, 10, 0, 0, 1})
		copy(m[24:], []byte{10: 255, 255, 10, 0, 0, 7})
	}
	binary.NativeEndian.PutUint32(m[44:], 5)
	binary.NativeEndian.PutUint32(m[48:], 1)
	binary.NativeEndian.PutUint32(m[68:], 9)
	binary.NativeEndian.PutUint16(m[72:], 164)
	binary.NativeEndian.PutUint16(m[74:], 2)
	binary.NativeEndian.PutUint32(m[76+156:], segments)
	return b
}

func TestNoticesAreRead(t *testing.T) {
	done := notice(2, 0)[:16]
	binary.NativeEndian.PutUint32(done, 16)
	binary.NativeEndian.PutUint16(done[4:], 3)
	got, last, failed := launch.Diagnosed(append(append(notice(2, 1), notice(10, 0)...), done...))
	want := []launch.Socket{{Local: client, Remote: service, Inode: 9, Cookie: 1<<32 + 5, Carried: true},
		{Local: client, Remote: service, Inode: 9, Cookie: 1<<32 + 5}}
	if !reflect.DeepEqual(got, want) || !last || failed {
		t.Errorf("got %v, last %v, failed %v", got, last, failed)
	}
	short := notice(2, 0)[:88]
	binary.NativeEndian.PutUint32(short, 88)
	if got, last, _ := launch.Diagnosed(short); len(got) != 1 || !got[0].Carried || last {
		t.Errorf("one without attributes: %v, last %v", got, last)
	}
	if _, last, failed := launch.Diagnosed([]byte{17: 0, 4: 2, 0: 16, 1: 0}); binary.NativeEndian.Uint16([]byte{1,
		0}) == 1 && (!last || !failed) {
		t.Errorf("an error: last %v, failed %v", last, failed)
	}
}

// FuzzNotice: whatever comes is read without a panic, and is an address if it is a connection.
func FuzzNotice(f *testing.F) {
	f.Add(notice(2, 1))
	f.Add(append(notice(10, 0), 3, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _, _ := launch.Diagnosed(b)
		for _, s := range all {
			if !s.Remote.IsValid() {
				t.Errorf("an address that is none of %x", b)
			}
		}
	})
}
