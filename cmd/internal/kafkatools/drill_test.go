package kafkatools

import (
	"strings"
	"testing"
)

func TestDrillKafkaWords(t *testing.T) {
	tests := []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"-h", 0, "Usage: abate drill kafka", ""},
		{"--print-policy", 0, "tiers: [500ms, 1s, 2s]", ""},
		{"--rate 5 --outage 0s", 2, "", "outage: 0s is too short"},
		{"--rate 5 --outage 0s", 2, "", "rate: 5 is out of range"},
		{"--rate 5 --after 10s", 2, "", "abate drill kafka: rate: 5 is out of range; allowed: 10 to 2000 messages per " +
			"second\n\"abate drill"},
		{"--rate fast", 2, "", "invalid value \"fast\""},
		{"--act guarded", 2, "", "flag provided but not defined: -act"},
		{"storm.yaml", 2, "", "\"storm.yaml\" is not expected"},
		{"--quiet --brokers 127.0.0.1:1", 1, "", "no broker answers at 127.0.0.1:1"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := DrillKafkaCommand(t.Context(), strings.Fields(tt.args), &stdout, &stderr)
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) ||
				!strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit code %d, want %d\n%s\n%s", code, tt.code, stdout.String(), stderr.String())
			}
		})
	}
}

// Both halves of what is printed are policy files.
func TestDrillKafkaPoliciesCanBeChecked(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := DrillKafkaCommand(t.Context(), []string{"--print-policy"}, &stdout, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	if n := strings.Count(stdout.String(), "\nservices:\n"); n != 2 {
		t.Errorf("%d policies", n)
	}
}
