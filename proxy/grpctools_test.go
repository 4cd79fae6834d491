package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// rawCodec is for of messages that are bytes: *[]byte.
type rawCodec struct{}

func (rawCodec) Name() string                    { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(b []byte, v any) error { *v.(*[]byte) = slices.Clone(b); return nil }

// rpc is one call as a service sees it.
type rpc struct {
	grpc.ServerStream
	method string
	n      int // it is the nth that the service gets, from 1
	md     metadata.MD
}

// receive waits for a message; io.EOF when the client has sent all.
func (c *rpc) receive() (string, error) {
	var b []byte
	err := c.RecvMsg(&b)
	return string(b), err
}

// all receives all messages.
func (c *rpc) all() (got []string) {
	for {
		m, err := c.receive()
		if err != nil {
			return got
		}
		got = append(got, m)
	}
}

func (c *rpc) send(message string) error {
	b := []byte(message)
	return c.SendMsg(&b)
}

// first is a field of the call's metadata, "" if it has none.
func (c *rpc) first(name string) string {
	if v := c.md.Get(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// grpcService is a real server of gRPC.
type grpcService struct {
	url    string // as for upstreams
	server *grpc.Server
	mu     sync.Mutex
	calls  []*rpc
}

// serveGRPC runs one that answers all methods with serve.
func serveGRPC(t testing.TB, serve func(c *rpc) error, options ...grpc.ServerOption) *grpcService {
	t.Helper()
	l := listen(t)
	s := &grpcService{url: "h2c://" + l.Addr().String()}
	s.server = grpc.NewServer(append(options, grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			c := &rpc{ServerStream: stream}
			c.method, _ = grpc.MethodFromServerStream(stream)
			c.md, _ = metadata.FromIncomingContext(stream.Context())
			s.mu.Lock()
			s.calls = append(s.calls, c)
			c.n = len(s.calls)
			s.mu.Unlock()
			return serve(c)
		}))...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.server.Serve(l) // ends with Stop
	}()
	t.Cleanup(func() {
		s.server.Stop()
		<-done
	})
	return s
}

// seen is the calls so far.
func (s *grpcService) seen() []*rpc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// repeatAll sends every message back.
func repeatAll(c *rpc) error {
	for {
		m, err := c.receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.send(m); err != nil {
			return err
		}
	}
}

// failingFirst answers the first n calls with err, and those after with what they sent.
func failingFirst(n int, err error) func(*rpc) error {
	return func(c *rpc) error {
		if c.n <= n {
			return err
		}
		return repeatAll(c)
	}
}

func dialGRPC(t testing.TB, addr string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})),
		grpc.WithDisableRetry(),
	}, options...)
	cc, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// called is how a unary call ended.
type called struct {
	reply         string
	code          codes.Code
	message       string
	head, trailer metadata.MD
}

// last is a field of the trailer, or of a head without one; "" if there is none.
func (c called) last(name string) string {
	for _, md := range []metadata.MD{c.trailer, c.head} {
		if v := md.Get(name); len(v) > 0 {
			return v[0]
		}
	}
	return ""
}

// call makes a unary call through the proxy. more are metadata, in pairs.
func call(t testing.TB, cc *grpc.ClientConn, method, message string, more ...string) (c called) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return callIn(ctx, cc, method, message, more...)
}

func callIn(ctx context.Context, cc *grpc.ClientConn, method, message string, more ...string) (c called) {
	in, out := []byte(message), []byte(nil)
	err := cc.Invoke(metadata.AppendToOutgoingContext(ctx, more...), method, &in, &out, grpc.Header(&c.head),
		grpc.Trailer(&c.trailer))
	s := grpcstatus.Convert(err)
	c.reply, c.code, c.message = string(out), s.Code(), s.Message()
	return c
}

// conversation is a stream of a client.
type conversation struct {
	t testing.TB
	grpc.ClientStream
}

// converse begins a stream that goes both ways.
func converse(t testing.TB, cc *grpc.ClientConn, method string) *conversation {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return converseIn(ctx, t, cc, method)
}

func converseIn(ctx context.Context, t testing.TB, cc *grpc.ClientConn, method string) *conversation {
	t.Helper()
	s, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	return &conversation{t, s}
}

func (c *conversation) say(messages ...string) *conversation {
	c.t.Helper()
	for _, m := range messages {
		b := []byte(m)
		if err := c.SendMsg(&b); err != nil {
			if err == io.EOF { // the call has ended: how, only receiving tells
				err = c.RecvMsg(&b)
			}
			c.t.Fatalf("sending: %v", err)
		}
	}
	return c
}

// hear waits for messages.
func (c *conversation) hear(want ...string) *conversation {
	c.t.Helper()
	for _, w := range want {
		var b []byte
		if err := c.RecvMsg(&b); err != nil || string(b) != w {
			c.t.Fatalf("got %.50q, %v; want %.50q", b, err, w)
		}
	}
	return c
}

// ends waits for the end, which must have that code.
func (c *conversation) ends(want codes.Code) error {
	c.t.Helper()
	var b []byte
	err := c.RecvMsg(&b)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if grpcstatus.Code(err) != want {
		c.t.Errorf("ended with %v after %.50q; want %v", err, b, want)
	}
	return err
}

// refusing is the address of a port where nobody listens.
func refusing(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// keyed is metadata that makes any call repeatable.
var keyed = []string{"x-idempotency-key", "k"}

// backHome reports what is left of a time limit as a service sees it.
func backHome(c *rpc) time.Duration {
	until, ok := c.Context().Deadline()
	if !ok {
		return -1
	}
	return time.Until(until)
}

func unavailable(format string, args ...any) error {
	return grpcstatus.Error(codes.Unavailable, fmt.Sprintf(format, args...))
}
