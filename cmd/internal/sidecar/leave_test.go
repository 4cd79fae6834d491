package sidecar

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func runLeave(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = LeaveCommand(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestLeaveSaysWhatIsWrongWithItsWords(t *testing.T) {
	for args, want := range map[string]string{
		"--for 10":       `invalid value "10" for flag -for`,
		"--for -1s":      "--for -1s is out of range: write 0s to 24h",
		"--pid -1":       "--pid -1 is out of range",
		"--for 1s proxy": `"proxy" is not a flag`,
	} {
		code, stdout, stderr := runLeave(t, strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "Usage: abate leave") {
			t.Errorf("%s: %d %q %q, want %q", args, code, stdout, stderr, want)
		}
	}
	if code, stdout, _ := runLeave(t, "--help"); code != 0 || !strings.HasPrefix(stdout, "Usage: abate leave") {
		t.Errorf("%d %q", code, stdout)
	}
}

// TestTheProxyIsFoundAmongTheProcesses of a container, of a pod whose containers share them, and of a machine.
func TestTheProxyIsFoundAmongTheProcesses(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type process struct{ pid, exe, words string }
	other, older := "/usr/bin/other", "/elsewhere/"+filepath.Base(own)+" (deleted)"
	for name, c := range map[string]struct {
		all  []process
		want int
		err  string
	}{
		"a container":            {[]process{{"1", own, "abate proxy -c x"}}, 1, ""},
		"flags alone":            {[]process{{"1", own, "abate -c x"}}, 1, ""},
		"with a probe beside it": {[]process{{"1", own, "abate proxy"}, {"7", own, "abate probe x"}}, 1, ""},
		"shared processes": {[]process{{"1", "/pause", "/pause"}, {"9", own, "abate proxy"}, {"12", other, "x proxy"}},
			9, ""},
		"a program since renewed": {[]process{{"1", "/sbin/init", "init"}, {"812", older, "abate proxy"}}, 812, ""},
		"two": {[]process{{"5", own, "abate proxy"}, {"6", own, "abate proxy"}}, 0,
			"5, 6: name one with --pid"},
		"none": {[]process{{"1", other, "x proxy"}, {"2", own, "abate leave"}}, 0,
			"no proxy runs here"},
		"files that may not be seen": {[]process{{"1", "", filepath.Base(own) + " proxy"}, {"2", "", "x proxy"}}, 1, ""},
	} {
		proc := t.TempDir()
		for _, p := range c.all {
			dir := filepath.Join(proc, p.pid)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if p.exe != "" {
				if err := os.Symlink(p.exe, filepath.Join(dir, "exe")); err != nil {
					t.Fatal(err)
				}
			}
			words := strings.ReplaceAll(p.words, " ", "\x00")
			if err := os.WriteFile(filepath.Join(dir, "cmdline"), []byte(words), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := findProxy(proc)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d %v", name, got, err)
		}
	}
	if _, err := findProxy(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "--pid") {
		t.Errorf("without /proc: %v", err)
	}
}
