package policyfile

import (
	"context"
	"log/slog"
	"os"
	"time"
)

// settled is how old a file's time stamp must be before it is trusted to change with the next write.
const settled = 2 * time.Second

// Watch looks at the file about once a second (see Interval) and reloads it when its content has changed, until ctx
// ends; it returns ctx's error. Looking instead of listening is what survives every way files change: the ..data
// symlink of a mounted ConfigMap, an editor's rename, a network file system. A file that cannot be read or has mistakes
// changes nothing and is logged with log/slog once, at level error; Watch goes on and takes the next good one. Replace
// the file by renaming another over it: of a file that is being written in place Watch may see the first half. In
// Kubernetes mount the ConfigMap as a directory: a file mounted with subPath never changes.
func (s *Set) Watch(ctx context.Context) error {
	interval := s.Interval
	if interval <= 0 {
		interval = time.Second
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	w := watcher{set: s}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			w.look()
		}
	}
}

// watcher remembers when it last read the file, so that it need not read it at every look.
type watcher struct {
	set  *Set
	seen os.FileInfo
	read time.Time
}

// look reloads the file if its content is another than at the last load, good or bad.
func (w *watcher) look() {
	info, err := os.Stat(w.set.path)
	if err == nil && w.unchanged(info) {
		return
	}
	w.seen, w.read = info, time.Now()
	data, err := readFile(w.set.path)
	if contentOf(data, err) == w.set.Status().tried {
		return
	}
	if err := w.set.Reload(); err != nil {
		slog.Error("policy file not loaded: the last good policy stays in force", "path", w.set.path, "error", err)
		return
	}
	slog.Info("policy file loaded", "path", w.set.path, "services", len(w.set.Names()), "protected",
		len(w.set.GateNames()), "hash", w.set.Status().Hash)
}

func (w *watcher) unchanged(info os.FileInfo) bool {
	return w.seen != nil && os.SameFile(w.seen, info) && w.seen.Size() == info.Size() &&
		w.seen.ModTime().Equal(info.ModTime()) && w.read.Sub(info.ModTime()) > settled
}
