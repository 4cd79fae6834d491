package audit_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate/importer"
)

// Trees that were drawn at random and whose fixes break a promise without what was done about it: one would bring an
// error that a limit hid, and others would leave tries for a second fix, because limits that are lowered make another
// path the worst. They are files, so that nobody changes them who changes how trees are drawn.
func TestFixesThatOnceBrokeAPromiseKeepIt(t *testing.T) {
	const folder = "testdata/fixes"
	trees, err := os.ReadDir(folder)
	if err != nil || len(trees) == 0 {
		t.Fatal(trees, err)
	}
	for _, tree := range trees {
		t.Run(tree.Name(), func(t *testing.T) {
			kept(t, tree.Name(), filesOf(t, filepath.Join(folder, tree.Name())))
		})
	}
}

// filesOf reads the files below a folder.
func filesOf(t *testing.T, root string) (files []importer.File) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		name, _ := filepath.Rel(root, p)
		files = append(files, importer.File{Name: filepath.ToSlash(name), Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
