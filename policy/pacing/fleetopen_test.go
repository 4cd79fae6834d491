package pacing_test

import (
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

// grow takes a place of the pool, and a connection for it.
func (in *instance) grow(q *query, until time.Duration) {
	o := &opening{in: in, by: q, since: in.now, until: until}
	if in.pgx {
		o.until = 1 << 62
	}
	in.out++
	if q != nil {
		q.held = o
	}
	if in.pace == nil {
		o.dial()
		return
	}
	o.wait()
	if !in.pgx && in.conns > 0 && in.pace.State(in.now).AtOnce > 0 {
		in.in(handOver, o.step)
		return
	}
	o.step()
}

func (o *opening) wait() { o.in.line = append(o.in.line, o) }

// drop gives the place of an opening back.
func (o *opening) drop() {
	if !o.gone {
		o.gone = true
		o.in.out--
	}
}

// fail ends an opening that comes to nothing, and its query.
func (o *opening) fail() {
	if o.gone {
		return
	}
	q := o.by
	if q == nil && !o.in.pgx { // database/sql tells whoever waits
		q = o.in.next()
	}
	if q != nil {
		q.end(false)
	}
	o.drop()
	o.in.fill()
}

// step asks the circuit and the pace whether an opening may begin.
func (o *opening) step() {
	in := o.in
	if o.gone || o.dialled != 0 {
		return
	}
	patience := min(maxWait, o.until-o.since)
	left := o.since + patience - in.now
	again := func(d time.Duration) {
		if left <= 0 {
			o.fail()
			return
		}
		in.in(min(d, left)+1, o.step)
	}
	o.probe = false
	if in.shut {
		if in.probing || in.now < in.until {
			if !in.pace.Hopeful(o.since, patience) {
				o.fail()
				return
			}
			again(max(in.until-in.now, 0) + time.Millisecond + time.Duration(in.random.Int64N(int64(handOver))))
			return
		}
		o.probe = true
	}
	if d := in.pace.Enter(in.now, o.since, in.random.Uint64(), o.probe); d > 0 {
		again(d)
		return
	}
	in.probing = in.probing || o.probe
	o.dial()
}

// dial opens a connection, or finds out that there is none.
func (o *opening) dial() {
	in := o.in
	f := in.fleet
	if f.now >= away {
		f.slots[f.now/slot]++
	}
	o.dialled = max(f.now, 1)
	life := f.life
	f.opening++
	took := time.Duration(float64(f.handshake()) * max(1, float64(f.opening)/float64(f.cores)))
	r := pacing.Opened
	switch {
	case life == 1:
		r, took = pacing.Failed, time.Millisecond
	case f.used >= f.places:
		r = pacing.Refused
	default:
		f.used++
	}
	f.in(took, func() {
		f.opening--
		if r == pacing.Opened && life != f.life {
			r = pacing.Failed
		}
		o.end(r)
	})
}

func (o *opening) end(r pacing.Result) {
	in, began := o.in, o.dialled
	if in.pace != nil {
		in.pace.Leave(in.now, began, r)
		in.judge(r, o.probe)
	}
	switch {
	case r == pacing.Opened:
		in.conns++
		o.gone = true
		if q := o.by; q != nil && !q.over {
			q.start()
		} else {
			in.free()
		}
		return
	case r == pacing.Refused:
		in.refused++
	}
	o.tries++
	switch {
	case in.pace == nil || o.by == nil && !in.pgx, o.tries > 2:
		if in.pace != nil && r == pacing.Refused && in.conns > 0 && !in.pgx && o.by != nil { // waits for another's
			o.dialled = 0
			o.wait()
			return
		}
		o.fail()
	default:
		o.dialled = 0
		o.wait()
		in.in(time.Duration(in.random.Float64()*float64(slot<<o.tries)/2), o.step)
	}
}

// judge is what the circuit makes of an attempt.
func (in *instance) judge(r pacing.Result, probe bool) {
	if probe {
		in.probing = false
	}
	if r == pacing.Opened {
		in.failures, in.opens, in.shut = 0, 0, false
		return
	}
	if in.failures++; in.failures >= 3 && !in.shut || probe {
		most := float64(time.Second) / 1.5
		base := min(float64(slot)*float64(int(1)<<min(in.opens, 10)), most)
		in.until = in.now + time.Duration(base*(1+0.5*in.random.Float64()))
		in.shut = true
		in.opens++
	}
}
