//go:build unix && !linux

package pods_test

import "syscall"

// diesWithUs can do nothing here for a test that is killed.
func diesWithUs() *syscall.SysProcAttr { return nil }
