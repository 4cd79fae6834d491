package proxy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// Over gRPC the allowance is metadata, and what became of it comes with the status.
func TestAGRPCProgramsCallsShareTheAllowanceOfItsRequest(t *testing.T) {
	const method = "/shop.Payment/Get"
	for _, tt := range []struct {
		name         string
		forwards     string
		md           []string
		leaf         func(c *rpc) error
		messages     int // that the program sends before it fails
		calls        int
		made, pushed string
	}{
		{"header", allowance, []string{allowance, `1;owner="edge"`}, nil, 0, 2, "1", ""},
		{"trace", "traceparent", []string{allowance, `1;owner="edge"`, "traceparent", traceparent}, nil, 0, 2, "1", ""},
		{"nothing left", allowance, []string{allowance, "0"}, nil, 0, 1, "0", ""},
		{"more than the policy allows", allowance, []string{allowance, "9"}, nil, 0, 3, "2;final", "-1"},
		{"in the trailer", allowance, []string{allowance, "9"}, nil, 2, 3, "2;final", "-1"},
		{"final below", allowance, []string{allowance, "9"}, func(c *rpc) error {
			c.SetTrailer(metadata.Pairs(strings.ToLower(made), "1;final"))
			return grpcstatus.Error(codes.Unavailable, "down")
		}, 0, 1, "1;final", "-1"},
		{"final below, in the trailer", allowance, []string{allowance, "9"}, func(c *rpc) error {
			_ = c.send("message") // the attempt cannot be repeated, and its end counts all the same
			c.SetTrailer(metadata.Pairs(strings.ToLower(made), "1;final"))
			return grpcstatus.Error(codes.Unavailable, "down")
		}, 0, 1, "1;final", "-1"},
		{"without an allowance", "traceparent", []string{"traceparent", traceparent}, nil, 0, 3, "", "-1"},
		{"without anything", "nothing", nil, nil, 0, 3, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.leaf == nil {
				tt.leaf = func(*rpc) error { return grpcstatus.Error(codes.Unavailable, "down") }
			}
			leaf := serveGRPC(t, tt.leaf)
			var egress *grpc.ClientConn
			app := serveGRPC(t, func(c *rpc) error {
				if _, err := c.receive(); err != nil {
					return err
				}
				for range tt.messages {
					_ = c.send("message")
				}
				inner := callIn(c.Context(), egress, method, "hello", tt.forwards, c.first(tt.forwards))
				return grpcstatus.Error(inner.code, inner.message)
			})
			r := start(t, guardOf(app.url, noShed, trustLoop)+single(
				[]string{leaf.url}, append(slices.Clone(countOnly), "retryOn: [UNAVAILABLE]")...))
			if err := r.proxy.Open(); err != nil {
				t.Fatal(err)
			}
			egress = dialGRPC(t, r.addr)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			ingress := dialGRPC(t, r.proxy.Entrances()[0].Addr.String())
			s := converseIn(metadata.AppendToOutgoingContext(ctx, tt.md...), t, ingress, method).say("hello")
			if err := s.CloseSend(); err != nil {
				t.Fatal(err)
			}
			s.hear(slices.Repeat([]string{"message"}, tt.messages)...)
			s.ends(codes.Unavailable)
			if got := s.Trailer().Get(made); strings.Join(got, "+") != tt.made || len(leaf.seen()) != tt.calls {
				t.Errorf("%d calls, and the caller was told %q; want %d and %q", len(leaf.seen()), got, tt.calls, tt.made)
			}
			if got := s.Trailer().Get("grpc-retry-pushback-ms"); strings.Join(got, "+") != tt.pushed {
				t.Errorf("pushback %q, want %q", got, tt.pushed)
			}
			for _, c := range leaf.seen() {
				if got := c.md.Get(allowance); len(got) != 1 || !strings.HasPrefix(got[0], "0") {
					t.Errorf("the service was told %q", got)
				}
			}
		})
	}
}

func TestWhatAGRPCProgramSaysOfItsOwnAttemptsCountsToo(t *testing.T) {
	for _, messages := range []int{0, 1} {
		app := serveGRPC(t, func(c *rpc) error {
			for range messages {
				_ = c.send("message")
			}
			c.SetTrailer(metadata.Pairs(strings.ToLower(made), "2;final"))
			return grpcstatus.Error(codes.Unavailable, "down")
		})
		r := protect(t, guardOf(app.url, noShed, trustLoop))
		c := call(t, dialGRPC(t, r.addr), "/shop.Payment/Get", "hello", allowance, "3")
		if got := c.last(strings.ToLower(made)); got != "2;final" || c.last("grpc-retry-pushback-ms") != "-1" {
			t.Errorf("after %d messages the caller was told %q: %v", messages, got, c.trailer)
		}
	}
}

// What the service behind a stream that breaks off may have used is in what the caller is told, and the guard knows of
// the end before.
func TestACallerIsToldWhatAStreamThatBreaksOffMayHaveUsed(t *testing.T) {
	heard := make(chan struct{})
	url := rawHTTP2(t, func(f *frames, stream uint32, n int) {
		f.write(headersFrame, endHeaders, stream, block(grpcHead...))
		f.write(dataFrame, 0, stream, message("good"))
		if n == 1 {
			f.write(headersFrame, endHeaders|endStream, stream, block("grpc-status", "0", strings.ToLower(made), "0"))
			return
		}
		hold(t, heard)
		f.write(resetFrame, 0, stream, code(2))
	})
	r := start(t, single([]string{url}, "maxRetries: 3", quickRetry, "retryBudget: {ratio: 1}"))
	cc := dialGRPC(t, r.addr)
	ctx := metadata.AppendToOutgoingContext(t.Context(), allowance, `9;owner="edge"`)
	call(t, cc, "/a.B/C", "x", allowance, `9;owner="edge"`) // shows that the service knows what an allowance is
	c := converseIn(ctx, t, cc, "/a.B/C").say("x").hear("good")
	close(heard)
	c.ends(codes.Internal)
	if got := strings.Join(c.Trailer()[strings.ToLower(made)], ""); !strings.HasPrefix(got, "2") {
		t.Errorf("the service was handed 2 and has said nothing, and the caller was told that %q were made", got)
	}
}
