package tracing_test

import (
	"encoding/hex"
	"log/slog"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/tracing"
)

// tracer is one that sends nothing before the test ends.
func tracer(t *testing.T, s tracing.Sampler) *tracing.Tracer {
	t.Helper()
	tr, err := tracing.Start(tracing.Settings{File: t.TempDir() + "/spans.jsonl", Sampler: s},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close(t.Context()) })
	return tr
}

// id is a trace id whose last 8 bytes are these.
func id(t *testing.T, digits string) (id tracing.TraceID) {
	t.Helper()
	if _, err := hex.Decode(id[8:], []byte(digits)); err != nil {
		t.Fatal(err)
	}
	id[0] = 1
	return id
}

// A half of all traces is decided by the id as the SDKs of OpenTelemetry do it: the last 8 bytes, without the lowest
// bit, as a share of all.
func TestWhoeverRecordsAShareAgreesOnWhich(t *testing.T) {
	for name, want := range map[string]bool{
		"parentbased_traceidratio 0.5 0000000000000001": true, "parentbased_traceidratio 0.5 7fffffffffffffff": true,
		"parentbased_traceidratio 0.5 8000000000000000": false, "parentbased_traceidratio 0.5 ffffffffffffffff": false,
		"traceidratio 0.25 3fffffffffffffff": true, "traceidratio 0.25 4000000000000000": false,
		"traceidratio 1 ffffffffffffffff": true, "traceidratio 0 0000000000000001": false,
		"always_on - ffffffffffffffff": true, "always_off - 0000000000000001": false,
	} {
		words := strings.Fields(name)
		s, err := tracing.ParseSampler(words[0], strings.Trim(words[1], "-"))
		if err != nil {
			t.Fatal(err)
		}
		s.Parent = false
		parent := tracing.Context{Trace: id(t, words[2]), Span: tracing.NewSpan()}
		if own, recorded := tracer(t, s).Join(parent, true, true); recorded != want || own.Sampled() != want {
			t.Errorf("%s: recorded %v, flags %x", name, recorded, own.Flags)
		}
	}
}

func TestTheSpanAboveDecidesIfItIsTrusted(t *testing.T) {
	always, never := tracing.Sampler{Ratio: 1, Parent: true}, tracing.Sampler{Parent: true}
	for _, tt := range []struct {
		name         string
		s            tracing.Sampler
		flags        byte
		has, trusted bool
		want         bool
	}{
		{"it is recorded", never, 1, true, true, true},
		{"it is not", always, 0, true, true, false},
		{"a stranger's is", never, 1, true, false, false},
		{"a stranger's is not", always, 0, true, false, true},
		{"there is none, of all", always, 0, false, true, true},
		{"there is none, of none", never, 0, false, true, false},
		{"nobody asks it", tracing.Sampler{}, 1, true, true, false},
	} {
		parent := tracing.Context{}
		if tt.has {
			parent = tracing.Context{Trace: id(t, "0000000000000001"), Span: tracing.NewSpan(), Flags: tt.flags}
		}
		own, recorded := tracer(t, tt.s).Join(parent, tt.has, tt.trusted)
		if recorded != tt.want || own.Sampled() != tt.want {
			t.Errorf("%s: recorded %v, flags %x", tt.name, recorded, own.Flags)
		}
		if tt.has && own.Trace != parent.Trace || (own.Span == parent.Span) != (tt.has && !tt.want) ||
			own.Trace == (tracing.TraceID{}) {
			t.Errorf("%s: %+v is under %+v", tt.name, own, parent)
		}
	}
}

// Strangers could choose ids that are always recorded.
func TestAStrangersTraceIDDoesNotDecide(t *testing.T) {
	tr, n := tracer(t, tracing.Sampler{Ratio: 0.5}), 0
	for range 1000 {
		if _, recorded := tr.Join(tracing.Context{Trace: id(t, "0000000000000001"), Span: tracing.NewSpan()}, true,
			false); recorded {
			n++
		}
	}
	if n < 350 || n > 650 { // 9 standard deviations
		t.Errorf("%d of 1000 are recorded, want about a half", n)
	}
}

func TestASamplerIsReadAndSaysWhatItIs(t *testing.T) {
	for text, want := range map[string]string{
		"always_on": "always_on", "always_off": "always_off", "traceidratio 0.01": "traceidratio 0.01",
		"parentbased_always_on": "parentbased_always_on", "parentbased_traceidratio": "parentbased_always_on",
		"parentbased_traceidratio 0.1": "parentbased_traceidratio 0.1",
		"sometimes":                    `"sometimes" is no sampler: write one of `,
		"traceidratio 2":               `"2" is no share: write a number from 0 to 1`,
		"traceidratio NaN":             `"NaN" is no share`,
	} {
		name, arg, _ := strings.Cut(text, " ")
		s, err := tracing.ParseSampler(name, arg)
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
