package lint

import (
	"regexp"

	"github.com/abate-go/abate/topology"
)

// console are names of services whose pages people look at who operate others.
var console = regexp.MustCompile(`^(grafana|kiali|prometheus|alertmanager|jaeger|jaeger-query|jaeger-ui|tracing|` +
	`zipkin|kibana|argocd-server|kubernetes-dashboard|adminer|pgadmin|phpmyadmin|mailhog|maildev|mailpit|kafka-ui)(\.|$)`)

// shows reports whether a call is that of a gateway which shows such pages. They stay open and load little, so it is no
// defect that nobody has set limits for them.
func shows(e *edge) bool {
	return len(e.slots) > 0 && e.slots[0][0].Kind == topology.Gateway && console.MatchString(e.call.To)
}
