package tracedraw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/tracedraw"
)

// The file is what the proxy wrote of a real call: see docs/telemetry.md.
const file = "../../../docs/trace.jsonl"

func run(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = tracedraw.Command(t.Context(), args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func put(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestThePageShowsTheDrawingOfTheRealFile(t *testing.T) {
	page, err := os.ReadFile("../../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	code, out, said := run(t, file)
	shown := ""
	for l := range strings.Lines(out) {
		shown += strings.TrimRight(l, " \n") + "\n"
	}
	if code != 0 || !strings.Contains(string(page), "```\n"+shown+"```\n") {
		t.Errorf("%d %s\ndocs/telemetry.md has to show:\n%s", code, said, shown)
	}
}

func TestThePictureIsThatOfTheRealFile(t *testing.T) {
	to := filepath.Join(t.TempDir(), "trace.svg")
	if code, _, said := run(t, "-o", to, file); code != 0 {
		t.Fatal(said)
	}
	made, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile("../../../docs/trace.svg")
	if err != nil || !bytes.Equal(made, shown) {
		t.Errorf("docs/trace.svg is not what is drawn: go run ./cmd/abate trace -o docs/trace.svg docs/trace.jsonl (%v)", err)
	}
	if n := strings.Count(string(made), "<rect class=\"bad\""); n != 3 {
		t.Errorf("%d attempts that failed, want 3", n)
	}
	for x := xml.NewDecoder(bytes.NewReader(made)); ; {
		if _, err := x.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

const two = `{"resourceSpans":[{"scopeSpans":[{"spans":[` +
	`{"traceId":"aa11","spanId":"01","name":"GET /<a>","kind":2,"startTimeUnixNano":"1000000",` +
	`"endTimeUnixNano":"3000000"},` +
	`{"traceId":"aa11","spanId":"02","parentSpanId":"01","name":"GET","kind":3,"startTimeUnixNano":1000000,` +
	`"endTimeUnixNano":2000000,"attributes":[{"key":"abate.attempt","value":{"intValue":"2"}},` +
	`{"key":"abate.hedge","value":{"stringValue":"true"}},{"key":"error.type","value":{"stringValue":"timeout"}}]},` +
	`{"traceId":"bb22","spanId":"01","name":"POST","kind":2,"startTimeUnixNano":"7","endTimeUnixNano":"7"}` +
	`]}]}]}` + "\n\n"

func TestATraceIsChosenByItsIDOrIsTheLargest(t *testing.T) {
	path := put(t, two)
	for id, want := range map[string]string{"": "trace aa11, 2ms\n", "b": "trace bb22, 0s\n", "aa": "trace aa11, "} {
		code, out, said := run(t, "--id", id, path)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%q: %d %s%s", id, code, out, said)
		}
	}
	if _, out, _ := run(t, path); !strings.Contains(out, "\n  hedge 2 ") || !strings.Contains(out, "1ms, timeout\n") {
		t.Error(out)
	}
}

func TestNothingOfAFileGetsIntoThePictureAsMarkup(t *testing.T) {
	to := filepath.Join(t.TempDir(), "x.svg")
	if code, _, said := run(t, "-o", to, put(t, two)); code != 0 {
		t.Fatal(said)
	}
	if made, err := os.ReadFile(to); err != nil || strings.Contains(string(made), "<a>") {
		t.Errorf("%v\n%s", err, made)
	}
}

func TestAFileThatCannotBeDrawnSaysWhereAndWhy(t *testing.T) {
	nothing, timeless := put(t, "\n"), put(t, strings.Replace(two, `"1000000"`, `"x"`, 1))
	for want, args := range map[string][]string{
		"spans.jsonl: line 3 is no OTLP in JSON: ":                                   {put(t, "\n{}\nwhat\n")},
		"spans.jsonl: it has no spans; the proxy writes some every 5 seconds":        {nothing},
		`spans.jsonl: no trace has an id that begins with "f"; the first is aa11`:    {"--id", "f", put(t, two)},
		`spans.jsonl: line 1: the span "GET /<a>" has no id or no times`:             {timeless},
		"no such file or directory":                                                  {"/none/spans.jsonl"},
		"it draws one file, and 0 are named":                                         {},
		"it draws one file, and 2 are named; flags go before it":                     {nothing, "--id"},
		"flag provided but not defined: -x\n\"abate trace -h\" explains the flags\n": {"-x", nothing},
	} {
		code, _, said := run(t, args...)
		if code == 0 || !strings.HasPrefix(said, "abate trace: ") || !strings.Contains(said, want) {
			t.Errorf("%q: %d %s", args, code, said)
		}
	}
	if code, out, _ := run(t, "-h"); code != 0 || !strings.HasPrefix(out, "Usage: abate trace ") {
		t.Errorf("%d %s", code, out)
	}
}

func FuzzAFileIsDrawnOrRefused(f *testing.F) {
	f.Add(two)
	f.Add(strings.ReplaceAll(two, `"02","parentSpanId":"01"`, `"01","parentSpanId":"01"`))
	f.Add(strings.ReplaceAll(two, `"01","name"`, `"01","parentSpanId":"02","name"`)) // each other's parents
	f.Fuzz(func(t *testing.T, text string) {
		path := put(t, text)
		code, out, said := run(t, path)
		if code == 0 == (out == "") || code == 0 != (said == "") {
			t.Errorf("%d %q %q", code, out, said)
		}
		if again, _, _ := run(t, "-o", path+".svg", path); again != code {
			t.Errorf("as text it ends with %d, as a picture with %d", code, again)
		}
	})
}
