package tracing

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Sampler decides which calls are recorded. The zero Sampler records none.
type Sampler struct {
	// Ratio is the share of traces that are recorded, of those that nobody above has decided about, from 0 to 1. It goes
	// by the trace id as OpenTelemetry's SDKs do, so that all who record a share agree on which.
	Ratio float64
	// Parent reports whether what the span above says goes first. A peer that is not trusted says nothing: who sends
	// requests from outside must not be able to have all of them recorded.
	Parent bool
}

// Samplers are the names that OTEL_TRACES_SAMPLER may have.
var samplers = []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
	"parentbased_traceidratio"}

// ParseSampler reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG.
func ParseSampler(name, arg string) (s Sampler, err error) {
	base, parent := strings.CutPrefix(name, "parentbased_")
	switch s.Parent = parent; base {
	case "always_on":
		s.Ratio = 1
	case "always_off":
	case "traceidratio":
		s.Ratio = 1
		if arg != "" {
			s.Ratio, err = ParseRatio(arg)
		}
	default:
		return Sampler{}, fmt.Errorf("%q is no sampler: write one of %s", name, strings.Join(samplers, ", "))
	}
	return s, err
}

// ParseRatio reads a share.
func ParseRatio(text string) (float64, error) {
	r, err := strconv.ParseFloat(text, 64)
	if err != nil || !(r >= 0 && r <= 1) {
		return 0, fmt.Errorf("%q is no share: write a number from 0 to 1, for example 0.01 for one call in a hundred", text)
	}
	return r, nil
}

// String is the sampler by its name, with what it is given.
func (s Sampler) String() string {
	name := ""
	if s.Parent {
		name = "parentbased_"
	}
	switch s.Ratio {
	case 0:
		return name + "always_off"
	case 1:
		return name + "always_on"
	}
	return name + "traceidratio " + strconv.FormatFloat(s.Ratio, 'g', -1, 64)
}

// samples decides about a call. parent is the span above, if there is one; trusted reports whether it counts. Where a
// stranger has chosen the trace id, chance decides and not the id.
func (s Sampler) samples(parent Context, has, trusted bool, id TraceID) bool {
	switch {
	case has && trusted && s.Parent:
		return parent.Sampled()
	case s.Ratio <= 0:
		return false
	case s.Ratio >= 1:
		return true
	}
	n := binary.BigEndian.Uint64(id[8:])
	if has && !trusted {
		n = rand.Uint64()
	}
	return n>>1 < uint64(s.Ratio*(math.MaxInt64+1.0))
}
