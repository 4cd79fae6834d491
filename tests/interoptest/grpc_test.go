package interoptest_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// standard are the cases of gRPC's interoperability test that need no cloud, by their names there.
var standard = []struct {
	name string
	run  func(ctx context.Context, conn *grpc.ClientConn)
}{
	{"empty_unary", client(interop.DoEmptyUnaryCall)},
	{"large_unary", client(interop.DoLargeUnaryCall)},
	{"client_streaming", client(interop.DoClientStreaming)},
	{"server_streaming", client(interop.DoServerStreaming)},
	{"ping_pong", client(interop.DoPingPong)},
	{"empty_stream", client(interop.DoEmptyStream)},
	{"timeout_on_sleeping_server", client(interop.DoTimeoutOnSleepingServer)},
	{"cancel_after_begin", client(interop.DoCancelAfterBegin)},
	{"cancel_after_first_response", client(interop.DoCancelAfterFirstResponse)},
	{"status_code_and_message", client(interop.DoStatusCodeAndMessage)},
	{"special_status_message", client(interop.DoSpecialStatusMessage)},
	{"custom_metadata", client(interop.DoCustomMetadata)},
	{"unimplemented_method", interop.DoUnimplementedMethod},
	{"unimplemented_service", func(ctx context.Context, conn *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(conn))
	}},
	{"pick_first_unary", func(ctx context.Context, conn *grpc.ClientConn) {
		interop.DoPickFirstUnary(ctx, testgrpc.NewTestServiceClient(conn))
	}},
	{"rpc_soak", func(ctx context.Context, conn *grpc.ClientConn) {
		interop.DoSoakTest(ctx, interop.SoakTestConfig{
			RequestSize: 271828, ResponseSize: 314159, PerIterationMaxAcceptableLatency: patience, OverallTimeout: patience,
			ServerAddr: conn.Target(),
			NumWorkers: 4, Iterations: 20, ChannelForTest: func() (*grpc.ClientConn, func()) { return conn, func() {} },
		})
	}},
}

// client has a case of the test use conn.
func client(test func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption)) func(
	context.Context, *grpc.ClientConn) {
	return func(ctx context.Context, conn *grpc.ClientConn) { test(ctx, testgrpc.NewTestServiceClient(conn)) }
}

func TestGRPCsOwnInteroperabilityTestPassesInEveryArrangement(t *testing.T) {
	all := new(counted)
	t.Cleanup(func() { t.Logf("%d cases passed, %d failed", all.passed, all.failed) })
	for _, m := range manners {
		for _, a := range played() {
			t.Run(m.name+"/"+a.name, func(t *testing.T) {
				addr, options := a.begin(t, m)
				conn := dial(t, addr, options...)
				for _, c := range standard {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					said := verdict(func() { c.run(ctx, conn) })
					// On a busy machine the answer may be there before gRPC's own client looks for the end of the context.
					for n := 0; n < 3 && c.name == "cancel_after_begin" && strings.Contains(said, "got error code 0"); n++ {
						said = verdict(func() { c.run(ctx, conn) })
					}
					cancel()
					if all.note(said == ""); said != "" {
						t.Errorf("%s: %s", c.name, said)
					}
				}
			})
		}
	}
}

// The same with messages that are compressed, and many calls of all kinds at once on one connection.
func TestCompressedAndManyCallsAtOncePassInEveryArrangement(t *testing.T) {
	zipped := grpc.UseCompressor(gzip.Name)
	for _, m := range manners {
		for _, a := range played() {
			t.Run(m.name+"/"+a.name, func(t *testing.T) {
				addr, options := a.begin(t, m)
				conn := dial(t, addr, options...)
				tc := testgrpc.NewTestServiceClient(conn)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				var wg sync.WaitGroup
				for i := range 8 {
					for name, test := range map[string]func(){
						"large_unary":      func() { interop.DoLargeUnaryCall(ctx, tc, zipped) },
						"client_streaming": func() { interop.DoClientStreaming(ctx, tc, zipped) },
						"server_streaming": func() { interop.DoServerStreaming(ctx, tc, zipped) },
						"ping_pong":        func() { interop.DoPingPong(ctx, tc, zipped) },
						"empty_stream":     func() { interop.DoEmptyStream(ctx, tc, zipped) },
						"custom_metadata":  func() { interop.DoCustomMetadata(ctx, tc, zipped) },
					} {
						wg.Go(func() {
							if said := verdict(test); said != "" {
								t.Errorf("%s, %d: %s", name, i, said)
							}
						})
					}
				}
				wg.Wait()
			})
		}
	}
}
