package h2

// inflow is the window of received content, of a connection or of one stream. Content that has come and has not been
// read is size - left - owed bytes. The mutex of the connection guards it.
type inflow struct {
	left int // how much the peer may still send
	owed int // how much has been read, and is given back with the next update
	size int // the whole window
}

// take counts content that has come, and reports whether the window allowed it.
func (f *inflow) take(n int) bool {
	f.left -= n
	return f.left >= 0
}

// skip counts padding, which nobody reads, and which is given back with what is read next.
func (f *inflow) skip(n int) { f.owed += n }

// giveBack counts content that has been read. It returns how much the peer is to be given back now: nothing, until half
// of the window has come together, or as much as the peer has left, while content that nobody reads holds the rest.
func (f *inflow) giveBack(n int) (more int) {
	if f.owed += n; f.owed < min(f.size/2, f.left) {
		return 0
	}
	more = f.owed
	f.left += more
	f.owed = 0
	return more
}

// grow doubles the window, up to a limit, and returns by how much it grew.
func (f *inflow) grow(limit int) (more int) {
	more = min(2*f.size, limit) - f.size
	f.size += more
	f.left += more
	return more
}
