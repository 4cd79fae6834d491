//go:build !linux

package proxy

import "syscall"

// inheritedKeepAlive: package net sets it on each connection.
const inheritedKeepAlive = 0

func keepAlive(string, string, syscall.RawConn) error { return nil }
