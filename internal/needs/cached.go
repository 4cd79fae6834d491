package needs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// Cached returns a folder in this user's cache, abate/NAME-HASH, that fill fills the first time; what is what it is
// made from. Nobody may write into it later. Test binaries that want it at the same time wait for the first. fill is
// given an empty folder that becomes the cached one when it returns: it ends the test if it cannot fill it.
func Cached(t testing.TB, name string, what []byte, fill func(folder string)) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("what tests keep needs a cache folder: %v", err)
	}
	cache = filepath.Join(cache, "abate")
	sum := sha256.Sum256(what)
	folder := filepath.Join(cache, name+"-"+hex.EncodeToString(sum[:6]))
	if is(folder) {
		return folder
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(filepath.Join(cache, name+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if is(folder) {
		return folder // somebody else was faster
	}
	making, err := os.MkdirTemp(cache, "making-"+name+"-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(making)
	fill(making)
	if err := os.Rename(making, folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

func is(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}
