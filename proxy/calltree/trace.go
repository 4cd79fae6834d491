package calltree

import (
	"encoding/hex"
	"hash/maphash"

	"github.com/abate-go/abate/proxy/h1"
)

// MaxTraces is how many names of a request are looked at. More of them than there are kinds is nothing that anybody
// sends.
const MaxTraces = 4

// requestSeed keeps request ids apart from trace ids.
var requestSeed = maphash.MakeSeed()

// Traces reads the names that a request shares with those that are made for it: W3C's and Zipkin's trace id, which
// are the same to it, and the request id. It writes what they hash to, each once. A name that is not well-formed is
// none.
func Traces(fields []h1.Field, keys *[MaxTraces]uint64) (n int) {
	for _, f := range fields {
		key, ok := traceKey(f)
		if !ok {
			continue
		}
		for _, before := range keys[:n] {
			ok = ok && before != key
		}
		if ok && n < MaxTraces {
			keys[n] = key
			n++
		}
	}
	return n
}

func traceKey(f h1.Field) (key uint64, ok bool) {
	var id [16]byte
	switch len(f.Name) {
	case len("traceparent"):
		ok = f.Is("traceparent") && readTraceparent(f.Value, &id)
	case len("b3"):
		ok = f.Is("b3") && readB3(f.Value, &id)
	case len("x-b3-traceid"):
		if f.Is("x-request-id") && isRequestID(f.Value) {
			return maphash.Bytes(requestSeed, f.Value), true
		}
		ok = f.Is("x-b3-traceid") && readTraceID(f.Value, &id)
	}
	return maphash.Bytes(seed, id[:]), ok
}

// readTraceparent reads the trace id of W3C Trace Context: version, trace id, parent id and flags, in lower case. A
// version that is not known yet may have more behind them.
func readTraceparent(v []byte, id *[16]byte) bool {
	const size = 55
	if len(v) < size || v[2] != '-' || v[35] != '-' || v[52] != '-' || len(v) > size &&
		(v[size] != '-' || text(v[:2]) == "00") {
		return false
	}
	return lowerHex(v[:2]) && text(v[:2]) != "ff" && lowerHex(v[3:35]) && lowerHex(v[36:52]) &&
		text(v[36:52]) != "0000000000000000" &&
		lowerHex(v[53:55]) && readTraceID(v[3:35], id)
}

// readB3 reads the trace id of Zipkin's single field, which stands before the span's. A field that only reports whether
// to sample has none.
func readB3(v []byte, id *[16]byte) bool {
	for i, c := range v {
		if c == '-' {
			return (len(v) == i+17 || len(v) > i+17 && v[i+17] == '-') && isHex(v[i+1:i+17]) && readTraceID(v[:i], id)
		}
	}
	return false
}

// readTraceID reads 16 or 32 hexadecimal digits that are not all 0. The shorter form is the end of the longer.
func readTraceID(v []byte, id *[16]byte) bool {
	if len(v) != 16 && len(v) != 32 {
		return false
	}
	if _, err := hex.Decode(id[16-len(v)/2:], v); err != nil {
		return false
	}
	return *id != [16]byte{}
}

// isRequestID reports whether a request id is one: 8 to 128 visible characters. Shorter ones are hardly different for
// each request.
func isRequestID(v []byte) bool {
	for _, c := range v {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(v) >= 8 && len(v) <= 128
}

func lowerHex(v []byte) bool {
	for _, c := range v {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isHex(v []byte) bool {
	for _, c := range v {
		if lower := c | 0x20; (c < '0' || c > '9') && (lower < 'a' || lower > 'f') {
			return false
		}
	}
	return true
}

// seed keeps the names of traces apart in every process: nobody can choose to share another's.
var seed = maphash.MakeSeed()
