package needs_test

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/abate-go/abate/internal/needs"
)

// cacheIn gives the test a cache of its own.
func cacheIn(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir) // where other systems look
	t.Setenv("LocalAppData", dir)
	return dir
}

func TestCachedFolderIsFilledOnceForManyThatWantIt(t *testing.T) {
	cacheIn(t)
	var fills atomic.Int32
	var all sync.WaitGroup
	var folders sync.Map
	for range 8 {
		all.Go(func() {
			folder := needs.Cached(t, "thing", []byte("first"), func(folder string) {
				fills.Add(1)
				if err := os.WriteFile(filepath.Join(folder, "full"), nil, 0o600); err != nil {
					t.Error(err)
				}
			})
			if _, err := os.Stat(filepath.Join(folder, "full")); err != nil {
				t.Error(err)
			}
			folders.Store(folder, true)
		})
	}
	all.Wait()
	other := needs.Cached(t, "thing", []byte("second"), func(string) { fills.Add(1) })
	if _, same := folders.Load(other); same || fills.Load() != 2 {
		t.Errorf("%d fills of two folders; the second is %s", fills.Load(), other)
	}
}

func TestCachedFolderThatCouldNotBeFilledIsNotKept(t *testing.T) {
	cacheIn(t)
	fills := 0
	for range 2 {
		w := &witness{TB: t}
		func() {
			defer func() { _ = recover() }()
			needs.Cached(w, "thing", nil, func(string) { fills++; w.Fatal("full disk") })
		}()
		if w.failed != "full disk" {
			t.Errorf("failed with %q", w.failed)
		}
	}
	if fills != 2 {
		t.Errorf("%d fills, want a second after the first failed", fills)
	}
}

// Test binaries run side by side, and on a fresh machine each wants another project at once.
func TestMavenRunsOnceAtATime(t *testing.T) {
	cacheIn(t)
	dir := t.TempDir()
	busy := filepath.Join(dir, "busy")
	for name, script := range map[string]string{
		"javac": "exit 0", "mvn": "mkdir '" + busy + "' && sleep 0.2 && rmdir '" + busy + "'",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("CI", "true")
	var all sync.WaitGroup
	for _, name := range []string{"kafka", "spring", "other"} {
		all.Go(func() {
			w := &witness{TB: t}
			defer func() {
				if _ = recover(); w.failed != "" {
					t.Error(w.failed)
				}
			}()
			needs.Maven(w, name, fstest.MapFS{"pom.xml": {}}, "validate")
		})
	}
	all.Wait()
}

func TestMavenThatFailsSkipsForAUserAndFailsInCI(t *testing.T) {
	if testing.Short() {
		return // Maven takes seconds
	}
	needs.Program(t, "mvn")
	cacheIn(t)
	for ci, want := range map[string]bool{"": false, "true": true} {
		t.Setenv("CI", ci)
		w := &witness{TB: t}
		func() {
			defer func() { _ = recover() }()
			needs.Maven(w, "broken", fstest.MapFS{"pom.xml": {Data: []byte("no project")}}, "validate")
		}()
		if failed := w.failed != ""; failed != want || w.failed+w.skipped == "" {
			t.Errorf("CI=%q: failed with %q, skipped with %q", ci, w.failed, w.skipped)
		}
	}
}
