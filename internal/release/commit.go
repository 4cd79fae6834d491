package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	ours     = "github.com/abate-go/abate"
	released = "cmd/internal/cli/released.txt" // what the programs say of themselves
)

// release is one that is being made in a clone.
type release struct {
	version      string
	dir          string // of the clone
	scratch      string // for caches and programs
	say          io.Writer
	began        time.Time
	modules      []module
	source, date string // the commit that is released, and its date
}

// module is what go mod edit -json says of one.
type module struct {
	dir     string // in the repository, "." for the root
	Module  struct{ Path string }
	Require []struct{ Path, Version string }
	Replace []struct{ Old struct{ Path string } }
}

// published reports whether somebody may import a module or install from it. The others are tests, benchmarks and
// examples.
func (m module) published() bool {
	adapter := strings.HasPrefix(m.dir, "adapter/") && !strings.HasSuffix(m.dir, "test")
	return m.dir == "." || m.dir == "cmd" || m.dir == "proxy" || adapter
}

// programs reports whether a module has programs to install, which is refused to a module with replace lines.
func (m module) programs() bool { return m.dir == "cmd" }

func (r *release) tag(m module) string { return strings.TrimPrefix(path.Join(m.dir, r.version), "./") }

func (r *release) tags() (all []string) {
	for _, m := range r.modules {
		if m.published() {
			all = append(all, r.tag(m))
		}
	}
	return all
}

func (r *release) refs() (all []string) {
	for _, t := range r.tags() {
		all = append(all, "refs/tags/"+t+":refs/tags/"+t)
	}
	return all
}

func (r *release) cloneHead(ctx context.Context, repo string) error {
	changed, err := command(ctx, repo, nil, "git", "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("there are changes that are not committed; commit them or take them back:\n%s", changed)
	}
	if err != nil {
		return err
	}
	_, err = command(ctx, repo, nil, "git", "clone", "--quiet", "--shared", "--no-tags", repo, r.dir)
	return err
}

// cloneFiles clones the files as they are, and commits what is not.
func (r *release) cloneFiles(ctx context.Context, repo string) error {
	_, err := command(ctx, repo, nil, "git", "clone", "--quiet", "--shared", "--no-tags", "--no-checkout", repo, r.dir)
	for _, args := range [][]string{
		{"--work-tree=" + repo, "add", "--all"},
		{"commit", "--quiet", "--allow-empty", "--message=what is to be checked"},
		{"reset", "--quiet", "--hard"},
	} {
		if err == nil {
			_, err = r.git(ctx, args...)
		}
	}
	return err
}

// git runs git in the clone, under a name if the user has none.
func (r *release) git(ctx context.Context, args ...string) (string, error) {
	var env []string
	for _, who := range []string{"GIT_AUTHOR", "GIT_COMMITTER"} {
		env = append(env, who+"_NAME=Abate", who+"_EMAIL=release@localhost")
	}
	unsigned := []string{"-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}
	return command(ctx, r.dir, env, "git", append(unsigned, args...)...)
}

// commit makes the commit and its tags. It does so twice: only when the libraries are tagged can it be known what
// go.sum of the programs says of them.
func (r *release) commit(ctx context.Context) (err error) {
	if r.source, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	show := []string{"show", "--no-patch", "--date=iso-strict-local", "--format=%cd"}
	if r.date, err = command(ctx, r.dir, []string{"TZ=UTC"}, "git", show...); err != nil {
		return err
	}
	r.date = strings.Replace(r.date, "+00:00", "Z", 1)
	if err := r.read(ctx); err != nil {
		return err
	}
	note := fmt.Sprintf("%s %s %s\n", r.version, r.source, r.date)
	if err := os.WriteFile(filepath.Join(r.dir, released), []byte(note), 0o644); err != nil {
		return err
	}
	for _, m := range r.modules {
		if err := r.pin(ctx, m); err != nil {
			return err
		}
	}
	message := fmt.Sprintf("--message=%s, of commit %s", r.version, r.source)
	if err := r.seal(ctx, "commit", "--quiet", "--all", message); err != nil {
		return err
	}
	if err := r.sums(ctx); err != nil {
		return err
	}
	return r.seal(ctx, "commit", "--quiet", "--all", "--amend", message)
}

func (r *release) seal(ctx context.Context, commit ...string) error {
	if _, err := r.git(ctx, commit...); err != nil {
		return err
	}
	for _, t := range r.tags() {
		if _, err := r.git(ctx, "tag", "--force", "--annotate", "--message="+t, t); err != nil {
			return err
		}
	}
	return nil
}

// read finds the modules of the repository.
func (r *release) read(ctx context.Context) error {
	files, err := r.git(ctx, "ls-files", "*go.mod")
	if err != nil {
		return err
	}
	published := map[string]bool{}
	for _, file := range strings.Fields(files) {
		m := module{dir: path.Dir(file)}
		text, err := command(ctx, filepath.Join(r.dir, m.dir), nil, "go", "mod", "edit", "-json")
		if err == nil {
			err = json.Unmarshal([]byte(text), &m)
		}
		if err != nil {
			return err
		}
		r.modules = append(r.modules, m)
		published[m.Module.Path] = m.published()
	}
	var wrong []error
	for _, m := range r.modules {
		for _, need := range m.Require {
			if m.published() && isOurs(need.Path) && !published[need.Path] {
				wrong = append(wrong, fmt.Errorf("%s/go.mod requires %s, which is not published", m.dir, need.Path))
			}
		}
	}
	return errors.Join(wrong...)
}

func isOurs(p string) bool { return p == ours || strings.HasPrefix(p, ours+"/") }

// pin has a go.mod name the version of our modules. Where there are programs it drops the replace lines.
func (r *release) pin(ctx context.Context, m module) error {
	args := []string{"mod", "edit"}
	for _, need := range m.Require {
		if isOurs(need.Path) {
			args = append(args, "-require="+need.Path+"@"+r.version)
		}
	}
	for _, replaced := range m.Replace {
		if m.programs() && isOurs(replaced.Old.Path) {
			args = append(args, "-dropreplace="+replaced.Old.Path)
		}
	}
	if len(args) == 2 {
		return nil
	}
	_, err := command(ctx, filepath.Join(r.dir, m.dir), nil, "go", args...)
	return err
}

// sums adds our own modules to go.sum where no replace line says where they are.
func (r *release) sums(ctx context.Context) error {
	known, err := r.download(ctx, filepath.Join(r.scratch, "provisional"))
	if err != nil {
		return err
	}
	for _, m := range r.modules {
		if !m.programs() {
			continue
		}
		file := filepath.Join(r.dir, m.dir, "go.sum")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			lines[line] = true
		}
		for _, need := range m.Require {
			if d, ok := known[need.Path]; ok {
				lines[fmt.Sprintf("%s %s %s\n", d.Path, d.Version, d.Sum)] = true
				lines[fmt.Sprintf("%s %s/go.mod %s\n", d.Path, d.Version, d.GoModSum)] = true
			}
		}
		if err := os.WriteFile(file, []byte(strings.Join(slices.Sorted(maps.Keys(lines)), "")), 0o644); err != nil {
			return err
		}
	}
	return nil
}
