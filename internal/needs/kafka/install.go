package kafka

import (
	"crypto/rand"
	"embed"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

//go:embed pom.xml log4j2.properties
var project embed.FS

// version names the cached folders; pom.xml has it, too.
const version = "4.1.1"

// installation is what all brokers of a user share.
type installation struct {
	java, folder string
	ready        string   // a folder with what a new cluster and a quick start need
	flags        []string // for the Java machine
}

const (
	checkpointName = "bootstrap.checkpoint" // the features of a new cluster
	classesName    = "classes.jsa"          // what the Java machine found in the jars
)

// installed returns it; the first time it takes 20 s and Maven Central.
func installed(t testing.TB) installation {
	t.Helper()
	in := installation{java: needs.Program(t, "java")}
	in.folder = needs.Maven(t, "kafka-"+version, project,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=libs")
	in.ready = needs.Cached(t, "kafka-ready-"+version, []byte(in.folder), func(folder string) {
		t.Helper()
		in.format(t, folder)
		in.rehearse(t, folder)
	})
	in.flags = []string{"-XX:SharedArchiveFile=" + filepath.Join(in.ready, classesName)}
	return in
}

// format writes what a new cluster needs. That takes a second: so it is done once, and each cluster is given a copy
// with ids of its own.
func (in installation) format(t testing.TB, folder string) {
	t.Helper()
	data := t.TempDir()
	file := filepath.Join(data, "server.properties")
	if err := os.WriteFile(file, properties(ports{1, 2}, data, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := in.command("kafka.tools.StorageTool", "format", "-t", id(), "-c", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("format Kafka's folder: %v\n%s", err, out)
	}
	checkpoint, err := os.ReadFile(filepath.Join(data, checkpointName))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, checkpointName), checkpoint, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rehearse starts a broker once to keep what the Java machine found in the jars: later starts take a third less.
func (in installation) rehearse(t testing.TB, folder string) {
	t.Helper()
	in.ready = folder
	in.flags = []string{"-XX:ArchiveClassesAtExit=" + filepath.Join(folder, classesName)}
	b := begin(t, in, nil)
	b.Stop()
	b.remove()
}

// prepare makes the data folder of a new cluster.
func (in installation) prepare(data, cluster string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	checkpoint, err := os.ReadFile(filepath.Join(in.ready, checkpointName))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, checkpointName), checkpoint, 0o600); err != nil {
		return err
	}
	meta := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n", cluster, node, id())
	return os.WriteFile(filepath.Join(data, "meta.properties"), []byte(meta), 0o600)
}

// command runs one of Kafka's programs, with what lets it start soonest.
func (in installation) command(class string, args ...string) *exec.Cmd {
	all := []string{"-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-Xlog:disable", "-Xlog:all=error:stderr",
		"-Dlog4j2.configurationFile=" + filepath.Join(in.folder, "log4j2.properties"),
		"-cp", filepath.Join(in.folder, "libs", "*"), class}
	return exec.Command(in.java, slices.Concat(in.flags, all, args)...)
}

// id is a new id as Kafka writes them. It never begins with a dash.
func id() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return strings.Replace(base64.RawURLEncoding.EncodeToString(b), "-", "A", 1)
}
