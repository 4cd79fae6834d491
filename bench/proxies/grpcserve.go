package main

import (
	"context"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// serveEcho is the upstream of gRPC calls: grpc-go, which gives every message back as it came.
func serveEcho(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return newEcho().Serve(l)
}

func newEcho() *grpc.Server {
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawBytes{}), grpc.MaxConcurrentStreams(math.MaxUint32))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Call", Handler: echoCall}},
		Streams:     []grpc.StreamDesc{{StreamName: "Chat", Handler: echoChat, ServerStreams: true, ClientStreams: true}},
	}, nil)
	return s
}

func echoCall(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	message := new([]byte)
	err := decode(message)
	return message, err
}

func echoChat(_ any, stream grpc.ServerStream) error {
	message := new([]byte)
	for {
		if err := stream.RecvMsg(message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
}

// rawBytes passes messages through without looking at them.
type rawBytes struct{}

func (rawBytes) Name() string { return "raw" }

func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// listenHTTP2 serves HTTP/2 without TLS.
func listenHTTP2(addr string, h http.Handler) error {
	s := &http.Server{Addr: addr, Handler: h, Protocols: unencryptedHTTP2(), ErrorLog: log.New(io.Discard, "", 0)}
	return s.ListenAndServe()
}

func unencryptedHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// reverseProxyHTTP2 is the standard library's proxy with HTTP/2 on both sides. It must pass every piece on at once,
// because the peer of a stream may wait for it.
func reverseProxyHTTP2(upstream string) http.Handler {
	to := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     &http.Transport{Protocols: unencryptedHTTP2(), DisableCompression: true},
		BufferPool:    &buffers{},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}
