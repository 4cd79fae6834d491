package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/policy/idempotency"
)

func anyKeys(s *suite) {
	keys := []string{
		"a", "A", "a ", " a", "a\x00", "a\x00b", "\x00", "\n", "a\nb", "a\r\nb", "\t", "{a}", "{a}b", "{}", "{}a", "a{",
		"a:b", "a:b:c",
		"'; DROP TABLE keys; --", `"`, `\`, `\x61`, "%61", "%s", "*", "$1", "?", "é", "e\u0301", "\xff", "\xff\xfe",
		"\xc3\x28", "🔑",
		strings.Repeat("k", idempotency.MaxKey-1), strings.Repeat("k", idempotency.MaxKey),
		strings.Repeat("k", idempotency.MaxKey-1) + "l", strings.Repeat("\x00", idempotency.MaxKey),
		strings.Repeat("\n", idempotency.MaxKey),
	}
	tokens := make([]uint64, len(keys))
	for i, key := range keys {
		b := s.begin(key, long)
		if b.State != idempotency.Run || b.TakenOver {
			s.Fatalf("Begin of %q: %s, want run: another key was taken for it", key, b.State)
		}
		tokens[i] = b.Token
	}
	for i, key := range keys {
		s.complete(key, tokens[i], answer(key))
	}
	for _, key := range keys {
		s.replays(key, answer(key), fmt.Sprintf("key %q", key))
	}
}

func badKeys(s *suite) {
	for name, key := range map[string]string{
		"empty": "", "256 bytes": strings.Repeat("k", idempotency.MaxKey+1), "10 MB": strings.Repeat("k", 10<<20),
	} {
		_, err := s.Begin(s.ctx, key, printA, long)
		for method, err := range map[string]error{
			"Begin":    err,
			"Renew":    s.Renew(s.ctx, key, 1, long),
			"Complete": s.Complete(s.ctx, key, 1, answer(""), long),
			"Fail":     s.Fail(s.ctx, key, 1),
		} {
			if !errors.Is(err, idempotency.ErrKey) {
				s.Errorf("%s of a key that is %s: %.200v, want ErrKey", method, name, err)
			} else if len(err.Error()) > 200 {
				s.Errorf("%s of a key that is %s: the error has %d bytes", method, name, len(err.Error()))
			}
		}
	}
}

func answers(s *suite) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, r := range map[string]idempotency.Response{
		"status only":          {Status: 204},
		"empty slices":         {Status: 200, Header: head(), Body: []byte{}},
		"the order of fields":  {Status: 200, Header: head("B", "2", "A", "1", "B", "1", "a", "3", "B", "2")},
		"empty value and name": {Status: 200, Header: head("Empty", "", "", "nameless", "", "")},
		"odd bytes in a field": {Status: 200, Header: head("X", "\x00\n\xff: é", "Y", string(every))},
		"many fields":          {Status: 200, Header: slices.Repeat(head("Set-Cookie", "a=b"), 1000)},
		"a large field":        {Status: 200, Header: head("X", strings.Repeat("x", 100_000))},
		"every byte":           {Status: 400, Body: every},
		"zeros":                {Status: 200, Body: make([]byte, 1000)},
		"text":                 {Status: 409, Header: head("Content-Type", "application/json"), Body: []byte(`{"code":"x"}`)},
		"1 MiB":                {Status: 200, Body: bytes.Repeat(every, 4096)},
		"a strange status":     {Status: 999},
	} {
		token := s.run(name, long)
		s.complete(name, token, r)
		s.replays(name, r, name)
	}
}

// head makes fields of names and values in turn.
func head(namesAndValues ...string) []idempotency.Field {
	fields := []idempotency.Field{}
	for pair := range slices.Chunk(namesAndValues, 2) {
		fields = append(fields, idempotency.Field{Name: pair[0], Value: pair[1]})
	}
	return fields
}

func truncated(s *suite) {
	token := s.run("key", long)
	s.complete("key", token, idempotency.Response{Status: 201, Truncated: true})
	b := s.begin("key", long)
	if b.State != idempotency.Replay || !b.Response.Truncated || b.Response.Status != 201 {
		s.Fatalf("the repeat gets %s with %s, want replay, 201, truncated", b.State, brief(b.Response))
	}
	s.ended("key", token, "a try whose answer was too large")
}

func copies(s *suite) {
	r := answer("as it was")
	token := s.run("key", long)
	s.complete("key", token, r)
	copy(r.Body, "XXXXX")
	r.Header[0].Value = "changed"
	s.replays("key", answer("as it was"), "after the caller changed its own")
}

func cancelled(s *suite) {
	over, cancel := context.WithCancel(s.ctx)
	cancel()
	is := func(method string, err error) {
		s.Helper()
		if !errors.Is(err, context.Canceled) {
			s.Fatalf("%s with a context that is over: %v, want its error", method, err)
		}
	}
	_, err := s.Begin(over, "free", printA, long)
	is("Begin", err)
	s.run("free", long)

	token := s.run("key", long)
	is("Renew", s.Renew(over, "key", token, long))
	is("Complete", s.Complete(over, "key", token, answer("never"), long))
	is("Fail", s.Fail(over, "key", token))
	s.want("key", idempotency.Running, "after methods whose context was over")
	s.complete("key", token, answer("done"))
	_, err = s.Begin(over, "key", printA, long)
	is("Begin of a key that is done", err)
	s.replays("key", answer("done"), "in the end")
}

// brief describes an answer in a line.
func brief(r idempotency.Response) string {
	return fmt.Sprintf("{status %d, truncated %v, %d fields %.200q, body of %d bytes %.200q}",
		r.Status, r.Truncated, len(r.Header), fmt.Sprint(r.Header), len(r.Body), r.Body)
}
