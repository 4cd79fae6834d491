// Package metrics reads answers of Prometheus about who calls whom, as a service mesh or a collector counts it: Istio,
// Linkerd, and the service graph of Tempo and the OpenTelemetry collector. It yields services, calls, their rates and
// latencies, and retries that no file shows, where a mesh counts requests on both sides.
//
// An answer is the JSON of an instant query. Queries holds the queries whose answers are understood.
package metrics
