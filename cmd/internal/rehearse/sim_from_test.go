package rehearse

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be played is said at once, all of it, and with what to write.
func TestAnOutageOfFilesThatCannotBePlayedIsRefused(t *testing.T) {
	const shop = "../../../examples/audit/shop"
	for _, words := range [][]string{{"--rate", "0"}, {"--rate", "-1"}, {"--rate", "NaN"}, {"--rate", "+Inf"},
		{"--outage", "0s"}, {"--outage", "-1s", "--rate", "0"}} {
		var out, errs bytes.Buffer
		code := SimCommand(t.Context(), append([]string{"--from", shop}, words...), &out, &errs)
		if code != exitUsage || out.Len() > 0 {
			t.Errorf("%v: exit code %d, %s\n%s", words, code, &errs, &out)
		}
		for i := 0; i < len(words); i += 2 {
			if !strings.Contains(errs.String(), words[i]+": ") || !strings.Contains(errs.String(), "; write ") {
				t.Errorf("%v: nothing of %s in %s", words, words[i], &errs)
			}
		}
	}
	calls := filepath.Join(t.TempDir(), "calls.yaml")
	if err := os.WriteFile(calls, []byte("calls: [{from: web, to: orders}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := SimCommand(t.Context(), []string{"--from", calls, "--rate", "7"}, &out, &errs); code != 0 ||
		!strings.Contains(out.String(), "rate: 7") {
		t.Errorf("exit code %d, %s\n%s", code, &errs, &out)
	}
}
