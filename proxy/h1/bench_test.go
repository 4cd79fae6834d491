package h1_test

import (
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

// A request of ten fields as a browser or an HTTP client library sends it, and a usual
// answer.
const (
	typicalRequest = "GET /api/v1/orders/8812?expand=items&limit=20 HTTP/1.1\r\n" +
		"Host: orders.internal.example:8080\r\n" +
		"User-Agent: python-requests/2.32.3\r\n" +
		"Accept: application/json, text/plain;q=0.9, */*;q=0.8\r\n" +
		"Accept-Encoding: gzip, deflate, br\r\n" +
		"Connection: keep-alive\r\n" +
		"Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n" +
		"X-Request-Id: 2b1f7c1e-5f0e-4f4c-9b3c-1d2e3f405162\r\n" +
		"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n" +
		"Idempotency-Key: 7f6c1c2e\r\n" +
		"Accept-Language: en\r\n" +
		"\r\n"
	typicalResponse = "HTTP/1.1 200 OK\r\n" +
		"Server: nginx\r\n" +
		"Date: Thu, 20 Nov 2025 14:23:00 GMT\r\n" +
		"Content-Type: application/json\r\n" +
		"Content-Length: 1024\r\n" +
		"Connection: keep-alive\r\n" +
		"Cache-Control: no-cache\r\n" +
		"X-Request-Id: 2b1f7c1e-5f0e-4f4c-9b3c-1d2e3f405162\r\n" +
		"\r\n"
)

func BenchmarkHeadEnd(b *testing.B) {
	head := []byte(typicalRequest)
	b.SetBytes(int64(len(head)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := h1.HeadEnd(head, 0); n != len(head) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkRequestParse(b *testing.B) {
	var r h1.Request
	head := []byte(typicalRequest)
	b.SetBytes(int64(len(head)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Parse(head); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResponseParse(b *testing.B) {
	var r h1.Response
	head := []byte(typicalResponse)
	b.SetBytes(int64(len(head)))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Parse(head, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChunked(b *testing.B) {
	var content [1024]byte
	for i := range content {
		content[i] = 'x'
	}
	for _, size := range []struct {
		name string
		n    int
	}{{"1KiB chunks", 1024}, {"16 byte chunks", 16}} {
		b.Run(size.name, func(b *testing.B) {
			var body []byte
			for i := 0; i < len(content); i += size.n {
				body = h1.AppendChunk(body, content[i:i+size.n])
			}
			body = h1.AppendLastChunk(body, nil)
			var c h1.Chunked
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				c.Reset()
				for in, done := body, false; !done; {
					_, n, ended, err := c.Next(in)
					if err != nil {
						b.Fatal(err)
					}
					in, done = in[n:], ended
				}
			}
		})
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	var r h1.Request
	if err := r.Parse([]byte(typicalRequest)); err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = h1.AppendFields(h1.AppendRequest(dst[:0], &r, r.Host, r.Path), r.Fields)
	}
}
