//go:build !unix

package proxy

import "syscall"

func openFiles() int { return 0 }

func hungUp(syscall.RawConn) bool { return false }

func silent(syscall.RawConn) bool { return true }

func saidGoodbye(syscall.RawConn) bool { return false }
