// Command release makes a release of all modules of this repository: one commit, in which every go.mod names the
// version of our modules that it needs, and a tag for each module on it. It needs git and Go, and no network.
//
//	go run ./internal/release v0.2.0    makes the commit and the tags of HEAD, and says what to push
//	go run ./internal/release check     does so with the files as they are, in a clone that is thrown away
//
// Both serve the result as a module proxy would, to an empty module cache, and install every program and import every
// library from there. The third-party modules come from the module cache of this machine, which go mod download fills.
//
// The commit is a child of HEAD and on no branch: checkouts of a branch keep replace lines, so that every module builds
// alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// checked is the version of a release that is only checked.
const checked = "v0.999.0"

var versions = regexp.MustCompile(`^v(0|1)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) != 1 || args[0] != "check" && !versions.MatchString(args[0]) {
		return errors.New("say which version, for example v0.2.0, or check")
	}
	repo, err := command(ctx, ".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "abate-release-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := &release{version: args[0], dir: filepath.Join(scratch, "clone"), scratch: scratch, say: stdout, began: time.Now()}
	if args[0] == "check" {
		r.version = checked
		err = r.cloneFiles(ctx, repo)
	} else {
		err = r.cloneHead(ctx, repo)
	}
	if err != nil {
		return err
	}
	if err := r.commit(ctx); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	if args[0] == "check" {
		r.tell("all is well")
		return nil
	}
	fetch := append([]string{"fetch", "--quiet", "--no-tags", r.dir}, r.refs()...)
	if _, err := command(ctx, repo, nil, "git", fetch...); err != nil {
		return err
	}
	r.tell("made; publish it with: git push origin %s", strings.Join(r.tags(), " "))
	return nil
}

// tell says what has been done, and when.
func (r *release) tell(format string, args ...any) {
	fmt.Fprintf(r.say, "%5.1fs %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// command runs a program in a folder and returns what it wrote to standard output, without spaces around it.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("in %s: %s: %w\n%s%s", dir, strings.Join(cmd.Args, " "), err, out, &errs)
	}
	return strings.TrimSpace(string(out)), nil
}
