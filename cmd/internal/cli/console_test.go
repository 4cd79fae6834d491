package cli_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/cli"
)

func TestProgressOffATerminalIsALineASecond(t *testing.T) {
	var out, errs bytes.Buffer
	c := cli.NewConsole("abate drill", true, &out, &errs)
	c.Show("one")
	c.Show("two")
	c.End("\n")
	c.End("\n")
	if want := "one\ntwo\n\n"; errs.String() != want || out.Len() > 0 {
		t.Errorf("progress:\n%swant:\n%s", errs.String(), want)
	}
}

func TestProgressOnATerminalStaysOnOneLine(t *testing.T) {
	var out bytes.Buffer
	c := cli.NewConsole("abate drill", false, &out, nil)
	c.Terminal = true
	c.Show("one")
	c.Show("two")
	c.End("\n")
	if strings.Contains(out.String(), "\n") || strings.Count(out.String(), "\r") != 3 {
		t.Errorf("progress: %q", out.String())
	}
	// A line that is longer than the terminal is cut, and nothing else is.
	if want := "\x1b[?7lone\x1b[K\x1b[?7h"; !strings.Contains(out.String(), want) {
		t.Errorf("progress: %q, want %q in it", out.String(), want)
	}
}

// ended is a result of nothing.
type ended struct{ Interrupted, Passed bool }

func (e *ended) Report(w io.Writer)  { _, _ = io.WriteString(w, "it is over") }
func (e *ended) Ended() (bool, bool) { return e.Interrupted, e.Passed }

func TestEveryEndHasAnExitCode(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result ended
		err    error
		json   bool
		want   int
		stdout string
	}{
		{"passed", ended{Passed: true}, nil, false, 0, "it is over"},
		{"passed, for machines", ended{Passed: true}, nil, true, 0, `"Passed": true`},
		{"not passed", ended{}, nil, false, 1, "it is over"},
		{"interrupted", ended{Interrupted: true, Passed: true}, nil, true, 130, `"Interrupted": true`},
		{"not run", ended{Passed: true}, errors.New("no port"), false, 1, ""},
	} {
		var stdout, stderr bytes.Buffer
		code := cli.NewConsole("abate drill", tt.json, &stdout, &stderr).Finish(&tt.result, tt.err)
		if code != tt.want || !strings.Contains(stdout.String(), tt.stdout) || tt.stdout == "" && stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, want %d; %q", tt.name, code, tt.want, stdout.String())
		}
		if want := map[bool]string{true: "abate drill: no port\n"}[tt.err != nil]; stderr.String() != want {
			t.Errorf("%s: stderr %q, want %q", tt.name, stderr.String(), want)
		}
	}
	if code := cli.NewConsole("abate drill", false, broken{}, io.Discard).Finish(&ended{Passed: true}, nil); code != 1 {
		t.Errorf("exit code %d for a result that nobody could read, want 1", code)
	}
}

// broken cannot be written to.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
