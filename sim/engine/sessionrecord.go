package engine

// SessionRecord is what a fleet saw besides whose users hold sessions: its requests are openings. Slices have one
// member per bin.
type SessionRecord struct {
	Users []uint32 // that there are, who all want one
	Held  []uint32 // sessions, at the end of the bin
	Cut   []uint32 // sessions that a replica, or the program that held them, took with it

	held int32
}

// Sessions returns what the fleet saw as one whose users hold sessions; nil for others.
func (f *FleetRecord) Sessions() *SessionRecord { return f.sessions }

func newSessionRecord(users, bins int) *SessionRecord {
	s := series{bins, make([]uint32, 3*bins)}
	r := &SessionRecord{Users: s.next(), Held: s.next(), Cut: s.next()}
	for b := range r.Users {
		r.Users[b] = uint32(users)
	}
	return r
}

// cut takes the bin away that is outside of the run.
func (r *SessionRecord) cut() {
	for _, s := range []*[]uint32{&r.Users, &r.Held, &r.Cut} {
		*s = (*s)[:len(*s)-1]
	}
}

// with is two records as one; nil if either is: what is asked of all fleets is about sessions only if all hold some.
func (r *SessionRecord) with(o *SessionRecord) *SessionRecord {
	if r == nil || o == nil {
		return nil
	}
	sum := newSessionRecord(0, len(r.Held))
	for b := range sum.Held {
		sum.Users[b] = r.Users[b] + o.Users[b]
		sum.Held[b] = r.Held[b] + o.Held[b]
		sum.Cut[b] = r.Cut[b] + o.Cut[b]
	}
	return sum
}

// Course returns, by bin, what a fleet wanted and what of it came: of requests those that were offered, and those that
// were answered in time, ever; of users who hold sessions all of them, and those that held one.
func (f *FleetRecord) Course() (wanted, came []uint32) {
	if f.sessions != nil {
		return f.sessions.Users, f.sessions.Held
	}
	return f.Offered, f.Good
}
