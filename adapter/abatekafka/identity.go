package abatekafka

import "strconv"

// repeated tells whether a record of a retry topic is the second copy of a forward. Records without an identity, as others write them, never are.
func (p *partition) repeated(m *Message) bool {
	id := m.forwardID()
	if id == "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recent.note(id, m.Record.Offset)
}

// forwardID is the identity of the forward that brought a message, which is that of one record only: see written. Empty if it has none.
func (m *Message) forwardID() string {
	at := m.written()
	if m.Letter.ID == "" || at.IsZero() {
		return m.Letter.ID
	}
	return m.Letter.ID + " of " + strconv.FormatInt(at.UnixMilli(), 10)
}

// foreign warns once that a retry topic holds what another group failed at: it is that group's to deliver.
func (r *running) foreign(p *partition, m *Message) {
	r.foreigners.Do(func() {
		p.log.Warn("retry topic is shared with another group, whose messages are passed over; set kafka.groupInNames so that each group has retry topics of its own",
			"other_group", m.Letter.Group, "offset", m.Record.Offset)
	})
}
