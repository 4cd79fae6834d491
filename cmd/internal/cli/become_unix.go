//go:build unix

package cli

import (
	"os"
	"syscall"
)

// Become makes the program out of this process, with its environment, folder and open files. It returns only if that
// fails.
func Become(path string, argv []string) (code int, err error) {
	return 0, syscall.Exec(path, argv, os.Environ())
}
