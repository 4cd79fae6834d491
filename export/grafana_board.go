package export

import "net/url"

// newBoard is the dashboard without its panels.
func newBoard(o GrafanaOptions, runbooks *url.URL) *board {
	return &board{
		Annotations: boardAnnotations{List: []boardAnnotation{
			{
				BuiltIn:    1,
				Datasource: boardSource{"grafana", "-- Grafana --"},
				Enable:     true,
				Hide:       true,
				IconColor:  "rgba(0, 211, 255, 1)",
				Name:       "Annotations & Alerts",
				Type:       "dashboard",
			},
			mark("Policy changed", "purple", "sum by (service) (increase("+of("abate_policy_changes_total")+"[1m])) > 0",
				"{{service}}: another policy", "A reload of the policy file, or somebody's hand. If trouble begins here, go back "+
					"to the policy before it."),
			mark("Override by hand", "red", "max by (service, override) ("+of("abate_override")+") == 1",
				"{{service}}: {{override}} by hand", "Somebody has put this above the policy of the circuit breaker. Take it "+
					"back when the emergency is over."),
		}},
		Description: "Whether retries are becoming the outage, and why. From the top: the storm at a glance, its causes, " +
			"the receiving side, and each part by itself.",
		Editable: true, GraphTooltip: 1, Refresh: "10s", SchemaVersion: schemaVersion, Tags: []string{"abate"},
		Templating: boardVariables{List: []boardVariable{
			{Label: "Data source", Name: "datasource", Description: "The Prometheus that has the metrics.",
				Options: []struct{}{}, Query: "prometheus", Refresh: 1, Type: "datasource"},
			serviceVariable(),
			programVariable("job", "Program", "The program that calls, or that is protected.", callers+"}, job)"),
			programVariable("instance", "Instance", "One of its instances: the whole page is then about it.",
				callers+`,job=~"$job"}, instance)`),
		}},
		Links: []boardLink{
			{Icon: "doc", Tags: []string{}, TargetBlank: true, Title: "Runbooks", Tooltip: "What to do when an alert fires",
				Type: "link", URL: runbooks.String()},
		},
		Time: boardTime{"now-1h", "now"}, Title: o.Title, UID: o.UID,
	}
}

// mark shows the results of a query over all panels. Its window is its step: a change is marked once.
func mark(name, colour, expr, title, text string) boardAnnotation {
	return boardAnnotation{Datasource: boardSource{"prometheus", source}, Enable: true, Expr: expr, IconColor: colour,
		Name: name, Step: "60s", TextFormat: text, TitleFormat: title}
}

// callers begins a query for the labels of what has guards or gates.
const callers = `label_values({__name__=~"abate_calls_total|abate_requests_admitted_total"`

// programVariable lets the viewer choose among programs or their instances. A series may have no such label.
func programVariable(name, title, text, choices string) boardVariable {
	return boardVariable{AllValue: ".*", Datasource: &boardSource{"prometheus", source}, Definition: choices,
		Description: text, IncludeAll: true, Label: title, Multi: true, Name: name, Options: []struct{}{},
		Query: boardVariableQuery{choices, name + "s"}, Refresh: 2, Sort: 1, Type: "query"}
}

// serviceVariable lets the viewer choose among all that call, are called or read messages. All of them are one pattern:
// a list of a thousand names would not fit into a query.
func serviceVariable() boardVariable {
	const choices = `label_values({__name__=~"` +
		`abate_calls_total|abate_requests_admitted_total|abate_kafka_delivered_total|` +
		`abate_http_client_requests_total"}, service)`
	return boardVariable{AllValue: ".+", Datasource: &boardSource{"prometheus", source}, Definition: choices,
		Description: "The service that is called, or that is protected. Choose one and the dashed lines are its own " +
			"thresholds.", IncludeAll: true, Label: "Service", Multi: true, Name: "service",
		Options: []struct{}{}, Query: boardVariableQuery{choices, "services"}, Refresh: 2, Sort: 1, Type: "query"}
}
