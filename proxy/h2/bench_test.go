package h2_test

import (
	"io"
	"sync"
	"testing"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// unary answers a call of gRPC: head, message, trailer.
func unary(s *h2.Stream) {
	data, complete := s.Buffered()
	for !complete {
		if _, err := s.Next(core.NoDeadline); err != nil && err != io.EOF {
			return
		}
		data, complete = s.Buffered()
	}
	s.WriteHead(200, answerFields, -1, false)
	s.Write(data, false, core.NoDeadline)
	s.WriteTrailer(answerTrailer, core.NoDeadline)
}

var (
	answerFields  = field("content-type", "application/grpc")
	answerTrailer = field("grpc-status", "0", "grpc-message", "")
	unaryHead     = h2.Head{
		Method: []byte("POST"), Scheme: []byte("http"), Authority: []byte("s.test"), Path: []byte("/echo.Echo/Unary"),
		Fields: field("te", "trailers", "content-type", "application/grpc", "user-agent", "grpc-go/1.80.0",
			"grpc-timeout", "999m"),
		Length: -1,
	}
	unaryBody = make([]byte, 105)
)

// hop passes calls on over a connection, as a proxy does.
func hop(to func() *h2.Conn) func(*h2.Stream) {
	return func(s *h2.Stream) {
		body, complete := s.Buffered()
		if !complete {
			s.Reset(h2.InternalError)
			return
		}
		head := *s.Head()
		up, _, err := to().Open(&head, body, true, core.NoDeadline)
		if err != nil {
			s.Reset(h2.RefusedStream)
			return
		}
		defer up.Close()
		answer, err := up.AwaitHead(in(patience))
		if err != nil {
			return
		}
		s.WriteHead(answer.Status, answer.Fields, -1, false)
		for {
			p, err := up.Next(in(patience))
			if err != nil {
				break
			}
			s.Write(p, false, in(patience))
		}
		s.WriteTrailer(up.Trailer(), core.NoDeadline)
	}
}

// call makes one call, and reports whether it went well.
func call(c *h2.Conn) bool {
	s, _, err := c.Open(&unaryHead, unaryBody, true, core.NoDeadline)
	if err != nil {
		return false
	}
	defer s.Close()
	head, err := s.AwaitHead(in(patience))
	if err != nil || head.Status != 200 {
		return false
	}
	n := 0
	for {
		p, err := s.Next(in(patience))
		if err == io.EOF {
			return n == len(unaryBody) && len(s.Trailer()) == 2
		}
		if err != nil {
			return false
		}
		n += len(p)
	}
}

func benchmark(b *testing.B, callers int, hops bool) {
	addr := serve(b, &h2.Config{}, unary)
	if hops {
		up := dial(b, addr, &h2.Config{})
		addr = serve(b, &h2.Config{}, hop(func() *h2.Conn { return up }))
	}
	c := dial(b, addr, &h2.Config{})
	if !call(c) { // the peers' settings have come with the answer
		b.Fatal("no answer")
	}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range b.N/callers + min(1, i) {
				if !call(c) {
					b.Error("a call failed")
					return
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkUnaryAlone(b *testing.B) { benchmark(b, 1, false) }
func BenchmarkUnary50(b *testing.B)    { benchmark(b, 50, false) }
func BenchmarkHopAlone(b *testing.B)   { benchmark(b, 1, true) }
func BenchmarkHop50(b *testing.B)      { benchmark(b, 50, true) }
