package report

import (
	"strconv"
	"strings"
)

// path writes a drawing: every move relative to the one before, which is shorter, and flat or straight stretches as
// one.
type path struct {
	text         strings.Builder
	x, y         int
	last         byte // command
	begun        bool
	dx, dy       int // the pending stretch
	pendingMoves bool
}

// move lifts the pen and puts it down elsewhere.
func (p *path) move(x, y int) {
	p.finish()
	if !p.begun {
		p.text.WriteString("M")
		p.pair(x, y)
	} else {
		p.text.WriteString("m")
		p.pair(x-p.x, y-p.y)
	}
	p.x, p.y, p.begun, p.last = x, y, true, 'm'
}

// line draws to a point. A stretch that goes on exactly like the one before is joined to it.
func (p *path) line(x, y int) {
	dx, dy := x-p.x-p.dx, y-p.y-p.dy
	if p.pendingMoves && p.dx*dy == p.dy*dx && dx*p.dx >= 0 && dy*p.dy >= 0 {
		p.dx, p.dy = p.dx+dx, p.dy+dy
		return
	}
	if p.pendingMoves {
		p.flush()
	}
	p.dx, p.dy, p.pendingMoves = x-p.x, y-p.y, true
}

// flush writes the pending stretch.
func (p *path) flush() {
	if !p.pendingMoves {
		return
	}
	switch {
	case p.dy == 0:
		p.command('h')
		p.text.WriteString(strconv.Itoa(p.dx))
	case p.dx == 0:
		p.command('v')
		p.text.WriteString(strconv.Itoa(p.dy))
	default:
		if !p.command('l') && p.dx >= 0 {
			p.text.WriteByte(' ')
		}
		p.pair(p.dx, p.dy)
	}
	p.x, p.y = p.x+p.dx, p.y+p.dy
	p.dx, p.dy, p.pendingMoves = 0, 0, false
}

// command writes the letter of a command unless it is the one before, which needs none; but lines of one direction,
// which are joined anyhow, always get theirs. It reports whether it did.
func (p *path) command(letter byte) bool {
	if p.last == letter && letter == 'l' {
		return false
	}
	p.text.WriteByte(letter)
	p.last = letter
	return true
}

// close draws straight down to the foot y, back to x, and closes the shape.
func (p *path) close(x, foot int) {
	p.flush()
	p.text.WriteString("V" + strconv.Itoa(foot) + "H" + strconv.Itoa(x) + "z")
	p.begun = false
}

func (p *path) pair(x, y int) {
	p.text.WriteString(strconv.Itoa(x))
	if y >= 0 {
		p.text.WriteByte(' ')
	}
	p.text.WriteString(strconv.Itoa(y))
}

// finish ends a piece. A piece of one point becomes a line of no length, which a round pen shows as a dot.
func (p *path) finish() {
	p.flush()
	if p.begun && p.last == 'm' {
		p.text.WriteString("h0")
		p.last = 'h'
	}
}

// String returns the value of a d attribute.
func (p *path) String() string {
	p.finish()
	return p.text.String()
}
