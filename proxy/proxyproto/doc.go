// Package proxyproto reads and writes the headers with which a proxy tells the next one who is at the other end of a
// connection: the PROXY protocol, version 1 (a line of text) and 2 (binary), as HAProxy's
// doc/proxy-protocol.txt specifies it.
//
// It is strict: what the specification says a receiver must reject is an error, and so is a header that does not end
// where it says. It does no I/O: a reader asks it how many bytes certainly belong to the header and never takes one
// that is behind it.
package proxyproto
