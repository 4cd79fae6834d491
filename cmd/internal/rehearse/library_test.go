package rehearse

import (
	"bytes"
	"strings"
	"testing"
)

// A verdict that cannot fail is worth nothing.
func TestCanaryScenarioFailsWithExitCode1(t *testing.T) {
	var out, errs bytes.Buffer
	code := SimCommand(t.Context(), strings.Fields("--quiet --fast ../../../scenarios/canary/must-fail.yaml"), &out, &errs)
	if code != 1 || !strings.Contains(out.String(), "FAIL") {
		t.Errorf("exit code %d, want 1: %s%s", code, &out, &errs)
	}
}
