package rehearse

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/report"
	"github.com/abate-go/abate/sim/summary"
)

// reportName is the name of a scenario's report in a folder.
func reportName(scenario string) string {
	base := filepath.Base(scenario)
	return strings.TrimSuffix(base, filepath.Ext(base)) + ".html"
}

// checkOutputs finds, before anything is run, files that could not be written afterwards because their folder is
// missing or because they are folders.
func (o *simOptions) checkOutputs() error {
	var errs []error
	for _, out := range o.outputs() {
		name, file := out[0], out[1]
		if file == "" || file == toStdout {
			continue
		}
		folder := name == "html" && o.several
		info, err := os.Stat(file)
		switch {
		case err == nil && info.IsDir() != folder:
			word := map[bool]string{
				true: "a folder is needed, for a report per scenario", false: "this is a folder; name a file in it",
			}[folder]
			errs = append(errs, fmt.Errorf("--%s %s: %s", name, file, word))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
		if parent, err := os.Stat(filepath.Dir(file)); err != nil || !parent.IsDir() {
			errs = append(errs, fmt.Errorf("--%s %s: there is no folder %s; make it first", name, file, filepath.Dir(file)))
		}
	}
	return errors.Join(errs...)
}

// files writes all that was asked for, and goes on after one that fails.
func (o *simOptions) files(stdout io.Writer, results []*sim.Result) error {
	if len(results) == 0 {
		return nil
	}
	list := func(form func(io.Writer, []*sim.Result) error) func(io.Writer) error {
		return func(w io.Writer) error { return form(w, results) }
	}
	json := list(summary.JSONList)
	if !o.several {
		json = func(w io.Writer) error { return summary.JSON(w, results[0]) }
	}
	return errors.Join(
		o.reports(results),
		cli.Output(stdout, "json", o.json, json),
		cli.Output(stdout, "junit", o.junit, list(summary.JUnit)),
		cli.Output(stdout, "markdown", o.markdown, list(summary.Markdown)),
	)
}

// reports writes the pages for a browser.
func (o *simOptions) reports(results []*sim.Result) error {
	if o.html == "" {
		return nil
	}
	if o.several {
		if err := os.Mkdir(o.html, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("--html: %w", err)
		}
	}
	var errs []error
	for _, r := range results {
		file := o.html
		if o.several {
			file = filepath.Join(file, reportName(r.File))
		}
		errs = append(errs, cli.Output(nil, "html", file, func(w io.Writer) error { return report.Write(w, r) }))
	}
	return errors.Join(errs...)
}
