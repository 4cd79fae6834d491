package tracing_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/abate-go/abate/proxy/tracing"
)

// FuzzAnswersAreReadAsProtocolBuffersAre: whatever a collector answers, the fields are those that Google's package
// finds, up to the first that cannot be read or is a group, which nobody writes any longer.
func FuzzAnswersAreReadAsProtocolBuffersAre(f *testing.F) {
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1<<63)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), "too old")
	whole := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
	whole = protowire.AppendFixed64(protowire.AppendTag(whole, 1<<29-1, protowire.Fixed64Type), 7)
	whole = protowire.AppendFixed32(protowire.AppendTag(whole, 7, protowire.Fixed32Type), 7)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(slices.Clone(whole), 0x0b, 0x0c)) // a group
	f.Add([]byte{0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1})
	f.Fuzz(func(t *testing.T, message []byte) {
		var got, want []string
		tracing.Each(message, func(number int, n uint64, bytes []byte) {
			got = append(got, fmt.Sprintf("%d %d %q", number, n, bytes))
		})
		for len(message) > 0 {
			number, kind, used := protowire.ConsumeTag(message)
			if used < 0 || kind == protowire.StartGroupType || kind == protowire.EndGroupType {
				break
			}
			message = message[used:]
			if used = protowire.ConsumeFieldValue(number, kind, message); used < 0 {
				break
			}
			var n uint64
			var bytes []byte
			switch kind {
			case protowire.VarintType:
				n, _ = protowire.ConsumeVarint(message)
			case protowire.BytesType:
				bytes, _ = protowire.ConsumeBytes(message)
			}
			want = append(want, fmt.Sprintf("%d %d %q", number, n, bytes))
			message = message[used:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
