package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/discovery"
)

func TestAFileOfTargetsIsRead(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`[{"targets": ["10.0.0.2:80", "10.0.0.1:80"]}]`, "[{10.0.0.1:80  0} {10.0.0.2:80  0}]"},
		{`[{"targets": ["a:1"], "labels": {"zone": "eu-1", "weight": "3", "job": "x"}}, {"targets": ["[::1]:2"]}]`,
			"[{[::1]:2  0} {a:1 eu-1 3}]"},
		{"- targets: [a:1]\n  labels:\n    zone: eu-1\n    weight: \"2\"\n- targets:\n  - b:1\n  - a:1\n",
			"[{a:1 eu-1 2} {b:1  0}]"},
	} {
		if list, err := discovery.Parse([]byte(row.text)); fmt.Sprint(list) != row.want || err != nil {
			t.Errorf("%s: %v, %v, want %s", row.text, list, err, row.want)
		}
	}
}

func TestEveryMistakeInAFileOfTargetsIsReported(t *testing.T) {
	const noTargets = `it has no targets: write one at least, as in [{"targets": ["10.0.0.5:8080"]}]`
	const notList = "it is not a list of {targets: [...], labels: {...}}: "
	for _, row := range []struct{ text, want string }{
		{"", noTargets},
		{"[]", noTargets},
		{"- targets: []\n", noTargets},
		{`[{"targets": ["10.0.0.2:80", "10.0`, notList},
		{`{"targets": ["a:1"]}`, notList},
		{`[{"target": ["a:1"]}]`, notList},
		{`[{"targets": ["a", "b:0", ":1", "c:http"], "labels": {"weight": "0"}},
			{"targets": ["d:1"], "labels": {"weight": "x"}}]`,
			`entry 1: label weight "0" is not a whole number from 1 to 1000
entry 1: target "a" is not host:port; for example "10.0.0.5:8080"
entry 1: target "b:0" is not host:port; for example "10.0.0.5:8080"
entry 1: target ":1" is not host:port; for example "10.0.0.5:8080"
entry 1: target "c:http" is not host:port; for example "10.0.0.5:8080"
entry 2: label weight "x" is not a whole number from 1 to 1000`},
	} {
		list, err := discovery.Parse([]byte(row.text))
		if err == nil || !strings.HasPrefix(err.Error(), row.want) || list != nil {
			t.Errorf("%s: %v, %v, want %s", row.text, list, err, row.want)
		}
	}
}

// TestAFileIsReadAgainWhenItChanges: replaced, written in place, and by the turn of a link as Kubernetes does it.
func TestAFileIsReadAgainWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"one": `[{"targets": ["a:1"]}]`, "two": `[{"targets": ["b:1"]}]`} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "orders.json"), text)
	}
	turn := func(to string) {
		if err := os.Symlink(to, filepath.Join(dir, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	turn("one")
	path := filepath.Join(dir, "orders.json")
	if err := os.Symlink("..data/orders.json", path); err != nil {
		t.Fatal(err)
	}
	w := watch(t, discovery.Config{Type: "file", Path: path})
	becomes(t, w, "a:1")
	turn("two")
	becomes(t, w, "b:1")
	write(t, filepath.Join(dir, "two", "orders.json"), `[{"targets": ["c:1"]}]`)
	becomes(t, w, "c:1")
	write(t, filepath.Join(dir, "next"), `[{"targets": ["d:1"]}]`)
	if err := os.Rename(filepath.Join(dir, "next"), path); err != nil {
		t.Fatal(err)
	}
	becomes(t, w, "d:1")
}

func TestTheLastGoodListIsKeptWhileAFileIsBad(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "an empty list": "[]", "half": `[{"targets": ["b:1", "c`, "gone": "-",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "orders.json")
			write(t, path, `[{"targets": ["a:1"]}]`)
			w := watch(t, discovery.Config{Type: "file", Path: path})
			becomes(t, w, "a:1")
			if text == "-" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, path, text)
			}
			problem := fails(t, w)
			if !strings.HasPrefix(problem, "file "+path+": ") ||
				!strings.HasSuffix(problem, "; the 1 endpoints of the last answer are kept") || addrs(w.List()) != "a:1" {
				t.Errorf("%q, the list is %v", problem, w.List())
			}
			write(t, path, `[{"targets": ["b:1"]}]`)
			becomes(t, w, "b:1")
			if s := w.Status(); s.Problem() != "" {
				t.Error(s.Problem())
			}
		})
	}
}

func TestAFileThatIsNotThereSaysSo(t *testing.T) {
	w := watch(t, discovery.Config{Type: "file", Path: "/nowhere/orders.json"})
	<-w.First()
	const want = "file /nowhere/orders.json has never been found: stat /nowhere/orders.json: no such file or directory"
	if got := w.Why(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"targets": ["a:1"], "labels": {"zone": "z", "weight": "3"}}]`))
	f.Add([]byte("- targets: [a:1]\n- targets: [b:2, a:1]\n  labels: {weight: 2}\n"))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := discovery.Parse(data)
		if (err == nil) != (len(list) > 0) {
			t.Errorf("%d targets and %v", len(list), err)
		}
		for i, e := range list {
			if i > 0 && list[i-1].Addr >= e.Addr || e.Weight < 0 || e.Weight > 1000 {
				t.Errorf("%v", list)
			}
		}
	})
}
