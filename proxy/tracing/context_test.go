package tracing_test

import (
	"testing"

	"github.com/abate-go/abate/proxy/tracing"
)

const (
	trace = "0af7651916cd43dd8448eb211c80319c"
	span  = "b7ad6b7169203331"
)

func TestTraceparentIsReadAsW3CHasIt(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		good        bool
		flags       byte
	}{
		{"sampled", "00-" + trace + "-" + span + "-01", true, 1},
		{"not sampled", "00-" + trace + "-" + span + "-00", true, 0},
		{"a random id", "00-" + trace + "-" + span + "-03", true, 3},
		{"flags that nobody knows", "00-" + trace + "-" + span + "-fd", true, 1},
		{"a later version", "cc-" + trace + "-" + span + "-01", true, 1},
		{"a later version with more", "cc-" + trace + "-" + span + "-01-what-comes", true, 1},
		{"a later version that goes on without a dash", "cc-" + trace + "-" + span + "-01.what", false, 0},
		{"the first version with more", "00-" + trace + "-" + span + "-01-what", false, 0},
		{"the version that is none", "ff-" + trace + "-" + span + "-01", false, 0},
		{"no trace", "00-00000000000000000000000000000000-" + span + "-01", false, 0},
		{"no span", "00-" + trace + "-0000000000000000-01", false, 0},
		{"upper case", "00-0AF7651916CD43DD8448EB211C80319C-" + span + "-01", false, 0},
		{"no hexadecimal digit", "00-" + trace + "-b7ad6b716920333g-01", false, 0},
		{"too short", "00-" + trace + "-" + span + "-0", false, 0},
		{"other separators", "00_" + trace + "_" + span + "_01", false, 0},
		{"nothing", "", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, ok := tracing.Parse([]byte(tt.value))
			if ok != tt.good || c.Flags != tt.flags {
				t.Fatalf("%v, %+v", ok, c)
			}
			if ok && (c.Trace.String() != trace || c.Span.String() != span || c.Sampled() != (tt.flags&1 != 0)) {
				t.Errorf("%v %v", c.Trace, c.Span)
			}
		})
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add([]byte("00-" + trace + "-" + span + "-01"))
	f.Add([]byte("cc-" + trace + "-" + span + "-ff-more"))
	f.Fuzz(func(t *testing.T, value []byte) {
		c, ok := tracing.Parse(value)
		if !ok {
			if c != (tracing.Context{}) {
				t.Errorf("%q is none, and says %+v", value, c)
			}
			return
		}
		again, ok := tracing.Parse(c.Append(nil))
		if !ok || again != c {
			t.Errorf("%q is %+v, which is written and read as %+v", value, c, again)
		}
	})
}
