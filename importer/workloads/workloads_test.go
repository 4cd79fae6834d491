package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/workloads"
)

const shop = `apiVersion: v1
kind: Service
metadata: {name: orders, namespace: shop}
spec: {selector: {app: orders}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders-v2, namespace: shop}
spec:
  replicas: 4
  template:
    metadata: {labels: {app: orders, version: v2}}
    spec:
      volumes: [{name: c, configMap: {name: orders-config}}]
      containers:
      - image: registry/orders:1
        env:
        - {name: DATABASE_URL, value: "jdbc:postgresql://orders-db:5432/orders"}
        - {name: PAYMENT_ADDR, value: "payment.pay:8080"}
        - {name: LISTEN_ADDR, value: "0.0.0.0:8080"}
        - {name: VERSION, value: "10:30"}
        - {name: KAFKA, value: "kafka://broker:9092"}
---
kind: StatefulSet
metadata: {name: orders-db, namespace: shop}
spec: {template: {spec: {containers: [{image: "postgres:16"}]}}}
`

const composed = `services:
  front:
    image: front
    environment: [API=http://api:80/v1, MODE=fast]
  api:
    build: .
    environment: {REDIS_URL: "redis://cache:6379"}
  cache: {image: "redis:7"}
`

func read(t *testing.T, text string) (docs []source.Document, services map[string]string, calls []string) {
	t.Helper()
	docs, remarks := source.YAML("f.yaml", []byte(text))
	if len(remarks) > 0 {
		t.Fatal(remarks)
	}
	f := workloads.Read(docs, source.Assume{})
	joined, _ := f.Join()
	services = map[string]string{}
	for _, s := range joined.Services {
		services[s.Name] = s.Replicas.String()
		if s.Database {
			services[s.Name] += " database"
		}
	}
	for _, c := range joined.Calls {
		calls = append(calls, c.From+">"+c.To+" "+c.At.String())
	}
	return docs, services, calls
}

