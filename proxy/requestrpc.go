package proxy

import (
	"bytes"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
)

// asksRPC reports whether the request is a gRPC call: it needs HTTP/2 all the way, and its answer ends with a status of
// its own.
func (r *request) asksRPC() bool {
	if !r.client.multiplexed() || !r.has(hasType) {
		return false
	}
	for _, f := range r.Fields {
		if f.Is("content-type") {
			return isRPC(f.Value)
		}
	}
	return false
}

// readRPC reads what a gRPC call says about itself.
func (r *request) readRPC() {
	if r.rpc = r.asksRPC(); !r.rpc {
		return
	}
	for _, f := range r.Fields { // what cannot be read is as if it were not there
		if f.Is("grpc-timeout") {
			if d, ok := hops.ParseGRPCTimeout(text(f.Value)); ok {
				r.limit = min(r.limit, later(r.began, d))
			}
		}
	}
}

// bound has the deadline of a gRPC call be the least of its client's, the gate's, and the policy's timeout, as the
// timeout of a service config is: a stream ends at it too. attemptTimeout is no part of it: what that bounds is the
// wait for the answer's beginning, and a stream may go on behind that.
func (r *request) bound(policy *abate.Policy, now, until time.Duration) {
	if r.limit = min(r.limit, until); policy.Timeout > 0 {
		r.limit = min(r.limit, later(now, policy.Timeout))
	}
}

// method is the path of the request without its query: of a gRPC call, its method.
func (r *request) method() string {
	path := text(r.Path)
	if query := strings.IndexByte(path, '?'); query >= 0 {
		path = path[:query]
	}
	return path
}

// grpcType is how the Content-Type of gRPC begins.
var grpcType = []byte("application/grpc")

// isRPC reports whether a media type is gRPC's. That of gRPC-Web is not: its status is part of the content.
func isRPC(mediaType []byte) bool {
	n := len(grpcType)
	return len(mediaType) >= n && bytes.EqualFold(mediaType[:n], grpcType) &&
		(len(mediaType) == n || strings.IndexByte("+; ", mediaType[n]) >= 0)
}
