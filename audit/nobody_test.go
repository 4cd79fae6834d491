package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
)

// A limit that several Ingresses leave out is one finding, and each of them accepts it for itself.
func TestALimitThatSeveralIngressesLeaveOutIsAcceptedByEachForItself(t *testing.T) {
	ingress := func(name, annotations string) importer.File {
		return importer.File{Name: name + ".yaml", Data: fmt.Appendf(nil, `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: %s
  annotations: {%s}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: %s, port: {number: 80}}}
`, name, annotations, name)}
	}
	const accepted = `abate.dev/ignore: "F206=long polls"`
	for _, c := range []struct {
		first, second string
		open          string // where the finding is, if it is one
	}{{"", "", "one.yaml"}, {accepted, "", "two.yaml"}, {"", accepted, "one.yaml"}, {accepted, accepted, ""}} {
		r := audit.Run([]importer.File{ingress("one", c.first), ingress("two", c.second)}, audit.Options{})
		var open []string
		for _, f := range r.Findings {
			if f.Rule == "F206" {
				if f.State == audit.New {
					open = append(open, f.At.File)
				}
				if !strings.Contains(f.Message, "1 further place") || len(f.Copies) != 1 {
					t.Errorf("%+v", f)
				}
			}
		}
		if strings.Join(open, " ") != c.open {
			t.Errorf("%+v: open are %v", c, open)
		}
	}
}
