package metrics

import "fmt"

// Query is one query to Prometheus.
type Query struct{ Name, Text string }

// mark is the label that says what the value of a sample is: rate (per second), p50 or p99 (seconds).
const mark = "abate"

// Queries returns the queries whose answers Read understands. window is how far back they look: "5m".
func Queries(window string) []Query {
	marked := func(what, expr string) string {
		return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expr, mark, what)
	}
	graph := "client, server"
	istio := "reporter, source_workload, source_workload_namespace, destination_service_name, " +
		"destination_service_namespace"
	linkerd := "namespace, deployment, dst_namespace, dst_service"
	rate := func(metric, selector, by string) string {
		return marked("rate", fmt.Sprintf("sum by (%s) (rate(%s%s[%s]))", by, metric, selector, window))
	}
	quantile := func(q float64, metric, selector, by string, unit float64) string {
		what := map[float64]string{0.5: "p50", 0.99: "p99"}[q]
		return marked(what, fmt.Sprintf("histogram_quantile(%g, sum by (le, %s) (rate(%s%s[%s]))) / %g", q, by, metric,
			selector, window, unit))
	}
	served := `{reporter="destination"}`
	return []Query{
		{"service graph, rates", rate("traces_service_graph_request_total", "", graph)},
		{"service graph, p50", quantile(0.5, "traces_service_graph_request_server_seconds_bucket", "", "server", 1)},
		{"service graph, p99", quantile(0.99, "traces_service_graph_request_server_seconds_bucket", "", "server", 1)},
		{"Istio, rates", rate("istio_requests_total", "", istio)},
		{"Istio, p50", quantile(0.5, "istio_request_duration_milliseconds_bucket", served,
			"destination_service_name, destination_service_namespace", 1000)},
		{"Istio, p99", quantile(0.99, "istio_request_duration_milliseconds_bucket", served,
			"destination_service_name, destination_service_namespace", 1000)},
		{"Linkerd, rates", rate("response_total", `{direction="outbound"}`, linkerd)},
	}
}
