package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// Live is where progress is shown: on a terminal in one line that is written over and over, else in a line each time.
type Live struct {
	Out      io.Writer
	Terminal bool // Out is read as it is written
	shown    bool
}

// NewLive returns one that shows nothing yet.
func NewLive(out io.Writer) Live {
	l := Live{Out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		l.Terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return l
}

// Show shows a line.
func (l *Live) Show(line string) {
	l.shown = true
	if l.Terminal { // which cuts a line that is too long: its rest on a line of its own would stay there
		line = "\r\x1b[?7l" + line + "\x1b[K\x1b[?7h"
	} else {
		line += "\n"
	}
	_, _ = io.WriteString(l.Out, line) // what cannot be shown is not missed
}

// End takes the line away on a terminal; elsewhere after stands behind what was shown.
func (l *Live) End(after string) {
	switch {
	case !l.shown:
		return
	case l.Terminal:
		after = "\r\x1b[K"
	}
	l.shown = false
	_, _ = io.WriteString(l.Out, after)
}

// Outcome is what came of a drill. Its JSON form is for machines.
type Outcome interface {
	// Report writes it for people.
	Report(w io.Writer)
	// Ended reports whether somebody stopped the drill, and whether all was as expected.
	Ended() (interrupted, passed bool)
}

// Console is where a command shows a drill, and what came of it.
type Console struct {
	Live // the introduction goes there, too

	name           string
	json           bool
	stdout, stderr io.Writer
}

// NewConsole returns the console of a command, whose errors begin with its name. With asJSON the outcome is one JSON
// document, and all else goes to stderr.
func NewConsole(name string, asJSON bool, stdout, stderr io.Writer) *Console {
	out := stdout
	if asJSON {
		out = stderr
	}
	return &Console{Live: NewLive(out), name: name, json: asJSON, stdout: stdout, stderr: stderr}
}

// Finish prints the outcome, if err is nil, and returns the exit code of the command.
func (c *Console) Finish(r Outcome, err error) int {
	c.End("\n")
	if err == nil {
		err = c.print(r)
	}
	if err != nil {
		fmt.Fprintf(c.stderr, "%s: %v\n", c.name, err)
		return 1
	}
	switch interrupted, passed := r.Ended(); {
	case interrupted:
		return 130
	case !passed:
		return 1
	}
	return 0
}

func (c *Console) print(r Outcome) error {
	if c.json {
		encoder := json.NewEncoder(c.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	var text strings.Builder
	r.Report(&text)
	_, err := io.WriteString(c.stdout, text.String())
	return err
}
