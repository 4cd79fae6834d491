package audit_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
)

func TestAFileWithItsWholePathIsAWholeURIInSARIF(t *testing.T) {
	for name, want := range map[string]string{"/srv/my shop/calls.yaml": `"file:///srv/my%20shop/calls.yaml"`,
		"my shop/calls.yaml": `"my%20shop/calls.yaml"`, "a:b.yaml": `"./a:b.yaml"`} {
		var out bytes.Buffer
		r := audit.Run([]importer.File{{Name: name, Data: []byte(two)}}, audit.Options{})
		if err := audit.SARIF(&out, r, "v1"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), `"uri": `+want) {
			t.Errorf("%s: no %s", name, want)
		}
	}
}
