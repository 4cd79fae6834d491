package idempotency_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/abate-go/abate/policy/idempotency"
)

type fields = []idempotency.Field

func field(name, value string) idempotency.Field { return idempotency.Field{Name: name, Value: value} }

func TestAnswersAreReadAsTheyWereWritten(t *testing.T) {
	for _, r := range []idempotency.Response{
		{},
		{Status: 201, Header: fields{field("B", "1"), field("A", ""), field("B", "2")}, Body: []byte("body")},
		{Status: -1, Body: []byte{0}},
		{Status: math.MaxInt32, Header: slices.Repeat(fields{field("", "")}, 500)},
		{Status: 413, Truncated: true},
	} {
		b := r.AppendTo([]byte("before"))
		got, err := idempotency.ParseResponse(bytes.TrimPrefix(b, []byte("before")))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(r) {
			t.Errorf("%v, %v; want %v", got, err, r)
		}
		if cap(got.Body) != len(got.Body) {
			t.Error("an append to the body would write into what is stored")
		}
	}
	large := idempotency.Response{Status: 200, Header: fields{field("A", "b")}, Body: []byte("too large"), Truncated: true}
	if got, err := idempotency.ParseResponse(large.AppendTo(nil)); err != nil || got.Status != 200 || !got.Truncated ||
		got.Header != nil || got.Body != nil {
		t.Errorf("%v, %v; want the status and that it was too large", got, err)
	}
}

// What an earlier version stored has to be read by later ones.
func TestTheStoredFormStays(t *testing.T) {
	r := idempotency.Response{Status: 201, Header: fields{field("A", "bc")}, Body: []byte("body")}
	if got, want := string(r.AppendTo(nil)), "\x01\x92\x03\x01\x01\x02Abcbody"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Truncated = true
	if got, want := string(r.AppendTo(nil)), "\x02\x92\x03"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGarbageIsNoAnswer(t *testing.T) {
	for _, b := range []string{
		"", "\x00", "\x01", "\x02", "\x03\x92\x03", "{}", "\x01\x92", "\x01\x92\x03", "\x02\x92\x03more", "\x01\x92\x03\x01",
		"\x01\x92\x03\x01\x01",
		"\x01\x92\x03\x01\x01\x02Ab", "\x01\x92\x03\x02\x01\x01\x01\x01ABC",
		"\x01\x92\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"\x01\x92\x03\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01A", "\x01\x92\x03\x03\x02\x02AAAA",
		"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", // a status of 65 bits
	} {
		if r, err := idempotency.ParseResponse([]byte(b)); err == nil {
			t.Errorf("%q is read as %v", b, r)
		}
	}
}

func FuzzParseResponse(f *testing.F) {
	f.Add(idempotency.Response{
		Status: 201, Header: fields{field("A", "bc"), field("", "")}, Body: []byte("body"),
	}.AppendTo(nil))
	f.Add(idempotency.Response{Status: 500, Truncated: true}.AppendTo(nil))
	f.Add([]byte("\x01\x92\x03\x02\x01\x01\x01\x01ABC"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := idempotency.ParseResponse(b)
		if err != nil {
			return
		}
		again, err := idempotency.ParseResponse(r.AppendTo(nil))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(r) {
			t.Fatalf("%v comes back as %v, %v", r, again, err)
		}
	})
}
