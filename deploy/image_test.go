package deploy_test

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// instruction is one line of a Dockerfile, continuation lines joined, flags apart.
type instruction struct {
	word  string
	flags []string
	rest  string
}

func dockerfile(t *testing.T) []instruction {
	t.Helper()
	var list []instruction
	var text strings.Builder
	for line := range strings.Lines(string(read(t, "../Dockerfile"))) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		part, more := strings.CutSuffix(line, "\\")
		text.WriteString(part + " ")
		if more {
			continue
		}
		words := strings.Fields(text.String())
		i := instruction{word: words[0]}
		rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text.String()), i.word))
		for strings.HasPrefix(rest, "--") {
			flag, after, _ := strings.Cut(rest, " ")
			i.flags, rest = append(i.flags, flag), strings.TrimSpace(after)
		}
		i.rest = rest
		list = append(list, i)
		text.Reset()
	}
	return list
}

// buildLine is the command of the Dockerfile that compiles, and the file that it writes.
func buildLine(t *testing.T) (command, output string) {
	t.Helper()
	for _, i := range dockerfile(t) {
		if m := regexp.MustCompile(` -o (\S+) `).FindStringSubmatch(i.rest); i.word == "RUN" &&
			strings.Contains(i.rest, "go build") && m != nil {
			return i.rest, m[1]
		}
	}
	t.Fatal("the Dockerfile has no RUN with go build -o FILE")
	return "", ""
}

// ignore is one line of .dockerignore, in the part of its language that ours uses: names and patterns from the root,
// and "**/" for any folder. They hold for what is below a folder, too.
type ignore string

func (pattern ignore) covers(file string) bool {
	if anywhere, ok := strings.CutPrefix(string(pattern), "**/"); ok {
		return slices.ContainsFunc(strings.Split(file, "/"), func(name string) bool { return matches(anywhere, name) })
	}
	for file != "." {
		if matches(string(pattern), file) {
			return true
		}
		file = path.Dir(file)
	}
	return false
}

func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

func dockerignore(t *testing.T) []ignore {
	t.Helper()
	var patterns []ignore
	for line := range strings.Lines(string(read(t, "../.dockerignore"))) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		beyond := strings.TrimPrefix(line, "**/")
		if _, err := path.Match(line, ""); err != nil || strings.ContainsAny(line, "!\\") || strings.Contains(beyond, "**") ||
			strings.HasPrefix(line, "/") || strings.HasSuffix(line, "/") || beyond != line && strings.Contains(beyond, "/") {
			t.Fatalf(".dockerignore: this test does not understand %q; write a name from the root, or **/NAME", line)
		}
		patterns = append(patterns, ignore(line))
	}
	return patterns
}

// buildContext copies what docker build would send into a folder of its own.
func buildContext(t *testing.T) string {
	t.Helper()
	to, patterns := t.TempDir(), dockerignore(t)
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel("..", file)
		name = filepath.ToSlash(name)
		covered := slices.ContainsFunc(patterns, func(i ignore) bool { return i.covers(name) })
		switch {
		case err != nil:
			return err
		case covered && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case covered || !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// build runs the Dockerfile's own command on what .dockerignore leaves of the repository.
func build(t *testing.T) (binary, dir string) {
	t.Helper()
	needs.Whole(t)
	command, output := buildLine(t)
	binary, dir = filepath.Join(t.TempDir(), "abate"), buildContext(t)
	cmd := exec.Command("sh", "-c", strings.Replace(command, " -o "+output+" ", ` -o "$OUTPUT" `, 1))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OUTPUT="+binary, "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "GOFLAGS=", "GOWORK=",
		"CGO_ENABLED=")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, said)
	}
	return binary, dir
}

func TestImageIsOneStaticBinaryThatDoesWhatTheManifestsSay(t *testing.T) {
	binary, dir := build(t)
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic loader, and the image has none")
		}
	}
	if needed, err := file.DynString(elf.DT_NEEDED); len(needed) > 0 || err != nil {
		t.Errorf("the binary needs the libraries %v (%v), and the image has none", needed, err)
	}
	if file.Section(".debug_info") != nil || file.Section(".symtab") != nil {
		t.Error("the binary has symbols or debugging information")
	}
	if strings.Contains(string(read(t, binary)), dir) {
		t.Error("the binary names the folder that it was built in")
	}
	if runtime.GOOS != "linux" { // where the image cannot run either
		return
	}
	injects(t, binary)
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			if c, _ := w.mounted(b, &p); c != nil {
				err := w.play(t, binary, c.Data)
				p.unless(err == nil, w.where, "%v", err)
			}
		}
		return p
	},
		edit{"gateway.yaml", "maxRetries: 2", "maxRetries: two", "policy.yaml:4:"},
		edit{"gateway.yaml", "--log-format, json", "--log-format, xml", `--log-format "xml" is not known`},
		edit{"gateway.yaml", "path: /healthz", "path: /health", "GET /health: 404"},
		edit{"gateway.yaml", "path: /metrics", "path: /metric", "GET /metric: 404"},
	)
}

