package audit_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate/audit"
)

// A folder that is reached over a link is read as the folder: checkouts and mounted volumes are often links.
func TestALinkToAFolderIsReadWhenItIsNamed(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "deploy-42")
	if err := os.Mkdir(real, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(real, "calls.yaml"), []byte("calls: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "current")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	files, err := audit.Collect(context.Background(), []string{link}, nil, nil)
	if err != nil || len(files) != 1 || files[0].Name != filepath.ToSlash(filepath.Join(link, "calls.yaml")) {
		t.Errorf("%v, %v", files, err)
	}
}

// Nobody may ever write to standard input.
func TestStandardInputIsLeftWhenTheAuditIsInterrupted(t *testing.T) {
	silent, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if files, err := audit.Collect(ctx, []string{audit.Stdin}, silent, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", files, err)
	}
}
