package h2_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/abate-go/abate/proxy/h2"
)

// Every index of the static table means what another implementation says.
func TestStaticTable(t *testing.T) {
	t.Parallel()
	for i := range byte(61) {
		block := []byte{0x80 | (i + 1)}
		want, err := hpack.NewDecoder(4096, nil).DecodeFull(block)
		list, _, ok := h2.NewDecoder().Decode(block, 1000)
		if err != nil || !ok || len(list) != 1 ||
			string(list[0].Name) != want[0].Name || string(list[0].Value) != want[0].Value {
			t.Errorf("index %d: got %s, want %v, %v", i+1, list, want, err)
		}
	}
}

// pick returns a random field: a few names and values often, others once.
func pick(r *rand.Rand) (name, value string) {
	names := []string{"content-type", "te", "x-custom", "user-agent", "authorization", "cookie", "a",
		"grpc-timeout", "x-Mixed"}
	name = names[r.IntN(len(names))]
	switch r.IntN(6) {
	case 0:
		return name, ""
	case 1:
		return name, strings.Repeat("v", r.IntN(5000))
	case 2:
		return name, fmt.Sprint(r.Uint64())
	}
	return name, fmt.Sprintf("value number %d", r.IntN(8))
}

// What the encoder writes, another implementation reads, whatever the size of the table.
func TestEncoderIsUnderstood(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		e, d := h2.NewEncoder(), hpack.NewDecoder(4096, nil)
		for range 200 {
			if r.IntN(20) == 0 {
				for range 1 + r.IntN(3) {
					e.Resize(r.IntN(6000))
				}
			}
			var list []h2.Field
			var want []string
			for range r.IntN(12) {
				name, value := pick(r)
				list = append(list, field(name, value)...)
				want = append(want, strings.ToLower(name)+": "+value)
			}
			got, err := d.DecodeFull(e.Trailer(list))
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, f := range got {
				words = append(words, f.Name+": "+f.Value)
				if secret := f.Name == "authorization" || f.Name == "cookie"; f.Sensitive != secret {
					t.Errorf("%s is sensitive: %t", f.Name, f.Sensitive)
				}
			}
			if !slices.Equal(words, want) {
				t.Fatalf("got %q, want %q", words, want)
			}
		}
	}
}

// What another implementation writes, the decoder reads.
func TestDecoderUnderstands(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var b bytes.Buffer
		e, d := hpack.NewEncoder(&b), h2.NewDecoder()
		for range 200 {
			if r.IntN(20) == 0 {
				e.SetMaxDynamicTableSize(uint32(r.IntN(4097)))
			}
			b.Reset()
			var want []string
			size := 0
			for range r.IntN(12) {
				name, value := pick(r)
				e.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: r.IntN(10) == 0})
				want = append(want, name+": "+value)
				size += len(name) + len(value) + 32
			}
			limit := 100_000
			if r.IntN(10) == 0 {
				limit = r.IntN(2000)
			}
			list, over, ok := d.Decode(b.Bytes(), limit)
			if !ok || over != (size > limit) {
				t.Fatalf("ok: %t, over: %t with %d of %d bytes", ok, over, size, limit)
			}
			if over {
				continue
			}
			var words []string
			for _, f := range list {
				words = append(words, string(f.Name)+": "+string(f.Value))
			}
			if !slices.Equal(words, want) {
				t.Fatalf("got %q, want %q", words, want)
			}
		}
		if d.Held() > 8192 {
			t.Errorf("the table holds %d bytes", d.Held())
		}
	}
}

// A field that is sent often becomes an index; fields that differ each time do not evict it.
func TestRepeatedHeadsAreShort(t *testing.T) {
	t.Parallel()
	e := h2.NewEncoder()
	longest := 0
	for i := range 2000 {
		h := *post("/package.Service/Method")
		h.Fields = field("content-type", "application/grpc", "te", "trailers", "user-agent", "grpc-go/1.80.0",
			"x-request-id", fmt.Sprintf("%016x", i*7919))
		if n := len(e.Request(&h)); i > 10 {
			longest = max(longest, n)
		}
	}
	if longest > 45 {
		t.Errorf("a head that has been sent two thousand times takes %d bytes", longest)
	}
}

// FuzzDecoder compares the decoder with another implementation.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0x82, 0x86, 0x84}, []byte{0x41, 1, 'a', 0xbe})
	f.Add([]byte{0x3f, 0xe1, 0x1f, 0x40, 1, 'a', 1, 'b'}, []byte{0xbe, 0x7e, 1, 'c', 0xbe, 0xbf})
	f.Add([]byte{0x20, 0x3f, 0x09, 0x40, 0x81, 0x1f, 0x82, 0x1c, 0x7f}, []byte{0x10, 1, 'a', 0, 0xff, 0x80, 0x01})
	f.Add([]byte{0x0f, 0x0d, 0x03, '4', '2', '3'}, []byte{0x7f, 0x00, 0x05, 'h', 'e', 'l', 'l', 'o'})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		d := h2.NewDecoder()
		var want []hpack.HeaderField
		other := hpack.NewDecoder(4096, func(f hpack.HeaderField) { want = append(want, f) })
		for _, block := range [][]byte{one, two} {
			want = want[:0]
			_, err := other.Write(block)
			if closed := other.Close(); err == nil {
				err = closed
			}
			list, over, ok := d.Decode(block, 1<<20)
			if d.Held() > 8192 {
				t.Fatalf("the table holds %d bytes", d.Held())
			}
			if over || !ok {
				return // more than maxFields; and it may be stricter
			}
			if err != nil && strings.Contains(err.Error(), "size update") {
				return // RFC 7541 §4.2 allows two of them
			}
			if err != nil {
				t.Fatalf("%x: taken, but %v", block, err)
			}
			if len(list) != len(want) {
				t.Fatalf("%x: %d fields, want %d", block, len(list), len(want))
			}
			for i := range want {
				if string(list[i].Name) != want[i].Name || string(list[i].Value) != want[i].Value {
					t.Fatalf("%x: %s, want %v", block, list[i], want[i])
				}
			}
		}
	})
}

// FuzzEncoder lets another implementation read what the encoder writes.
func FuzzEncoder(f *testing.F) {
	f.Add("name", "value", "Other", "", uint16(4096), uint16(0))
	f.Add("authorization", "secret", "x", strings.Repeat("y", 4000), uint16(0), uint16(5000))
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2 string, size1, size2 uint16) {
		e, d := h2.NewEncoder(), hpack.NewDecoder(4096, nil)
		for i := range 8 {
			if i == 4 {
				e.Resize(int(size1))
				e.Resize(int(size2))
			}
			want := []string{n1, v1, n2, v2, n2, v1}
			list, err := d.DecodeFull(e.Answer(200+i, field(want...)))
			if err != nil || len(list) != 4 || list[0].Value != fmt.Sprint(200+i) {
				t.Fatalf("got %v, %v", list, err)
			}
			for i, f := range list[1:] {
				if !sameName(f.Name, want[2*i]) || f.Value != want[2*i+1] {
					t.Fatalf("got %q: %q, want %q: %q", f.Name, f.Value, want[2*i], want[2*i+1])
				}
			}
		}
	})
}

// sameName reports whether two names are equal but for capitals of ASCII.
func sameName(lower, name string) bool {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return lower == string(b)
}
