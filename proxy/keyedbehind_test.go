package proxy_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// What a gate behind this proxy says of a moment is no answer, also where those of errors are kept.
func TestAGRPCRefusalOfAGateBehindIsNotKept(t *testing.T) {
	for reason, code := range map[string]codes.Code{
		"overloaded": codes.OK, "idempotency-unrecorded": codes.OK, "deadline": codes.Unavailable,
	} {
		t.Run(reason, func(t *testing.T) {
			s := serveGRPC(t, func(c *rpc) error {
				if c.n > 1 {
					return c.send("done")
				}
				c.SetTrailer(metadata.Pairs("abate-reason", reason))
				return grpcstatus.Error(codes.Unavailable, "")
			})
			r := protect(t, guardOf(s.url, keepsErrors))
			cc := dialGRPC(t, r.addr)
			call(t, cc, "/a.B/C", "m", keyed...)
			if got := call(t, cc, "/a.B/C", "m", keyed...); got.code != code {
				t.Errorf("the repeat got %v, want %v", got.code, code)
			}
		})
	}
}
