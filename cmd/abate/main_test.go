package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
)

func TestEveryCommandIsThere(t *testing.T) {
	var names []string
	for _, c := range program().Commands {
		names = append(names, c.Name)
	}
	const want = "drill audit lint import sim tune proxy leave run top trace wait probe dlq export check"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("commands are %q, want %q", got, want)
	}
}

// Who compiles the first command of the README waits for each of these: they are what made it take minutes.
func TestNeitherTheProxyNorAClientLibraryIsCompiled(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.Lines(string(out)) {
		for _, heavy := range []string{"twmb/franz-go", "jackc/pgx", "redis/go-redis", "alicebob/miniredis",
			"yuin/gopher-lua", "abate/proxy", "go.etcd.io", "google.golang.org/grpc", "google.golang.org/protobuf",
			"github.com/prometheus/"} {
			if strings.Contains(pkg, heavy) {
				t.Errorf("abate imports %s", strings.TrimSpace(pkg))
			}
		}
	}
}

func TestWhatNeedsAClientSaysWhichProgramHasIt(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	t.Setenv("PATH", t.TempDir())
	for _, args := range [][]string{{"dlq", "ls"}, {"drill", "kafka"}, {"wait", "kafka://127.0.0.1:9092"},
		{"wait", "postgres://127.0.0.1"}, {"drill", "--via", "proxy"}, {"proxy", "-c", "policy.yaml"}} {
		var out, errs bytes.Buffer
		code := program().Run(over, args, &out, &errs) // so that it is not built
		has := "abate-full has"
		if args[0] == "proxy" {
			has = "abate-proxy has"
		}
		if code != 127 || !strings.Contains(errs.String(), has) {
			t.Errorf("%q: exit code %d: %s", args, code, &errs)
		}
	}
}
