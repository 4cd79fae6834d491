package engine_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// chat is users who hold sessions at two replicas, with parts to be filled in.
const chat = `
clients: {apps: {users: 100, session: {RETURNS}, calls: [gateway]}}
services: {gateway: {replicas: 2, balancing: round-robin, PARTS}}
`

func TestARestartCutsTheSessionsOfItsReplica(t *testing.T) {
	r := run(t, world(plain, edit(chat, "RETURNS", "returns: 1s", "PARTS", "connections: {cost: 1ms}"),
		"faults: [{at: 3s, for: 500ms, restart: gateway, share: 50%}]"))
	s := r.Fleets[0].Sessions()
	equal(t, "sessions before", s.Held[20], 100)
	equal(t, "cut", total(s.Cut), 50)
	equal(t, "sessions during", s.Held[32], 50)
	equal(t, "sessions until they come back", s.Held[38], 50)
	equal(t, "openings", total(r.Fleets[0].Offered), 50)
	equal(t, "sessions after", s.Held[60], 100)
	equal(t, "connections", service(t, r, "gateway").Conns[90], 100)
	equal(t, "goodput", value(t, r, "goodput > 0%"), float64(total(s.Held))/100/100)
	equal(t, "collapse", value(t, r, "collapse(apps) < 1%"), 0)
	within(t, "recovery", value(t, r, "recovery(apps) < 1s"), 0.4, 0.8)
}

func TestAHandshakeCostsACore(t *testing.T) {
	// 100 handshakes of 20 ms on two replicas of one core each: a second.
	r := run(t, world(plain, edit(chat, "RETURNS", "returns: 100ms", "PARTS", "connections: {cost: 20ms}"),
		"faults: [{at: 3s, for: 10ms, restart: gateway}]"))
	s := r.Fleets[0].Sessions()
	within(t, "sessions half a second after the first ones have come back", float64(s.Held[35]), 46, 50)
	within(t, "sessions before the second is over", float64(s.Held[39]), 86, 90)
	equal(t, "sessions after 1.1 s", s.Held[41], 100)
}

func TestSessionsEndAndBeginAgain(t *testing.T) {
	r := run(t, world(plain, edit(chat, "RETURNS", "returns: 1s, lasts: exponential 2s", "PARTS",
		"connections: {cost: 1ms}")))
	// Of each three seconds a user is without a session for one.
	within(t, "openings in 10 s", float64(total(r.Fleets[0].Offered)), 250, 350)
	equal(t, "cut", total(r.Fleets[0].Sessions().Cut), 0)
	within(t, "goodput(apps)", value(t, r, "goodput(apps) > 0%"), 0.62, 0.76)
	s, conns := r.Fleets[0].Sessions(), service(t, r, "gateway").Conns
	for b := range conns {
		if conns[b] < s.Held[b] || conns[b] > s.Held[b]+15 {
			t.Fatalf("%d connections at most in bin %d, at whose end %d sessions were held", conns[b], b, s.Held[b])
		}
	}
}

func TestWhoCannotOpenASessionComesAgain(t *testing.T) {
	r := run(t, world(plain, edit(chat, "RETURNS", "returns: 100ms", "PARTS", "connections: {max: 30}")))
	s := r.Fleets[0].Sessions()
	equal(t, "sessions", s.Held[50], 60)
	within(t, "openings refused", float64(r.Fleets[0].Ends[engine.NoConnection]), 3900, 4000)
	equal(t, "collapse", value(t, r, "collapse(apps) < 1%"), 1)
}

func TestAClientThatRestartsLosesItsSession(t *testing.T) {
	r := run(t, world(plain, `
clients: {apps: {users: 100, instances: 10, session: {returns: 100ms}, calls: [gateway]}}
services: {gateway: {}}
faults: [{at: 3s, for: 2s, restart: apps, share: 20%}]
`))
	s := r.Fleets[0].Sessions()
	equal(t, "cut", total(s.Cut), 20)
	equal(t, "sessions during", s.Held[40], 80)
	equal(t, "connections during", service(t, r, "gateway").Conns[40], 80)
	equal(t, "sessions after", s.Held[60], 100)
}

func TestAnOpeningThatIsGivenUpClosesItsConnection(t *testing.T) {
	r := run(t, world("attemptTimeout: 100ms, "+thrice("100ms"), edit(chat, "RETURNS", "returns: 1s", "PARTS",
		"workers: 1, serviceTime: 50ms"), "faults: [{at: 2s, for: 100ms, restart: gateway}]"))
	for b, n := range service(t, r, "gateway").Conns {
		if n > 100 {
			t.Fatalf("%d connections in bin %d, of 100 users", n, b)
		}
	}
	s := r.Fleets[0].Sessions()
	equal(t, "connections at the end, one a session and those being opened", s.Held[99] <= 100, true)
	if s.Held[99] >= 100 {
		t.Errorf("%d sessions, want fewer: 40 requests a second can be done, and 100 users try thrice a second", s.Held[99])
	}
}

func TestWhoeverWaitsForAConnectionGetsTheNextOne(t *testing.T) {
	const full = `
clients: {apps: {users: 8, instances: 8, session: {returns: 10ms, lasts: 1s}, calls: [db]}}
services: {db: {connections: {max: 4, HOW}}}
`
	waits := run(t, world(plain, edit(full, "HOW", "whenFull: wait")))
	s := waits.Fleets[0].Sessions()
	equal(t, "sessions", s.Held[50], 4)
	equal(t, "refused", total(service(t, waits, "db").Unopened), 0)
	// Four at a time, a second each: 40 begin within 10 s, four of them at its begin.
	within(t, "opened", float64(waits.Fleets[0].Ends[engine.Answered]), 35, 40)
	few := run(t, world(plain, edit(full, "HOW", "whenFull: wait, backlog: 2")))
	if n := total(service(t, few, "db").Unopened); n < 100 {
		t.Errorf("%d were refused, want the two that find two waiting to knock every 10 ms", n)
	}
	equal(t, "sessions with a backlog", few.Fleets[0].Sessions().Held[50], 4)
}

func TestABacklogBoundsHandshakes(t *testing.T) {
	r := run(t, world(plain, edit(chat, "RETURNS", "returns: 10s", "PARTS", "connections: {cost: 100ms, backlog: 5}"),
		"faults: [{at: 1s, for: 10ms, restart: gateway}]", "duration: 20s"))
	// Each replica makes one connection, five wait, 44 are refused and come back 10 s later.
	s := r.Fleets[0].Sessions()
	equal(t, "sessions once the first have been made", s.Held[int(13*time.Second/r.Bin)], 12)
	equal(t, "refused", r.Fleets[0].Ends[engine.NoConnection], 88)
}
