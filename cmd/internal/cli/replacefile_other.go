//go:build !unix

package cli

import (
	"io/fs"
	"os"
)

// keepOwner does nothing where files have no owner that Go knows of.
func keepOwner(*os.File, fs.FileInfo) {}
