// Package needs finds the programs that some tests drive. It is the one place where a test may be skipped: for a user
// without the program, saying what to install; where CI is "true" a missing program is a failure, so that nobody believes
// in tests that did not run.
package needs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Program returns the path of the first of the named programs that is installed. The first name is also that of the
// package to install. Without any of them it ends the test: skipped, or failed when the environment says CI=true.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	message := "this test needs " + strings.Join(names, " or ") + ": install the package " + names[0] + " (as root, .ci/needs does)"
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
	return ""
}
