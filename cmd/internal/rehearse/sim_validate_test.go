package rehearse

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/validation"
)

func TestValidateTellsWhetherAllNumbersFit(t *testing.T) {
	good := validation.Row{ID: "a/b", Source: "arithmetic", What: "sum", Published: 2, Measured: 2, Low: 2, High: 2,
		Runs: 1, Compared: validation.Exact, Pass: true}
	bad := good
	bad.ID, bad.Published, bad.Pass = "a/c", 3, false
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		name         string
		ctx          context.Context
		rows         []validation.Row
		err          error
		code         int
		out, problem string
	}{
		{"all fit", t.Context(), []validation.Row{good}, nil, 0, "\n1 of 1 published numbers fit.\n", ""},
		{"one does not", t.Context(), []validation.Row{good, bad}, nil, 1, "\n1 of 2 published numbers fit.\n", ""},
		{"a broken suite", t.Context(), nil, errors.New("a/b: no scenario"), 1, "", "abate sim: a/b: no scenario\n"},
		{"interrupted", stopped, nil, context.Canceled, 130, "", "abate sim: stopped; no number was compared\n"},
	} {
		var out, errs bytes.Buffer
		code := validate(c.ctx, func(_ context.Context, progress func(done, of int)) ([]validation.Row, error) {
			progress(1, 2)
			return c.rows, c.err
		}, false, &out, &errs)
		if code != c.code || !strings.HasSuffix(out.String(), c.out) || errs.String() != c.problem {
			t.Errorf("%s: exit code %d, want %d; %q, %q", c.name, code, c.code, out.String(), errs.String())
		}
	}
	var last bytes.Buffer
	one := func(context.Context, func(int, int)) ([]validation.Row, error) { return []validation.Row{good}, nil }
	if code := validate(t.Context(), one, true, &last, &last); code != 0 ||
		last.String() != "1 of 1 published numbers fit.\n" {
		t.Errorf("quiet: exit code %d, %q", code, last.String())
	}
	var errs bytes.Buffer
	if code := validate(t.Context(), one, true, brokenPipe{}, &errs); code != exitOutput ||
		!strings.Contains(errs.String(), "broken") {
		t.Errorf("a table that cannot be written: exit code %d, %q", code, errs.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestValidateStandsAlone(t *testing.T) {
	for _, args := range []string{
		"--validate a.yaml", "--validate --seeds 3", "--json x --validate", "--validate --schema",
	} {
		var r recorder
		scenarios(t, "a.yaml")
		code, stdout, stderr := r.sim(t, args)
		if code != exitUsage || stdout != "" || strings.Count(stderr, "--validate stands alone, or with --quiet") != 1 {
			t.Errorf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
