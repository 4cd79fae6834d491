// Package needs finds the programs that some tests drive, and keeps for them what takes long to make. It is the one
// place where a test may be skipped: for a user without the program, saying what to install; where CI is "true" a
// missing program is a failure, so that nobody believes in tests that did not run; under -short, see Whole; and until
// the machine is free, see Alone.
package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packages are the Debian packages of programs that have another name.
var packages = map[string]string{"promtool": "prometheus", "nginx": "nginx-light", "node": "nodejs",
	"java":  "default-jdk-headless",
	"javac": "default-jdk-headless", "mvn": "maven", "redis-cli": "redis-tools", "grpc": "python3-grpcio",
	"initdb": "postgresql", "postgres": "postgresql"}

// elsewhere is where programs stand that are in nobody's path: Debian's PostgreSQL keeps one folder for each version.
const elsewhere = "/usr/lib/postgresql/*/bin"

// Program returns the path of the first of the named programs that is installed. The message names the package of the
// first. Without any of them it ends the test: skipped, or failed when the environment says CI=true. Under -short it
// always ends the test, see Whole.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	Whole(t)
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if paths, _ := filepath.Glob(filepath.Join(elsewhere, name)); len(paths) > 0 { // the pattern is well-formed
			return paths[len(paths)-1]
		}
	}
	pkg := packages[names[0]]
	if pkg == "" {
		pkg = names[0]
	}
	missing(t, strings.Join(names, " or "), pkg)
	return ""
}

// Python returns the path of a Python 3 that has a module: the distribution's, or whichever comes first. The module's
// package is python3-MODULE, unless it is called otherwise. It ends the test as Program does.
func Python(t testing.TB, module string) string {
	t.Helper()
	Whole(t)
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	pkg := packages[module]
	if pkg == "" {
		pkg = "python3-" + module
	}
	missing(t, "Python 3 with "+module, pkg)
	return ""
}

// jars is where Debian keeps libraries of Java.
const jars = "/usr/share/java/"

// Jars returns a class path of libraries of Java, named by patterns such as "netty-*.jar". pkg is the package of the
// first. It ends the test as Program does.
func Jars(t testing.TB, pkg string, patterns ...string) string {
	t.Helper()
	Whole(t)
	var all []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(jars + pattern) // the pattern is well-formed
		if len(found) == 0 {
			missing(t, "the Java libraries "+pattern, pkg)
		}
		all = append(all, found...)
	}
	return strings.Join(all, string(filepath.ListSeparator))
}

// Whole is for tests that start other programs, build them, or wait for real time to pass. It ends the test, skipped,
// under -short: make check runs in memory only, make test runs everything.
func Whole(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to make test: -short starts no other programs")
	}
}

// Alone is for tests that play against real time what fills the whole machine: the tests that run beside them would
// fail, and so would they. It ends the test, skipped, unless the environment says ABATE_ALONE=1, as make storms does,
// which runs such tests one after the other with nothing beside them.
func Alone(t testing.TB) {
	t.Helper()
	if os.Getenv("ABATE_ALONE") != "1" {
		t.Skip("this test wants the machine for itself: make storms runs it")
	}
}

func missing(t testing.TB, what, pkg string) {
	t.Helper()
	end(t, "this test needs "+what+": install the package "+pkg+" (as root, .ci/needs does)")
}

// end ends the test: skipped, or failed when the environment says CI=true.
func end(t testing.TB, message string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}
