package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy"
)

// among is a request for s.test with a field in the middle of others.
func among(field string) string {
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("X-Other-%d: %d", i, i))
	}
	lines = slices.Insert(lines, 10, field)
	return "GET / HTTP/1.1\r\nHost: s.test\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// What the proxy replaces, reads or leaves to the proxy before it, it finds among other fields, however it is spelled;
// and the others stay as they are, in their order.
func TestFieldsAreFoundAmongOthersHoweverTheyAreSpelled(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		gateway     bool
		kept        bool   // it goes on as it is
		want        string // in what the service gets, in lower case
	}{
		{name: "X-Envoy-Attempt-Count", value: "3", want: "x-envoy-attempt-count: 3"},
		{name: "X-Envoy-Expected-Rq-Timeout-Ms", value: "86400001", want: "x-envoy-expected-rq-timeout-ms: "},
		{name: "Abate-Retry-Allowance", value: "2; x=1", want: "abate-retry-allowance: "},
		{name: "X-Goog-Api-Client", value: "gccl-attempt-count/3", kept: true, want: "x-envoy-attempt-count: 3"},
		{name: "Amz-Sdk-Request", value: "attempt=3", kept: true, want: "x-envoy-attempt-count: 3"},
		{name: "X-Stainless-Retry-Count", value: "2", kept: true, want: "x-envoy-attempt-count: 3"},
		{name: "X-Retry-Attempty", value: "2", kept: true, want: "x-envoy-attempt-count: 3"},
		{name: "X-Number-Of-Retry-Attempts", value: "2", kept: true, want: "x-envoy-attempt-count: 3"},
		{name: "X-Forwarded-Proto", value: "https", gateway: true, kept: true, want: "x-forwarded-host: s.test"},
		{name: "X-Forwarded-Host", value: "edge.test", gateway: true, kept: true, want: "x-forwarded-proto: http"},
	} {
		for _, name := range []string{tt.name, strings.ToLower(tt.name), strings.ToUpper(tt.name)} {
			t.Run(name, func(t *testing.T) {
				s := inTurn(t, ok(""))
				r := start(t, single([]string{s.url}, "attemptTimeout: 5s"), func(c *proxy.Config) {
					if tt.gateway {
						asGateway(c)
					}
				})
				field := name + ": " + tt.value
				if a := r.dial().send(among(field)).answer(); a.status != 200 {
					t.Fatal(a.status)
				}
				got := strings.Split(s.seen()[0], "\r\n")
				names := slices.DeleteFunc(slices.Clone(got), func(line string) bool {
					return !strings.HasPrefix(strings.ToLower(line), strings.ToLower(name)+":")
				})
				if len(names) != 1 || tt.kept != slices.Contains(got, field) && name != tt.name {
					t.Errorf("sent on as %q", names)
				}
				if !strings.Contains("\r\n"+strings.ToLower(s.seen()[0]), "\r\n"+tt.want) {
					t.Errorf("%q not in %q", tt.want, got)
				}
				others := slices.DeleteFunc(got, func(line string) bool { return !strings.HasPrefix(line, "X-Other-") })
				if len(others) != 20 || !slices.IsSortedFunc(others, func(a, b string) int { return len(a) - len(b) }) {
					t.Errorf("the others became %q", others)
				}
			})
		}
	}
}

// A request that has been here before is known by Via in any case.
func TestALoopIsFoundAmongOtherFields(t *testing.T) {
	s := inTurn(t, ok(""))
	r := start(t, single([]string{s.url}))
	r.dial().send(among("A: b")).answer()
	_, via, _ := strings.Cut(s.seen()[0], "Via: ")
	via, _, _ = strings.Cut(via, "\r\n")
	for _, name := range []string{"Via", "via", "VIA"} {
		if a := r.dial().send(among(name + ": 1.1 other, " + via)).answer(); a.status != 508 {
			t.Errorf("%s: %d, want 508", name, a.status)
		}
	}
}
