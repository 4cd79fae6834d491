//go:build !unix || solaris || illumos || aix

package embedded

import "os"

// lockFolder does nothing where there is no flock.
func lockFolder(string) (*os.File, error) { return nil, nil }

func unlockFolder(*os.File) {}
