package rehearse

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"unicode"

	"github.com/abate-go/abate/cmd/internal/cli"
)

// isTerminal reports whether something that is drawn over and over has a place to be drawn on.
func isTerminal(f *os.File) bool {
	return cli.NewLive(f).Terminal && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

// terminal is a screen and a keyboard. The program stty sets them up, so that no system call of any system is needed
// here; without it a key counts when Enter follows, and the screen has 80 by 24 characters.
type terminal struct {
	out    *os.File
	before string // the keyboard's settings, for stty
	keys   chan string
}

// openTerminal takes the whole screen, and hands every key over as it is pressed.
func openTerminal(out *os.File) *terminal {
	t := &terminal{out: out, keys: make(chan string)}
	if before, err := stty("-g"); err == nil {
		t.before = strings.TrimSpace(before)
		_, _ = stty("-icanon", "-echo", "min", "1", "time", "0")
	}
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l")
	go t.read()
	return t
}

// close gives the screen back as it was. The goroutine that reads keys ends with the program: a read of a terminal
// cannot be called off.
func (t *terminal) close() {
	fmt.Fprint(t.out, "\x1b[?25h\x1b[?1049l")
	if t.before != "" {
		_, _ = stty(t.before)
	}
}

func stty(args ...string) (string, error) {
	c := exec.Command("stty", args...)
	c.Stdin = os.Stdin
	out, err := c.Output()
	return string(out), err
}

// size is asked for each time: people make windows larger.
func (t *terminal) size() (width, height int) {
	text, err := stty("size")
	if n, _ := fmt.Sscan(text, &height, &width); err != nil || n != 2 || width < 20 || height < 4 {
		return 80, 24
	}
	return width, height
}

// read hands keys over, those of several bytes in one piece.
func (t *terminal) read() {
	defer close(t.keys)
	in := bufio.NewReader(os.Stdin)
	for {
		r, _, err := in.ReadRune()
		if err != nil {
			return
		}
		key := string(r)
		if r == '\x1b' {
			for in.Buffered() > 0 && len(key) < 8 {
				r, _, _ := in.ReadRune() // it is there already
				if key += string(r); unicode.IsLetter(r) && r != 'O' {
					break
				}
			}
		}
		t.keys <- key
	}
}

// show draws the screen anew, without the flicker of an empty one.
func (t *terminal) show(lines []string) {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	fmt.Fprint(t.out, b.String())
}

// textWidth is how many columns a text takes: marks that sit on another character none, East Asian ones and pictures
// two.
func textWidth(text string) (n int) {
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// cutWidth shortens a text to n columns.
func cutWidth(text string, n int) string {
	if textWidth(text) <= n {
		return text
	}
	used := 0
	for i, r := range text {
		if used += runeWidth(r); used > max(n-1, 0) {
			return text[:i] + strings.Repeat("…", min(max(n, 0), 1))
		}
	}
	return text
}

// fit makes a text n columns wide.
func fit(text string, n int, left bool) string {
	text = cutWidth(text, n)
	pad := strings.Repeat(" ", max(n-textWidth(text), 0))
	if left {
		return text + pad
	}
	return pad + text
}
