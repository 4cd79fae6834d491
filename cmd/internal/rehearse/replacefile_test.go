package rehearse

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
)

const smallPolicy = "services: {s: {}}\n"

// exportTo writes the rules of a small policy to a file, and returns the exit code and what was said.
func exportTo(t *testing.T, out string) (code int, said string) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(smallPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runExportCommand("prometheus-rules", "-c", policy, "-o", out)
	return code, stdout + stderr
}

// isWritten wants a file to have the rules, and its folder nothing but these names.
func isWritten(t *testing.T, file string, names ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "# Written by") || !strings.HasSuffix(string(text), ".md\n") {
		t.Errorf("%v\n%.200s", err, text)
	}
	holds(t, filepath.Dir(file), names...)
}

// holds wants a folder to have these names in it and no others.
func holds(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if got := strings.Join(found, " "); err != nil || got != strings.Join(names, " ") {
		t.Errorf("%v: in the folder: %s", err, got)
	}
}

func TestAFileThatIsReplacedKeepsItsModeAndANewOneHasTheUsual(t *testing.T) {
	for mode, want := range map[os.FileMode]os.FileMode{0: 0o644, 0o600: 0o600, 0o666: 0o666, 0o664: 0o664, 0o755: 0o755} {
		out := filepath.Join(t.TempDir(), "rules.yaml")
		if mode != 0 {
			if err := os.WriteFile(out, []byte("old and longer\n"+strings.Repeat("x", 1<<17)), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(out, mode); err != nil { // past the mask
				t.Fatal(err)
			}
		}
		if code, said := exportTo(t, out); code != 0 || said != "" {
			t.Errorf("exit code %d, %q", code, said)
		}
		isWritten(t, out, "rules.yaml")
		if info, err := os.Stat(out); err != nil || mode != 0 && info.Mode() != want || info.Mode()&^want != 0 ||
			info.Mode()&0o600 != 0o600 {
			t.Errorf("%v: mode %v, want %v", err, info.Mode(), want)
		}
	}
}

// Whoever has the old file open reads the old rules to their end.
func TestAReaderOfTheOldFileSeesNoneOfTheNew(t *testing.T) {
	out := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(out, []byte("the old rules"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if code, said := exportTo(t, out); code != 0 {
		t.Fatal(said)
	}
	text := make([]byte, 100)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "the old rules" {
		t.Errorf("%v: %q", err, text[:n])
	}
	isWritten(t, out, "rules.yaml")
}

func TestALinkStaysALinkAndTheFileBehindItIsReplaced(t *testing.T) {
	folder, far := t.TempDir(), t.TempDir()
	link, second, file := filepath.Join(folder, "rules.yaml"), filepath.Join(folder, "second"),
		filepath.Join(far, "real.yaml")
	for _, err := range []error{
		os.WriteFile(file, []byte("old"), 0o640), os.Symlink(file, second), os.Symlink("second", link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, said := exportTo(t, link); code != 0 {
		t.Fatal(said)
	}
	if to, err := os.Readlink(link); err != nil || to != "second" {
		t.Errorf("%v: it leads to %q", err, to)
	}
	isWritten(t, file, "real.yaml")
	holds(t, folder, "rules.yaml", "second")
}

func TestWhatCannotBeReplacedIsRefusedAndStays(t *testing.T) {
	folder := t.TempDir()
	nowhere, circle := filepath.Join(folder, "nowhere"), filepath.Join(folder, "circle")
	for _, err := range []error{os.Symlink("gone", nowhere), os.Symlink("circle", circle)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for out, want := range map[string]string{
		nowhere: "is a link to nothing: remove it", circle: "too many levels of symbolic links",
		folder: "is a folder: name a file in it",
		filepath.Join(folder, "no", "such", "folder"): "no such file or directory",
	} {
		if code, said := exportTo(t, out); code != 1 || !strings.Contains(said, "-o "+out+" was not written: ") ||
			!strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, %q", out, code, said)
		}
	}
	holds(t, folder, "circle", "nowhere")
}

// What is there and no file is written to: nobody wants to have /dev/null replaced, and a pipe has a reader.
func TestADeviceIsWrittenToAndNotReplaced(t *testing.T) {
	if code, said := exportTo(t, os.DevNull); code != 0 || said != "" {
		t.Errorf("exit code %d, %q", code, said)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&os.ModeDevice == 0 {
		t.Errorf("%v: %s is %v", err, os.DevNull, info.Mode())
	}
}

// A disk that is full, or a process that is killed, meets the new file and not the old one. Here it is a limit of the
// shell, above which the kernel takes no byte more.
func TestAWriteThatFailsHalfWayLeavesTheOldFile(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	folder, program := t.TempDir(), clitest.Built(t, "abate")
	policy, out := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(folder, "rules.yaml")
	if err := os.WriteFile(policy, []byte(smallPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, []byte("the old rules"), 0o600); err != nil {
		t.Fatal(err)
	}
	limited := exec.Command("sh", "-c", `ulimit -f 2; trap "" XFSZ; exec "$@"`, "sh", program, "export",
		"prometheus-rules", "-c", policy, "-o", out)
	said, err := limited.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "rules.yaml was not written: ") {
		t.Fatalf("%v: %s", err, said)
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "the old rules" {
		t.Errorf("%v: %.100q", err, text)
	}
	holds(t, folder, "rules.yaml")
	if code, said := exportTo(t, out); code != 0 {
		t.Errorf("without the limit: %s", said)
	}
	isWritten(t, out, "rules.yaml")
}

func TestAMinusIsStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, said := exportTo(t, "-"); code != 0 || !strings.HasPrefix(said, "# Written by") {
		t.Errorf("exit code %d, %.100q", code, said)
	}
	holds(t, ".")
}

// runExportCommand runs "abate export" and returns its exit code and what it wrote.
func runExportCommand(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = ExportCommand(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}
