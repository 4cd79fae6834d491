package nearest_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/nearest"
)

func TestTo(t *testing.T) {
	known := []string{"maxRetries", "maxDelay", "jitter", "p99"}
	for word, want := range map[string]string{
		"maxRetrys":              "maxRetries",
		"MAX_RETRIES":            "maxRetries", // other case and separators
		"max-delay":              "maxDelay",
		"jiter":                  "jitter",
		"jtiter":                 "jitter", // two letters swapped count once
		"p90":                    "p99",
		"retries":                "", // three letters are missing, but that is too much for its length
		"":                       "",
		strings.Repeat("x", 100): "",
	} {
		if got := nearest.To(word, known); got != want {
			t.Errorf("To(%q) = %q, want %q", word, got, want)
		}
	}
}
