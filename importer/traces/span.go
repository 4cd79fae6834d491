package traces

import "time"

// kind of a span, as OTLP numbers them.
type kind int

const (
	server kind = 2
	client kind = 3
)

// span is what all formats have in common.
type span struct {
	trace, id, parent string
	service, name     string
	kind              kind
	start, end        time.Duration // since the epoch
	failed            bool
	resend            int    // http.request.resend_count
	peer              string // what the attributes say of the callee
	database, grpc    bool
}

// attributes that name a callee, the best first.
var peers = []string{"peer.service", "server.address", "net.peer.name", "http.host", "db.name",
	"messaging.destination.name"}

// note takes what an attribute says.
func (s *span) note(key, text string, number int) {
	switch key {
	case "http.request.resend_count":
		s.resend = number
	case "http.response.status_code", "http.status_code":
		s.failed = s.failed || number >= 500 || number == 429
	case "rpc.system", "rpc.system.name":
		s.grpc = s.grpc || text == "grpc"
	case "rpc.grpc.status_code":
		s.grpc = true
		s.failed = s.failed || number != 0
	case "db.system", "db.system.name":
		s.database = true
		if s.peer == "" {
			s.peer = text
		}
	case "error":
		s.failed = s.failed || text == "true"
	case "span.kind":
		s.kind = map[string]kind{"server": server, "client": client}[text]
	}
}

// callee picks the name of the callee among attributes.
func callee(attributes map[string]string) string {
	for _, key := range peers {
		if v := attributes[key]; v != "" {
			return v
		}
	}
	return ""
}
