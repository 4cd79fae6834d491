//go:build !linux

package abateredis_test

import "syscall"

func diesWithUs() *syscall.SysProcAttr { return nil }
