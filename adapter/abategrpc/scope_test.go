package abategrpc_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate/adapter/abategrpc"
)

func TestTwoUsersBehindOneAddressDoNotGetEachOthersAnswers(t *testing.T) {
	var runs atomic.Int32
	conn, _, _ := protect(t, keyed(), counting(&runs)) // one connection, as of one proxy, for all
	for _, c := range []struct{ user, want string }{{"ann", "#a"}, {"bob", "##a"}, {"ann", "#a"}, {"bob", "##a"}} {
		got := charge(t.Context(), conn, "a", "idempotency-key", "k", "authorization", "Bearer "+c.user)
		if got.err != nil || got.text != c.want {
			t.Errorf("%s: %+v, want %s", c.user, got, c.want)
		}
	}
}

func TestAUserWhoComesBackFromAnotherAddressIsNotServedTwice(t *testing.T) {
	var runs atomic.Int32
	p := keyed()
	p.TrustedPeers = []string{"127.0.0.1", "::1"}
	conn, _, _ := protect(t, p, counting(&runs))
	for _, addr := range []string{"192.0.2.1", "198.51.100.7"} {
		got := charge(t.Context(), conn, "a", "idempotency-key", "k", "authorization", "Bearer ann", "x-forwarded-for", addr)
		if got.err != nil || got.text != "#a" {
			t.Errorf("from %s: %+v", addr, got)
		}
	}
}

func TestServerErrorsAreKeptIfTheProtectionSaysSo(t *testing.T) {
	p := keyed("POST")
	p.Idempotency.KeepServerErrors = true
	for code, kept := range map[string]bool{
		"CANCELLED": true, "UNKNOWN": true, "DEADLINE_EXCEEDED": true, "UNIMPLEMENTED": true, "INTERNAL": true,
		"UNAVAILABLE": true, "DATA_LOSS": true,
		"RESOURCE_EXHAUSTED": false, "ABORTED": false, "UNAUTHENTICATED": false,
	} {
		var runs atomic.Int32
		conn, _, _ := protect(t, p, counting(&runs))
		charge(t.Context(), conn, "fail "+code, "idempotency-key", "k")
		again := charge(t.Context(), conn, "fail "+code, "idempotency-key", "k")
		if replayed := again.one(t, "idempotency-replayed") == "true"; replayed != kept || (runs.Load() == 1) != kept {
			t.Errorf("%s: replayed %v after %d runs", code, replayed, runs.Load())
		}
	}
}

func TestAnAnswerLargerThan64KiBIsReplayed(t *testing.T) {
	large := strings.Repeat("x", 3<<20)
	conn, _, _ := protect(t, keyed(), func(context.Context, *text) (*text, error) { return wrapperspb.String(large), nil })
	for n := range 2 {
		if got := charge(t.Context(), conn, "a", "idempotency-key", "k"); got.err != nil || got.text != large {
			t.Errorf("try %d: %d bytes, %v", n, len(got.text), got.err)
		}
	}
}

func TestKeysThatDisagreeAreRefused(t *testing.T) {
	conn, _, _ := protect(t, keyed(), func(context.Context, *text) (*text, error) {
		t.Error("it was done")
		return nil, status.Error(codes.Internal, "no")
	})
	if got := charge(t.Context(), conn, "a", "idempotency-key", "k", "x-idempotency-key", "j"); status.Code(got.err) !=
		codes.InvalidArgument {
		t.Errorf("%+v", got)
	}
}

func TestAKeyThatComesBackForAnotherUserIsAMismatch(t *testing.T) {
	for _, who := range []string{"private-token", "x-user-id", "x-tenant-bin", "x-goog-authenticated-user-email"} {
		var runs atomic.Int32
		conn, _, _ := protect(t, keyed(), counting(&runs))
		for _, c := range []struct {
			user string
			code codes.Code
		}{{"ann", codes.OK}, {"ann", codes.OK}, {"bob", codes.FailedPrecondition}} {
			got := charge(t.Context(), conn, "a", "idempotency-key", "k", "authorization", "Bearer bff", who, c.user)
			if got.code() != c.code || runs.Load() != 1 {
				t.Errorf("%s %s: %+v after %d runs", who, c.user, got, runs.Load())
			}
		}
	}
}

// One server may serve many hosts, each to its own tenant. A key that comes back for another host is another intent's.
func TestAKeyThatComesBackForAnotherHostIsAMismatch(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		runs          int32
		code          codes.Code
	}{
		"another host":      {"one.test", "two.test", 1, codes.FailedPrecondition},
		"the same":          {"one.test", "one.test", 1, codes.OK},
		"written otherwise": {"one.test", "ONE.test.:443", 1, codes.OK},
		"two addresses":     {"192.0.2.1:80", "198.51.100.7", 1, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			s := &shop{charge: counting(&runs)}
			addr := s.serve(t, abategrpc.ServerOptions(newGate(t, keyed()))...).Target()
			var last answer
			for _, host := range []string{c.first, c.second} {
				conn := dial(t, addr, grpc.WithAuthority(host))
				last = charge(t.Context(), conn, "a", "idempotency-key", "k", "authorization", "Bearer ann")
			}
			if last.code() != c.code || runs.Load() != c.runs {
				t.Errorf("%+v after %d runs, want %v after %d", last, runs.Load(), c.code, c.runs)
			}
		})
	}
}

func TestARepeatGetsTheCodeOfTheFirst(t *testing.T) {
	p := keyed()
	p.Idempotency.KeepServerErrors = true
	conn, _, _ := protect(t, p, func(ctx context.Context, in *text) (*text, error) {
		return nil, context.DeadlineExceeded
	})
	first := charge(t.Context(), conn, "a", "idempotency-key", "k").code()
	again := charge(t.Context(), conn, "a", "idempotency-key", "k").code()
	if first != codes.DeadlineExceeded || again != first {
		t.Error(first, again)
	}
}
