package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// limit is what the binary for sidecars may weigh, stripped: every pod pulls it. It has 16,450,000, TLS in both
// directions, run and traces included; a twentieth of it is the client with which wait logs in to PostgreSQL. Small
// things add up: slices.SortFunc is made anew for every type of structs, with 14 KB each, and SortStableFunc with 5;
// sort.SliceStable is there once.
const limit = 16_550_000

func TestTheBinaryForSidecarsHasNoKafkaNoFakesNoDrillsAndNoClientOfPrometheus(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.Lines(string(out)) {
		for _, heavy := range []string{"twmb/franz-go", "alicebob/miniredis", "yuin/gopher-lua", "abate/sim",
			"github.com/prometheus/", "google.golang.org/protobuf",
			"abate/internal/drill", "abate/export",
			"abate/adapter/abatekafka", "abate/cmd/internal/rehearse", "abate/cmd/internal/kafka"} {
			if strings.Contains(pkg, heavy) {
				t.Errorf("abate-proxy imports %s", strings.TrimSpace(pkg))
			}
		}
	}
}

func TestTheBinaryForSidecarsIsSmall(t *testing.T) {
	if testing.Short() {
		return // it is linked
	}
	path := filepath.Join(t.TempDir(), "abate-proxy")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	// Without the workspace, as go install of a release builds it. The versions of dependencies are then those of
	// cmd/go.mod alone. One that calls methods by a name it computes makes the linker keep every exported method of
	// every type.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > limit {
		t.Errorf("%d bytes, want at most %d; go list -deps and go tool nm -size say what is in it", info.Size(), limit)
	}
}

func TestACommandThatIsNotHereSaysWhere(t *testing.T) {
	here := map[string]bool{}
	for _, c := range program().Commands {
		here[c.Name] = true
	}
	for _, name := range strings.Fields("drill sim tune proxy top wait probe dlq export check") {
		if !here[name] {
			t.Errorf("abate-proxy knows nothing of %s", name)
		}
	}
}
