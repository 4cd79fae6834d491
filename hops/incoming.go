package hops

import (
	"strconv"
	"strings"
	"time"
)

// TimeLimitOf reads a request header that says how long the caller still waits: X-Envoy-Expected-Rq-Timeout-Ms
// (Envoy, milliseconds) or Grpc-Timeout (gRPC over HTTP/2, a number and a unit). name is in any case. False when the
// header is another one or its value is not understood; then the caller waits for ever as far as anybody knows. It
// allocates nothing.
func TimeLimitOf(name, value string) (time.Duration, bool) {
	switch {
	case len(name) == len(TimeLeft) && strings.EqualFold(name, TimeLeft):
		return digits(value, time.Millisecond)
	case len(name) == len(GRPCTimeout) && strings.EqualFold(name, GRPCTimeout):
		return ParseGRPCTimeout(value)
	}
	return 0, false
}

// ParseGRPCTimeout reads the value of grpc-timeout: 1 to 8 digits and a unit, one of H, M, S, m, u and n. It
// allocates nothing.
func ParseGRPCTimeout(value string) (time.Duration, bool) {
	if len(value) < 2 || len(value) > 9 {
		return 0, false
	}
	unit, ok := grpcUnits[value[len(value)-1]]
	if !ok {
		return 0, false
	}
	return digits(value[:len(value)-1], unit)
}

// AppendGRPCTimeout appends d as a value of grpc-timeout: in the smallest unit whose number has 8 digits at most,
// rounded down, so that nobody thinks there is more time than there is, but never below a nanosecond. It allocates
// nothing if dst has room.
func AppendGRPCTimeout(dst []byte, d time.Duration) []byte {
	n, unit := max(int64(d), 1), byte('n')
	for _, next := range [...]struct {
		unit byte
		is   time.Duration
	}{{'u', time.Microsecond}, {'m', time.Millisecond}, {'S', time.Second}, {'M', time.Minute}, {'H', time.Hour}} {
		if n <= 99_999_999 {
			break
		}
		n, unit = int64(d/next.is), next.unit
	}
	return append(strconv.AppendInt(dst, n, 10), unit)
}

var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// digits reads a whole number of units. More than a day is a day: nobody waits longer.
func digits(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" || len(s) > 18 || s[0] == '+' || s[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	const most = 24 * time.Hour
	if n > int64(most/unit) {
		return most, true
	}
	return time.Duration(n) * unit, true
}

// AttemptOf reads a request header that says which attempt of its call a request is, from 1: X-Envoy-Attempt-Count,
// Grpc-Previous-Rpc-Attempts or X-Number-Of-Retry-Attempts. False when the header is another one or its value is not
// understood. It allocates nothing.
func AttemptOf(name, value string) (int, bool) {
	first := 0
	switch {
	case len(name) == len(AttemptCount) && strings.EqualFold(name, AttemptCount):
	case len(name) == len(GRPCAttempts) && strings.EqualFold(name, GRPCAttempts),
		len(name) == len(RestLiAttempts) && strings.EqualFold(name, RestLiAttempts):
		first = 1
	default:
		return 0, false
	}
	return number(value, first)
}
