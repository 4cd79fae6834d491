package lint

import (
	"regexp"

	"github.com/abate-go/abate/topology"
)

// console are names of services whose pages people look at who operate others.
var console = regexp.MustCompile(`^(grafana|kiali|prometheus|alertmanager|jaeger|jaeger-query|jaeger-ui|tracing|` +
	`zipkin|kibana|argocd-server|kubernetes-dashboard|adminer|pgadmin|phpmyadmin|mailhog|maildev|mailpit|kafka-ui|` +
	`dapr-dashboard|hubble-ui|mongo-express|portainer|redis-?insight|redis-commander)(\.|$)`)

// generator are names of programs that make load for a test.
var generator = regexp.MustCompile(`^((load|traffic)(-?(gen|generator|test|tester))?|locust|k6|vegeta|fortio|` +
	`artillery|gatling|jmeter)(-(master|worker|client))?(\.|$)`)

// idle reports whether it is no defect of a call that nobody has set limits for it: the call of a gateway that shows
// such pages, which stay open and load little, or that of a program which makes load for a test.
func idle(e *edge) bool {
	return len(e.slots) > 0 && e.slots[0][0].Kind == topology.Gateway && console.MatchString(e.call.To) ||
		generator.MatchString(e.call.From)
}
