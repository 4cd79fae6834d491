package engine

import "github.com/abate-go/abate/sim/kernel"

// sessions are the connections that users of some fleets hold, each one to a replica, for as long as they can.
type sessions struct {
	world       *world
	rec         *recorder
	servers     *servers
	connections *connections
	all         []session
	from        []int32 // of fleets, by index: where their users begin in all; -1 for those that hold none
	streams     []kernel.Stream
}

// session is that of one user. Its number makes events about an earlier state of it mean nothing.
type session struct {
	connection
	fleet, user int32
	number      uint32
	state       sessionState
}

type sessionState uint8

const (
	away    sessionState = iota // waits until it asks again
	opening                     // asks
	held                        // has one
)

// reset gives every user a session, spread evenly over the replicas that there are. Whoever finds no room comes later.
func (ss *sessions) reset() {
	*ss = sessions{world: ss.world, rec: ss.rec, servers: ss.servers, connections: ss.connections, all: ss.all[:0],
		from: ss.from[:0], streams: ss.streams[:0]}
	for n := range ss.world.nodes {
		node := &ss.world.nodes[n]
		if node.fleet == nil {
			break // the rest are services
		}
		ss.streams = append(ss.streams, ss.world.stream(node.name, "sessions"))
		if !node.fleet.HoldsSessions() {
			ss.from = append(ss.from, -1)
			continue
		}
		ss.from = append(ss.from, int32(len(ss.all)))
		callee := &ss.world.nodes[ss.world.edges[node.edges[0]].callee]
		for u := range node.fleet.Users {
			ss.all = append(ss.all, session{fleet: int32(n), user: int32(u)})
			i := uint32(len(ss.all) - 1)
			replica := callee.first + int32(u)%callee.initial
			r := &ss.servers.replicas[replica]
			if most := callee.service.Connections.Max; most > 0 && r.conns >= int32(most) {
				ss.waits(i)
				continue
			}
			r.conns++
			ss.holds(i, connection{replica, r.connEpoch})
		}
	}
}

// of is the session of a user of a fleet.
func (ss *sessions) of(fleet int, user uint32) uint32 { return uint32(ss.from[fleet]) + user }

// waits lets a user ask for a session after a while.
func (ss *sessions) waits(i uint32) {
	s := &ss.all[i]
	s.state = away
	ss.due(i, ss.world.nodes[s.fleet].fleet.Session.Returns.Sample(&ss.streams[s.fleet]))
}

// holds gives a user a session, which may end by itself.
func (ss *sessions) holds(i uint32, c connection) {
	s := &ss.all[i]
	s.state, s.connection = held, c
	if lasts := &ss.world.nodes[s.fleet].fleet.Session.Lasts; !lasts.IsZero() {
		ss.due(i, lasts.Sample(&ss.streams[s.fleet]))
	}
	ss.count(s, +1)
}

// due schedules what a user does next.
func (ss *sessions) due(i uint32, after int64) {
	s := &ss.all[i]
	s.number = (s.number + 1) & generationMask
	ss.world.queue.Push(ss.world.now+after, i, kernel.Meta(evSession, s.number))
}

// moves processes an event about a user, who asks for a session now if it returns true.
func (ss *sessions) moves(i, number uint32) bool {
	s := &ss.all[i]
	switch {
	case s.number != number || s.state == opening:
		return false
	case s.state == held:
		ss.ends(i)
		ss.servers.hangUp(s.replica)
		ss.waits(i)
		return false
	}
	s.state = opening
	return true
}

// opened is the end of a request for a session.
func (ss *sessions) opened(i uint32, end EndKind) {
	c := ss.connections.kept
	if end == Answered && ss.servers.replicas[c.replica].connEpoch == c.epoch {
		ss.holds(i, c)
		return
	}
	ss.waits(i)
}

// ends takes a session away from its user.
func (ss *sessions) ends(i uint32) {
	s := &ss.all[i]
	s.number = (s.number + 1) & generationMask
	ss.count(s, -1)
}

// cut ends all sessions that a program that ends has, or has broken off: a replica, or an instance of a fleet.
func (ss *sessions) cut(inst int32) {
	if len(ss.all) == 0 {
		return
	}
	node := ss.world.nodeOf(inst)
	for i := range ss.all {
		s := &ss.all[i]
		if s.state != held {
			continue
		}
		fleet := &ss.world.nodes[s.fleet]
		switch {
		case s.replica == inst:
			if s.epoch == ss.servers.replicas[inst].connEpoch {
				continue // it is of the program that has just begun
			}
		case node == fleet && node.first+s.user%node.count == inst:
			ss.servers.hangUp(s.replica)
		default:
			continue
		}
		ss.ends(uint32(i))
		ss.rec.record.Fleets[s.fleet].sessions.Cut[ss.rec.bin]++
		ss.waits(uint32(i))
	}
}

// count notes that a fleet holds one session more, or less.
func (ss *sessions) count(s *session, change int32) {
	record := ss.rec.record.Fleets[s.fleet].sessions
	record.held += change
}

// sample records how many sessions are held at the end of a bin.
func (ss *sessions) sample() {
	for n, from := range ss.from {
		if from >= 0 {
			record := ss.rec.record.Fleets[n].sessions
			record.Held[ss.rec.bin] = uint32(record.held)
		}
	}
}
