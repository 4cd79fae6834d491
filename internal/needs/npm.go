package needs

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"testing"
	"time"
)

// npmLimit is how long npm may take: it downloads a few MB the first time.
const npmLimit = 5 * time.Minute

// Node installs what a project of Node with a lock file depends on, once for this user, and returns the program and the
// project's folder, which holds the project and its node_modules. See Cached: it is made anew when a file changes.
// Without Node, npm or npm's registry the test ends as with Program.
func Node(t testing.TB, name string, project fs.FS) (node, folder string) {
	t.Helper()
	node = Program(t, "node")
	npm := Program(t, "npm")
	return node, Cached(t, name, contents(t, project, nil), func(folder string) {
		t.Helper()
		if err := os.CopyFS(folder, project); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), npmLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			end(t, fmt.Sprintf("this test needs npm to install what %s depends on, from its registry the first time: %v\n%s",
				name, err, bytes.TrimSpace(out)))
		}
	})
}
