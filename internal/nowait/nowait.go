// Package nowait reads and writes sockets as they are, from within a syscall.RawConn: what there is, and what there is
// room for. Where Possible is false it can do neither.
package nowait
