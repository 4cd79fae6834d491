package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
)

// What the project writes itself has no words that do nothing, and none that a program would refuse.
func TestWhatIsExportedHasNoSettingWithoutEffect(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "examples", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range exporter.Formats {
		text, losses, err := audit.Export(f, importer.File{Name: "policy.yaml", Data: data}, nil)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		ext := map[string]string{"grpc": "json", "nginx": "conf", "haproxy": "cfg"}[f.Name]
		if ext == "" {
			ext = "yaml"
		}
		r := audit.Run([]importer.File{{Name: "exported." + ext, Data: text}}, audit.Options{})
		for _, finding := range r.Findings {
			one := f.Name == "nginx" && strings.Contains(finding.Message, "the upstream has one") // which the losses say, too
			if strings.HasPrefix(finding.Rule, "F60") && !one {
				t.Errorf("%s: %s: %s %s\n%s", f.Name, finding.At, finding.Rule, finding.Message, text)
			}
		}
		if lost := audit.LossText(losses); f.Name == "haproxy" && strings.Contains(lost, "ends when its caller leaves") {
			t.Errorf("HAProxy can stop when its client leaves, and it is lost:\n%s", lost)
		}
	}
}
