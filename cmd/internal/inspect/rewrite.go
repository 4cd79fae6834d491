package inspect

import (
	"errors"
	"fmt"
	"slices"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/importer"
)

// rewrite writes the files that the changes touch, and returns their names.
func rewrite(r *audit.Result, files []importer.File) (names []string, err error) {
	changed, left := audit.Apply(files, r.Changes)
	var errs []error
	for i := range files {
		if slices.Equal(files[i].Data, changed[i].Data) {
			continue
		}
		if files[i].Name == audit.StdinName {
			errs = append(errs, errors.New("standard input cannot be changed"))
			continue
		}
		if err := cli.ReplaceFile(files[i].Name, changed[i].Data); err != nil {
			errs = append(errs, err)
			continue
		}
		names = append(names, files[i].Name)
	}
	for _, e := range left {
		errs = append(errs, fmt.Errorf("%s: %s is no longer there", e.At, e.Old))
	}
	return names, errors.Join(errs...)
}
