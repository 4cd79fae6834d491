package abatekafka

import (
	"errors"
	"fmt"
	"time"
)

// findings are what a preflight has found, for people.
type findings struct {
	brokers  string // for the commands that fix it
	group    string
	notes    []string // what people should know, but can live with
	problems []error
}

func (f *findings) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf(format, args...))
}

func (f *findings) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

func (f *findings) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	return fmt.Errorf("abatekafka: the topics of group %s do not fit:\n%w", f.group, errors.Join(f.problems...))
}

// command is what somebody may copy into a shell.
func (f *findings) command(tool, format string, args ...any) string {
	return fmt.Sprintf("%s --bootstrap-server %s ", tool, f.brokers) + fmt.Sprintf(format, args...)
}

// millis writes a duration as topics' settings have it.
func millis(d time.Duration) int64 { return d.Milliseconds() }
