package rehearse

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/policyfile"
)

const small = "name: small\nduration: 5s\nwarmUp: 0s\nclients: {shop: {rate: 20, patience: 2s, calls: [pay]}}\n" +
	"services: {pay: {workers: 5, serviceTime: 50ms}}\nfaults: [{surge: shop, at: 1s, for: 1s, factor: 5}]\n"

func TestTuneWritesAPolicyAndAPage(t *testing.T) {
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	if err := os.WriteFile(file("small.yaml"), []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := TuneCommand(t.Context(), []string{file("small.yaml"), "--policy", file("policy.yaml"),
		"--html", file("page.html"), "--budget", "60", "--copies", "0", "--systems", "0", "--quiet",
		"--expect", "collapse < 10%"}, &out, &errs)
	if code > 1 || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	policy, err := os.ReadFile(file("policy.yaml"))
	if err == nil {
		_, err = policyfile.Parse("policy.yaml", policy)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, policy)
	}
	page, err := os.ReadFile(file("page.html"))
	if err != nil || !bytes.Contains(page, []byte("</html>")) || !strings.Contains(out.String(), "what is bad") {
		t.Errorf("%v\n%s\n%s", err, page, out.String())
	}
	if strings.Contains(out.String(), "defaults:") {
		t.Errorf("the policy is printed, too:\n%s", out.String())
	}
}

func TestTuneReportsAllMistakesAtOnce(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"nowhere.yaml", "--budget", "0", "--objective", "speed >", "--expect", "goodput", "--seed", "x",
		"--policy", "nowhere.yaml", "--from", "none.yaml"}
	if code := TuneCommand(t.Context(), args, &out, &errs); code != exitUsage || out.Len() > 0 {
		t.Errorf("exit code %d, %q", code, out.String())
	}
	for _, want := range []string{"nowhere.yaml", "budget", "speed", "goodput", "seed", "would be overwritten",
		"none.yaml", "nothing was run"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("no %q in:\n%s", want, errs.String())
		}
	}
	if strings.Contains(errs.String(), "abate sim:") {
		t.Errorf("another command speaks:\n%s", errs.String())
	}
	errs.Reset()
	code := TuneCommand(t.Context(), nil, &out, &errs)
	if code != exitUsage || !strings.Contains(errs.String(), "no scenario") {
		t.Errorf("exit code %d:\n%s", code, errs.String())
	}
	code = TuneCommand(t.Context(), []string{"-h"}, &out, &errs)
	if code != 0 || !strings.Contains(out.String(), "--budget N") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
