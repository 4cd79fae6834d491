package stale_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

const (
	forever = 1000 * time.Hour
	noon    = 12 * time.Hour // some time on the caller's clock
)

// lines makes fields of "Name: value" lines.
func lines(lines ...string) []h1.Field {
	fields := make([]h1.Field, len(lines))
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		fields[i] = h1.Field{Name: []byte(name), Value: []byte(strings.Trim(value, " \t"))}
	}
	return fields
}

func text(fields []h1.Field) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(string(f.Name) + ": " + string(f.Value) + "\n")
	}
	return b.String()
}

func key(path string) []byte {
	return stale.AppendKey(nil, "stock", []byte("stock.example"), []byte(path))
}

// put stores a response as the proxy would.
func put(s *stale.Store, path string, request, response []h1.Field, body string, at time.Duration) {
	r := s.Record(key(path), request, 200, response)
	for len(body) > 0 {
		n := min(len(body), 32<<10)
		r.Write([]byte(body[:n]))
		body = body[n:]
	}
	r.Commit(at)
}

func body(s *stale.Store, path string, request []h1.Field, now time.Duration) string {
	e, ok := s.Get(key(path), request, now, forever)
	if !ok {
		return "nothing"
	}
	return string(e.Body)
}

func expect(t *testing.T, s *stale.Store, path string, request []h1.Field, want string) {
	t.Helper()
	if got := body(s, path, request, noon); got != want {
		t.Errorf("%s with %q: got %q, want %q", path, text(request), got, want)
	}
}
