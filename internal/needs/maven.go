package needs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// mavenLimit is how long Maven may take: it downloads some 100 MB the first time.
const mavenLimit = 10 * time.Minute

// Maven builds a Maven project once for this user and returns its folder, which holds the project and what the goals
// made of it. See Cached: it is made anew when a file or a goal changes. Without a JDK, Maven or Maven Central the test
// ends as with Program.
func Maven(t testing.TB, name string, project fs.FS, goals ...string) string {
	t.Helper()
	mvn := Program(t, "mvn")
	Program(t, "javac")
	return Cached(t, name, contents(t, project, goals), func(folder string) {
		t.Helper()
		if err := os.CopyFS(folder, project); err != nil {
			t.Fatal(err)
		}
		unlock, err := lock(filepath.Join(filepath.Dir(folder), "maven.lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer unlock() // one at a time: Maven's own cache is not made for two that fill it
		ctx, cancel := context.WithTimeout(context.Background(), mavenLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, mvn, slices.Concat([]string{"-q", "-B", "-ntp"}, goals)...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			end(t, fmt.Sprintf("this test needs Maven to build %s, which reads Maven Central the first time: %v\n%s", name,
				err, bytes.TrimSpace(out)))
		}
	})
}

// contents tells one state of a project and its goals from another.
func contents(t testing.TB, project fs.FS, goals []string) []byte {
	t.Helper()
	all := fmt.Appendf(nil, "%q\n", goals)
	err := fs.WalkDir(project, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(project, path)
		all = fmt.Appendf(all, "%q %q\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