func TestEveryCopiedFileExists(t *testing.T) {
	_, output := buildLine(t)
	sent := buildContext(t)
	inBuild := map[string]bool{output: true, "/etc/ssl/certs/ca-certificates.crt": true} // the golang image has the latter
	for _, i := range dockerfile(t) {
		if _, file, ok := strings.Cut(i.rest, ">"); ok && i.word == "RUN" {
			inBuild[file] = true
		}
		if i.word != "COPY" {
			continue
		}
		words := strings.Fields(i.rest)
		for _, source := range words[:len(words)-1] {
			if slices.Contains(i.flags, "--from=build") {
				if !inBuild[source] {
					t.Errorf("COPY %s: the stage build does not make it", source)
				}
			} else if _, err := os.Stat(filepath.Join(sent, source)); err != nil {
				t.Errorf("COPY %s: not in the build context: %v", source, err)
			}
		}
	}
}

func TestImageIsMinimalAndRunsAsTheUserOfTheManifests(t *testing.T) {
	list := dockerfile(t)
	goLine := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(read(t, "../cmd/go.mod")))
	var stages []string
	final := map[string]string{}
	for _, i := range list {
		switch i.word {
		case "FROM":
			stages = append(stages, i.rest)
			clear(final)
		case "COPY":
			words := strings.Fields(i.rest)
			final["COPY "+words[len(words)-1]] = i.rest
		default:
			final[i.word] = i.rest
		}
	}
	if want := []string{"golang:" + goLine[1] + "-alpine AS build", "scratch"}; !slices.Equal(stages, want) {
		t.Errorf("stages are %q, want %q: the compiler is the Go of module cmd, the image is empty", stages, want)
	}
	_, output := buildLine(t)
	for key, want := range map[string]string{
		"USER":             "65532:65532",
		"ENTRYPOINT":       `["/abate"]`,
		"COPY /abate":      output + " /abate",
		"COPY /etc/passwd": "/out/passwd /etc/passwd",
		"COPY /etc/ssl/certs/ca-certificates.crt": "/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt",
	} {
		if final[key] != want {
			t.Errorf("%s is %q, want %q", key, final[key], want)
		}
	}
	if _, ok := final["RUN"]; ok {
		t.Error("RUN in an image without a shell")
	}
	passwd := slices.ContainsFunc(list, func(i instruction) bool {
		return i.word == "RUN" &&
			regexp.MustCompile(`echo "\w+:x:65532:65532:[^:]*:/:[^:"]+" >/out/passwd`).MatchString(i.rest)
	})
	if !passwd {
		t.Error("the stage build makes no /etc/passwd with user 65532")
	}
	holds(t, func(b *bundle) (p problems) {
		for _, w := range workloads(b, &p) {
			p.unless(w.abate.Command == nil && len(w.abate.Args) > 0 &&
				w.abate.Args[0] == "proxy", w.where, "abate: does not run the image's entry point with proxy")
		}
		return p
	},
		edit{"gateway.yaml", "[proxy, --gateway", "[proxi, --gateway", "does not run"},
		edit{"gateway.yaml", "          args:\n", "          command: [/bin/abate]\n          args:\n", "does not run"},
	)
}

func TestDockerignoreLeavesOutWhatTheBinaryIsNotMadeOf(t *testing.T) {
	patterns := dockerignore(t)
	for file, want := range map[string]bool{
		".git/config": true, "bench/go.mod": true, "deploy/kubernetes/gateway.yaml": true, "README.md": true,
		"do_test.go":                 true,
		"policy/retry/retry_test.go": true, "go.work": true,
		"go.mod": false, "go.sum": false, "LICENSE": false, "cmd/abate-proxy/main.go": false, "cmd/go.sum": false,
		"policyfile/schema.json":         false,
		"scenarios/checkout-outage.yaml": false, "sim/report/page.tmpl": false, "proxy/go.mod": false,
		"adapter/abateredis/go.mod": false,
	} {
		if got := slices.ContainsFunc(patterns, func(i ignore) bool { return i.covers(file) }); got != want {
			t.Errorf("%s is left out: %v, want %v", file, got, want)
		}
	}
	for _, x := range []struct {
		pattern ignore
		file    string
		want    bool
	}{
		{"bench", "bench", true}, {"bench", "bench/a/b", true}, {"bench", "benches/a", false}, {"bench", "a/bench", false},
		{"*.md", "a.md", true}, {"*.md", "docs/a.md", false}, {"**/*_test.go", "a/b/c_test.go", true},
		{"**/*_test.go", "a_test.go", true},
		{"**/testdata", "a/testdata/b", true}, {"docs/*.md", "docs/a.md", true},
	} {
		if got := x.pattern.covers(x.file); got != x.want {
			t.Errorf("%q covers %q: %v, want %v", x.pattern, x.file, got, x.want)
		}
	}
}
