// Package exhausted recognises errors that say that this process or its machine has run out of something:
// descriptors, memory, buffers or ports. They say nothing of whoever was to be called.
package exhausted

import (
	"net"
	"slices"
	"strings"
	"syscall"
)

// Own reports whether err, or an error that it wraps, is such an error. It allocates nothing.
func Own(err error) bool {
	for err != nil {
		switch e := err.(type) {
		case syscall.Errno:
			switch e {
			case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL:
				return true
			}
			return false
		case *net.DNSError: // keeps only the text of what went wrong
			return strings.HasSuffix(e.Err, syscall.EMFILE.Error()) || strings.HasSuffix(e.Err, syscall.ENFILE.Error())
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			return slices.ContainsFunc(e.Unwrap(), Own)
		default:
			return false
		}
	}
	return false
}
