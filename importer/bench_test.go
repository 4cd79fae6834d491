package importer_test

import (
	"fmt"
	"testing"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
)

// manifests are n files of a Service, a Deployment and a VirtualService each.
func manifests(n int) []importer.File {
	files := make([]importer.File, n)
	for i := range files {
		files[i] = importer.File{Name: fmt.Sprintf("s%d.yaml", i), Data: fmt.Appendf(nil, `apiVersion: v1
kind: Service
metadata: {name: s%[1]d, namespace: shop}
spec: {selector: {app: s%[1]d}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: s%[1]d, namespace: shop, labels: {app: s%[1]d, team: a, tier: backend}}
spec:
  replicas: 3
  selector: {matchLabels: {app: s%[1]d}}
  template:
    metadata: {labels: {app: s%[1]d}}
    spec:
      containers:
      - name: main
        image: registry.example/s%[1]d:1.2.3
        ports: [{containerPort: 8080}]
        env:
        - {name: NEXT_URL, value: "http://s%[2]d:8080"}
        - {name: LOG_LEVEL, value: info}
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: s%[1]d, namespace: shop}
spec:
  hosts: [s%[1]d]
  http:
  - route: [{destination: {host: s%[1]d}}]
    retries: {attempts: 2, perTryTimeout: 1s}
`, i, (i+1)%n)}
	}
	return files
}

func BenchmarkManifests(b *testing.B) {
	files := manifests(3334) // 10,002 documents
	b.ReportAllocs()
	for b.Loop() {
		form, _ := importer.Read(files, source.Assume{})
		form.Join()
	}
}
