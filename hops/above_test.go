package hops_test

import (
	"testing"

	"github.com/abate-go/abate/hops"
)

func TestNumbersOfClientLibrariesAreRead(t *testing.T) {
	for _, c := range []struct {
		name, value string
		is          int // 0: none
	}{
		{"Amz-Sdk-Request", "attempt=2; max=3", 2},
		{"amz-sdk-request", "ttl=20261123T050000Z; attempt=3; max=3", 3},
		{"Amz-Sdk-Request", "max=3", 0},
		{"Amz-Sdk-Request", "attempt=; max=3", 0},
		{"Amz-Sdk-Request", "attempt=-1", 0},
		{"X-Goog-Api-Client", "gccl-invocation-id/x gccl-attempt-count/4 gl-go/1.26", 4},
		{"X-Goog-Api-Client", "gl-go/1.26 gccl/1", 0},
		{"X-Stainless-Retry-Count", "0", 1},
		{"X-Stainless-Retry-Count", "2", 3},
		{"x-retry-attempty", "1", 2},
		{"X-Envoy-Attempt-Count", "2", 2},
		{"grpc-previous-rpc-attempts", "1", 2},
		{"X-Other-Header-Of-Mine", "2", 0},
		{"X-Stainless-Retry-Count", "99999999", 0},
	} {
		if n, ok := hops.NumberOf(c.name, c.value); n != c.is || ok != (c.is > 0) {
			t.Errorf("%s: %s is %d, %v, want %d", c.name, c.value, n, ok, c.is)
		}
	}
}

// FuzzNumberOf: whatever comes, it is a number in range, or nothing.
func FuzzNumberOf(f *testing.F) {
	f.Add("Amz-Sdk-Request", "attempt=2; max=3")
	f.Add("X-Goog-Api-Client", "a gccl-attempt-count/2 b")
	f.Add("X-Retry-Attempty", "1")
	f.Fuzz(func(t *testing.T, name, value string) {
		if n, ok := hops.NumberOf(name, value); ok != (n >= 1) || n > 1_000_001 {
			t.Errorf("%s %q is attempt %d, %v", name, value, n, ok)
		}
	})
}
