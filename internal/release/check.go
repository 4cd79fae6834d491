package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// downloaded is what go mod download -json says of a module.
type downloaded struct{ Path, Version, Sum, GoModSum string }

// download has the Go command fetch all published modules from the clone by their tags, as a module proxy does, into a
// module cache. The cache's folder cache/download is what a module proxy serves.
func (r *release) download(ctx context.Context, cache string) (map[string]downloaded, error) {
	args := []string{"mod", "download", "-json"}
	for _, m := range r.modules {
		if m.published() {
			args = append(args, m.Module.Path+"@"+r.version)
		}
	}
	env := []string{
		"GOMODCACHE=" + cache, "GOPROXY=direct", "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOWORK=off",
		"GOPRIVATE=", "GOVCS=*:git",
		"GIT_ALLOW_PROTOCOL=file", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://" + r.dir + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + ours,
	}
	text, err := command(ctx, r.scratch, env, "go", args...)
	if err != nil {
		return nil, err
	}
	all := map[string]downloaded{}
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var one downloaded
		if err := d.Decode(&one); err != nil {
			return nil, err
		}
		all[one.Path] = one
	}
	return all, nil
}

// check serves the release from files to an empty module cache, installs every program and imports every library.
func (r *release) check(ctx context.Context) error {
	served := filepath.Join(r.scratch, "served")
	if _, err := r.download(ctx, served); err != nil {
		return err
	}
	r.tell("%s of %s: %d modules are served", r.version, r.source[:12], len(r.tags()))
	cache, err := command(ctx, r.scratch, nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	const below = "/cache/download"
	env := []string{
		"GOPROXY=file://" + served + below + ",file://" + cache + below, "GOMODCACHE=" + filepath.Join(r.scratch, "modules"),
		"GOBIN=" + filepath.Join(r.scratch, "bin"), "GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local", "GOPRIVATE=",
		"GOFLAGS=-trimpath -modcacherw", // trimpath: the build cache knows modules by version, not by folder
	}
	var wrong []error
	for _, m := range r.modules {
		switch {
		case m.programs():
			wrong = append(wrong, r.install(ctx, m, env), r.alone(ctx, m, env))
		case m.published():
			wrong = append(wrong, r.importAlone(ctx, m, env))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("%w\n(a module of others that is missing comes with: make mods)", err)
	}
	return nil
}

// install installs every program of a module, and asks each which version it is.
func (r *release) install(ctx context.Context, m module, env []string) error {
	var wrong []error
	mains, err := filepath.Glob(filepath.Join(r.dir, m.dir, "*", "main.go"))
	if err != nil || len(mains) == 0 {
		return fmt.Errorf("%s has no programs: %w", m.dir, err)
	}
	for _, file := range mains {
		name := filepath.Base(filepath.Dir(file))
		if _, err := command(ctx, r.scratch, env, "go", "install", m.Module.Path+"/"+name+"@"+r.version); err != nil {
			wrong = append(wrong, err)
			continue
		}
		want := fmt.Sprintf("%s %s, commit %s of %s, ", name, r.version, r.source, r.date)
		says, err := command(ctx, r.scratch, nil, filepath.Join(r.scratch, "bin", name), "version")
		if err == nil && !strings.HasPrefix(says, want) {
			err = fmt.Errorf("%s version: %q, want %q", name, says, want)
		}
		if err == nil {
			r.tell("go install %s: %s", name, says)
		}
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// alone builds a module of the tagged commit without the workspace, which needs its go.sum to be whole and right.
func (r *release) alone(ctx context.Context, m module, env []string) error {
	_, err := command(ctx, filepath.Join(r.dir, m.dir), env, "go", "build", "-mod=readonly", "./...")
	return err
}

// importAlone gets one library into an empty module, and builds a program that imports its packages. Who
// imports the root module gets one module of others.
func (r *release) importAlone(ctx context.Context, m module, env []string) error {
	dir := filepath.Join(r.scratch, "importer", "of-"+strings.ReplaceAll(m.dir, "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	packages, err := r.packages(m)
	if err != nil {
		return err
	}
	text := "package main\n\nimport (\n"
	for _, p := range packages {
		text += fmt.Sprintf("\t_ %q\n", p)
	}
	alone := []string{"GOWORK=off"}
	goVersion, err := command(ctx, filepath.Join(r.dir, m.dir), alone, "go", "list", "-m", "-f", "{{.GoVersion}}")
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/importer\n\ngo "+goVersion+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(text+")\n\nfunc main() {}\n"), 0o644))
	for _, args := range [][]string{{"get", m.Module.Path + "@" + r.version}, {"build", "-mod=mod", "."}} {
		if err == nil {
			_, err = command(ctx, dir, env, "go", args...)
		}
	}
	if err != nil {
		return err
	}
	deps, err := command(ctx, dir, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Compact(slices.Sorted(strings.FieldsSeq(deps))), func(p string) bool {
		return isOurs(p) || strings.HasPrefix(p, "example.com/")
	})
	if m.dir == "." && len(others) > 1 {
		return fmt.Errorf("who imports %s gets %q, and should get a YAML library and nothing else", ours, others)
	}
	r.tell("go get %s: %d packages, modules of others: %d", m.Module.Path, len(packages), len(others))
	return nil
}

// packages are those of a module that others can import.
func (r *release) packages(m module) (all []string, err error) {
	root := filepath.Join(r.dir, m.dir)
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != root {
			_, nested := os.Stat(filepath.Join(file, "go.mod"))
			if nested == nil || strings.HasPrefix(name, ".") || name == "internal" || name == "testdata" {
				return fs.SkipDir
			}
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		rel, _ := filepath.Rel(root, filepath.Dir(file))
		p := path.Join(m.Module.Path, filepath.ToSlash(rel))
		if err == nil && !slices.Contains(all, p) && !strings.Contains("\n"+string(text), "\npackage main\n") {
			all = append(all, p)
		}
		return err
	})
	return all, err
}
