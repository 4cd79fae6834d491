package grpcconfig_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/topology"
)

func TestKeysMayBeginWithACapitalAsInGoPrograms(t *testing.T) {
	f := read(t, "a.json", `{"methodConfig": [{"name": [{"service": "shop.Orders"}], "retryPolicy": {"MaxAttempts": 4,
"InitialBackoff": ".5s", "MaxBackoff": "10s", "BackoffMultiplier": 2.0,
"RetryableStatusCodes": ["UNAVAILABLE"]}}]}`, "")
	if len(f.Remarks) != 0 || len(f.Policies) != 1 ||
		f.Policies[0].Layer.Tries(topology.Unavailable, topology.Safe).N != 4 {
		t.Errorf("%s", f.YAML())
	}
	f = read(t, "a.json", `{"methodConfig": [{"name": [{}], "retryPolicy": {"MaxAttempt": 4}}]}`, "")
	if !strings.Contains(string(f.YAML()), "did you mean maxAttempts?") {
		t.Errorf("%s", f.YAML())
	}
}