func TestKubernetesWorkloadsAreServicesAndTheirAddressesCalls(t *testing.T) {
	docs, services, calls := read(t, shop)
	if got := services["orders.shop"]; got != "4 (f.yaml:10:13)" {
		t.Errorf("orders.shop has the replicas %q", got)
	}
	if got := services["orders-db.shop"]; got != "1 (default of Kubernetes; f.yaml:24:1) database" {
		t.Errorf("orders-db.shop: %q", got)
	}
	want := []string{"orders.shop>orders-db.shop f.yaml:18:39", "orders.shop>payment.pay f.yaml:19:39"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	if got := workloads.Mounts(docs)["orders-config.shop"]; got != "orders.shop" {
		t.Errorf("orders-config.shop is mounted by %q", got)
	}
}

func TestComposeFilesAreServicesAndTheirAddressesCalls(t *testing.T) {
	_, services, calls := read(t, composed)
	if services["cache"] != " database" || len(services) != 3 {
		t.Errorf("services %v", services)
	}
	want := []string{"front>api f.yaml:4:19", "api>cache f.yaml:7:30"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

func TestAComposeFileThatIsLaidOverAnotherIsRead(t *testing.T) {
	_, services, calls := read(t, "services:\n  front:\n    environment: [API_URL=http://api]\n    ports: ['80:80']\n"+
		"  db:\n    image: postgres\n")
	if want := []string{"front>api f.yaml:3:19"}; !slices.Equal(calls, want) || services["db"] != " database" {
		t.Errorf("calls %q, want %q, services %q", calls, want, services)
	}
}

func TestWhereSpansAndMetricsAreSentIsNoCall(t *testing.T) {
	_, _, calls := read(t, `services:
  front:
    image: front
    environment:
      OTEL_EXPORTER_OTLP_ENDPOINT: http://collector:80
      JAEGER_AGENT_HOST: jaeger:1234
      SPANS_URL: http://spans:4318/v1/traces
      COLLECTOR_ADDR: collector:4317
      ZIPKIN_URL: http://zipkin:9411
      SWAGGER_API_GATEWAY_URL: http://gateway/docs
      SeqServerUrl: http://seq
      SHOP_PUBLICURL: http://shop.example.com/front
      PUBLIC_URL: http://shop.example.com
      KC_HOSTNAME: https://shop.example.com
      GF_SERVER_ROOT_URL: https://shop.example.com
      EXTERNAL_URL: https://shop.example.com
      CSRF_TRUSTED_ORIGINS: https://shop.example.com,http://shop.example.com
      JAEGER_QUERY_URL: http://jaeger:16686
      HOTEL_URL: http://hotel
`)
	if want := []string{"front>jaeger f.yaml:18:25", "front>hotel f.yaml:19:18"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

func TestTagsOfImagesAreVersions(t *testing.T) {
	docs, _ := source.YAML("f", []byte("services:\n  a: {image: \"docker.io/library/nginx:1.27-alpine\"}\n"+
		"  b: {image: \"haproxy:lts\"}\n  c: {image: \"envoyproxy/envoy:v1.31.2@sha256:00\"}\n"+
		"  d: {image: \"traefik:3.1\"}\n"+
		"  e: {image: \"traefik:2.11\"}\n"+
		"  f: {image: \"registry.k8s.io/ingress-nginx/controller:v1.8.1@sha256:00\"}\n"+
		"  g: {image: \"a/controller:2.0\"}\n"+
		"  h: {image: \"kong/kubernetes-ingress-controller:2.12\"}\n"))
	got := workloads.Images(docs)
	if len(got) != 4 || got["ingress-nginx"].V != "1.8.1" ||
		got["kong-ingress-controller"].V != "2.12" ||
		got["nginx"].String() != "1.27 (f:2:14)" || got["envoy"].V != "1.31.2" {
		t.Errorf("%v", got)
	}
}

func TestOtherFilesWithServicesAreNoComposeFiles(t *testing.T) {
	docs, _ := source.YAML("f", []byte(
		"services: {orders: {maxRetries: 3}}\n---\nservices: [{name: a}]\n---\nkind: Service\n"))
	for _, d := range docs {
		if workloads.Recognise(d) {
			t.Errorf("recognised %s", d.Data)
		}
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add([]byte(shop))
	f.Add([]byte(composed))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		workloads.Read(docs, source.Assume{})
		workloads.Mounts(docs)
	})
}

func TestEnvironmentsAreWhatAllWorkloadsOfAServiceSet(t *testing.T) {
	docs, _ := source.YAML("f", []byte(`services:
  Orders: {image: a, environment: [PROFILES=docker, URL=http://a, SECRET=$X, SAME=1]}
  bills: {image: b, environment: {PROFILES: dev}}
---
services:
  orders: {image: a, environment: {PROFILES: "docker,prod", URL: http://b, SAME: 1}}
---
kind: Deployment
metadata: {name: orders, namespace: shop}
spec: {template: {spec: {containers: [{env: [{name: PROFILES, value: "prod,docker"}]}]}}}
`))
	got := workloads.Environments(docs)
	want := map[string]map[string]string{"orders": {"PROFILES": "docker", "URL": "", "SAME": "1"},
		"bills": {"PROFILES": "dev"}}
	for service, env := range want {
		if !maps.Equal(got[service], env) {
			t.Errorf("%s: %v, want %v", service, got[service], env)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
}

func TestWhatAProxyOfAMeshCallsIsNoCallOfItsWorkload(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: front}\nspec:\n  containers:\n  - name: %s\n" +
		"    env: [{name: CA_ADDR, value: 'istiod.istio-system.svc:15012'}]\n"
	for name, want := range map[string]int{"istio-proxy": 0, "linkerd-proxy": 0, "front": 1} {
		if _, _, calls := read(t, fmt.Sprintf(pod, name)); len(calls) != want {
			t.Errorf("%s: %q", name, calls)
		}
	}
}
