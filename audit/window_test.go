package audit_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
)

func TestAWindowIsATimeAsPrometheusWritesItOfAYearAtMost(t *testing.T) {
	for _, window := range []string{"5m", "1s", "1h30m", "90s", "1d", "2w3d", "1y", "12000ms", "365d"} {
		if err := audit.CheckWindow(window); err != nil {
			t.Error(err)
		}
	}
	for _, window := range []string{"", "0", "0s", "-5m", "100y", "1y1s", "999ms", "5", "5 m", "5m5h", "1.5h", "5min",
		"a", "NaN", "Inf", "99999999999999999999y", "5m])) or vector(1", "5m\n"} {
		err := audit.CheckWindow(window)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "5m or 1h30m") {
			t.Errorf("%q: %v", window, err)
		}
		if files, err := audit.Prometheus(t.Context(), nil, "http://127.0.0.1:1", window); err == nil ||
			len(files) > 0 || !strings.Contains(err.Error(), "look back") {
			t.Errorf("%q was asked for: %v", window, err)
		}
	}
}
