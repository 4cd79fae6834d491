package stale_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

// Heads of usual size.
var (
	usualRequest = lines("Host: stock.example", "User-Agent: python-requests/2.32.3", "Accept-Encoding: gzip, deflate",
		"Accept: */*",
		"Connection: keep-alive", "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	usualResponse = lines("Date: Fri, 20 Nov 2026 14:00:00 GMT", "Content-Type: application/json", "Content-Length: 1024",
		"Cache-Control: max-age=60, stale-if-error=600", "Vary: Accept-Encoding",
		"ETag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
		"Server: nginx", "Connection: keep-alive")
)

func TestDecisionsAllocateNothing(t *testing.T) {
	s := stale.New(1 << 20)
	put(s, "/", usualRequest, usualResponse, string(make([]byte, 1024)), noon)
	buf, k := make([]byte, 0, 128), key("/")
	host, path := []byte("stock.example"), []byte("/items?id=1")
	large := lines("Content-Length: 10000000", "Server: x")
	var r *stale.Recorder
	for name, f := range map[string]func(){
		"Asks":   func() { stale.Asks([]byte("GET"), usualRequest) },
		"Key":    func() { buf = stale.AppendKey(buf[:0], "stock", host, path) },
		"Keeps":  func() { s.Keeps(200, usualResponse, 1024) },
		"Get":    func() { s.Get(k, usualRequest, noon, forever) },
		"Miss":   func() { s.Get(host, usualRequest, noon, forever) },
		"Refuse": func() { r = s.Record(k, usualRequest, 503, usualResponse); r.Write(path); r.Commit(noon) },
		"Large":  func() { r = s.Record(k, usualRequest, 200, large) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkAsks(b *testing.B) {
	for _, c := range []struct {
		name, method string
		fields       []h1.Field
	}{
		{"POST", "POST", usualRequest},
		{"GET", "GET", usualRequest},
		{"GETWithCookie", "GET", append(usualRequest[:3:3], lines("Cookie: a=b")...)},
	} {
		b.Run(c.name, func(b *testing.B) {
			method := []byte(c.method)
			b.ReportAllocs()
			for b.Loop() {
				stale.Asks(method, c.fields)
			}
		})
	}
}

func BenchmarkAppendKey(b *testing.B) {
	buf, host, path := make([]byte, 0, 128), []byte("stock.example"), []byte("/items?id=1")
	b.ReportAllocs()
	for b.Loop() {
		buf = stale.AppendKey(buf[:0], "stock", host, path)
	}
}

func BenchmarkKeeps(b *testing.B) {
	s := stale.New(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		s.Keeps(200, usualResponse, 1024)
	}
}

func BenchmarkGet(b *testing.B) {
	s := stale.New(64 << 20)
	for i := range 1000 {
		put(s, fmt.Sprintf("/%d", i), usualRequest, usualResponse, string(make([]byte, 1024)), noon)
	}
	hit, miss := key("/500"), key("/none")
	b.Run("Hit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Get(hit, usualRequest, noon, time.Hour)
		}
	})
	b.Run("Miss", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Get(miss, usualRequest, noon, time.Hour)
		}
	})
	b.Run("HitParallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s.Get(hit, usualRequest, noon, time.Hour)
			}
		})
	})
}

// One whole recording of a response of 1 KiB.
func BenchmarkRecord(b *testing.B) {
	body := make([]byte, 1024)
	record := func(s *stale.Store, k []byte) {
		r := s.Record(k, usualRequest, 200, usualResponse)
		r.Write(body)
		r.Commit(noon)
	}
	b.Run("SameKey", func(b *testing.B) {
		s, k := stale.New(64<<20), key("/")
		b.ReportAllocs()
		for b.Loop() {
			record(s, k)
		}
	})
	b.Run("FullStore", func(b *testing.B) {
		s, k := stale.New(8<<20), make([]byte, 0, 64)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			k = fmt.Appendf(k[:0], "key of resource %d", i)
			record(s, k)
		}
	})
	b.Run("SameKeyParallel", func(b *testing.B) {
		s, k := stale.New(64<<20), key("/")
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				record(s, k)
			}
		})
	})
	b.Run("1MiBIn32KiBPieces", func(b *testing.B) {
		s, k, piece := stale.New(64<<20), key("/"), make([]byte, 32<<10)
		b.SetBytes(31 * 32 << 10)
		b.ReportAllocs()
		for b.Loop() {
			r := s.Record(k, usualRequest, 200, nil)
			for range 31 {
				r.Write(piece)
			}
			r.Commit(noon)
		}
	})
}
