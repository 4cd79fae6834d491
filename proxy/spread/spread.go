// Package spread decides over how many connections the calls to one endpoint go that speaks HTTP/2, which of them takes
// the next call, and when one is given up for a new one. It is given the time and the random numbers, and does no I/O.
//
// Why: behind one address there may be a balancer of connections, which sees no calls. All calls on one connection are
// then one backend's, however many there are, and one that was started a moment ago gets none until somebody connects
// anew. Nobody on this side can see what is behind an address, or whether a new connection leads to another backend. So
// three things are done that help if there is a balancer and cost little if there is none:
//
//   - Calls go to the connection with the fewest under way.
//   - There are as many connections as calls need that are under way at once, [Busy] for each, up to [Few].
//   - A connection has a [Life], is replaced by a new one after that, and ends with its last call. One that carries
//     much is replaced sooner: where the balancer deals by chance, many are needed for a fair share.
//
// Where the connections there are can do without one that is too old, it is not replaced.
//
// # What chance leaves
//
// A balancer that deals by chance, as that of a ClusterIP usually does, gives each connection to a new backend with
// their share p of all. Of n connections that are made in some time, of which each carries as much, they get np on
// average, with a standard deviation of √(np(1-p)). So all new ones of six together have at least 80 % of their half
// with the probability Φ(0.2√n): 84 % for 25 connections, 95 % for 68. The calls of a caller pay for one connection in
// Enough, so that one with r calls a second makes n = 10r/Enough in ten seconds: of one with 2000, 40, and 90 %.
// Several callers add up.
package spread

import "time"

const (
	// Busy is how many calls a connection has under way before another one is made. Calls that share a connection share
	// writes and reads. With 32 under way, on both sides and in between, a call took 16.4 µs of processor time on one
	// connection, 17 to 18 µs with 16 on each, and 21.6 µs with 8 on each: that is more than what the last step is worth.
	Busy = 16
	// Few is how many connections are made for that. With n of them dealt out in turn over b backends the least gets
	// ⌊n/b⌋ of n: for b = 6 of 16 that is 12.5 % instead of 16.7 %.
	Few = 16
	// Age is how old connections become if there is one endpoint: what is behind a balancer of connections is found by
	// the next one, and all of them are new after that time. It leaves two of the ten seconds in which a backend that
	// was added is to have its share.
	Age = 8 * time.Second
	// Enough is how many calls a connection has carried when it may be replaced after a sixteenth of its life, and
	// EnoughTLS when one with TLS may be after a quarter. To make one took 125 µs of processor time on both sides, over
	// TLS 1 ms with a ticket from the last one and 2.4 ms without, and a call 16 µs: that is 1.6, 3 and 8 % of what it
	// has carried.
	Enough, EnoughTLS = 500, 2000
)

// Life is how long a connection lives that is made now, to one of so many endpoints: between the half of it and all, so
// that not all are replaced at once. age is [Age], or what somebody has set; 0 or less means for ever. It is longer
// with more endpoints: the less of the calls one of them takes, the less can be hidden behind it, and the making of
// connections costs the same whatever their number. rnd are 64 uniform random bits.
func Life(age time.Duration, endpoints int, rnd uint64) time.Duration {
	if age <= 0 || endpoints > int(Forever/age) {
		return Forever
	}
	age *= time.Duration(max(endpoints, 1))
	return age - time.Duration(float64(age/2)*(float64(rnd>>11)/(1<<53)))
}

// Forever is the life of a connection that is not replaced.
const Forever = time.Duration(1<<63 - 1)

// Carrier is a connection.
type Carrier struct {
	Streams int           // calls under way
	Calls   int           // that it has carried
	Made    time.Duration // when
	Until   time.Duration // the end of its life
	TLS     bool          // to make another one costs more
}

// due is when it is to be replaced.
func (c *Carrier) due() time.Duration {
	enough, part := Enough, time.Duration(16)
	if c.TLS {
		enough, part = EnoughTLS, 4
	}
	if c.Calls < enough || c.Until == Forever {
		return c.Until
	}
	return c.Made + (c.Until-c.Made)/part
}

// Pool remembers of the connections to one endpoint what their number is decided by. The zero Pool is ready. It is not
// safe for concurrent use.
type Pool struct {
	turn         int // where the search for the next begins: of equals it is another one each time
	peak, before int // the most calls under way since one was last too old, and in the time before
}

// Choice is what is to be done for a call.
type Choice struct {
	Best int  // the connection that takes it; -1 if there is none
	Dial bool // another one is to be made beside it
	Drop int  // the connection that is to end, without another in its place; -1 for none
}

// Choose chooses for one more call.
func (p *Pool) Choose(all []Carrier, now time.Duration) Choice {
	c := Choice{Best: -1, Drop: -1}
	if len(all) == 0 {
		c.Dial = true
		return c
	}
	total := 1
	p.turn++
	for i := range all {
		at := (p.turn + i) % len(all)
		total += all[at].Streams
		if c.Best < 0 || all[at].Streams < all[c.Best].Streams {
			c.Best = at
		}
	}
	all[c.Best].Calls++
	p.peak = max(p.peak, total)
	if c.Dial = all[c.Best].Streams >= Busy && len(all) < Few; c.Dial {
		return c
	}
	if old := Old(all, now); old >= 0 {
		if most := max(p.peak, p.before); len(all) > 1 && (len(all)-1)*Busy >= most {
			c.Drop = old
			p.peak, p.before = total, p.peak
		} else {
			c.Dial = true // and the old one ends when the new one is there
		}
	}
	return c
}

// Replaced tells that a connection that was too old has been replaced.
func (p *Pool) Replaced() { p.peak, p.before = 0, p.peak }

// Old is the connection that is too old for the longest time, -1 for none.
func Old(all []Carrier, now time.Duration) int {
	old, least := -1, now
	for i := range all {
		if due := all[i].due(); due <= least {
			old, least = i, due
		}
	}
	return old
}
