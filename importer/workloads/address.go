package workloads

import (
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// databases are schemes of URLs, and names of images, of things that store.
var databases = []string{"postgres", "postgresql", "mysql", "mariadb", "mongodb", "redis", "rediss", "valkey",
	"memcached", "cassandra", "cockroachdb", "elasticsearch", "opensearch", "sqlserver", "mssql", "oracle", "clickhouse",
	"etcd", "dynamodb-local"}

// calls are schemes of addresses that are called. Those of brokers, of stores of files and of names of objects
// (kubernetes://apis/apps/v1/…) are none.
var calls = []string{"http", "https", "grpc", "grpcs", "h2c", "ws", "wss", "tcp", "tls", "thrift", "dubbo", "lb"}

type address struct {
	host           string
	database, grpc bool
}

var (
	host = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
	// filled is what somebody is to put an address for: no host is written so.
	filled   = regexp.MustCompile(`^[A-Z0-9]+(_[A-Z0-9]+)+$`)
	variable = regexp.MustCompile(`(?i)(URL|URI|ADDR|ADDRESS|HOST|ENDPOINT|SERVICE|TARGET|UPSTREAM|BACKEND)S?$`)
)

// telemetry are variables, and ports, of where a program sends its spans and metrics. It does so beside its requests,
// in batches: no request waits for it, and none fails with it. The address that a page of its documentation shows is
// nothing that it calls, nor is the one at which a browser finds it.
var telemetry = regexp.MustCompile(`(?i)(^|_)(OTEL|OTLP|STATSD|ZIPKIN|DD_AGENT|DD_TRACE|SWAGGER|SPRINGDOC|` +
	`PUBLIC_?UR[IL]|ORIGINS?|EXTERNAL_?URL|SERVER_ROOT_URL|KC_HOSTNAME|SEQ_?SERVER_?URL|` +
	`JAEGER_(AGENT|ENDPOINT|COLLECTOR))(_|$)`)

var telemetryPorts = []string{"4317", "4318", "6831", "6832", "8125", "14268"}

// addresses returns what an environment variable points at: the hosts of its URLs, or of host:port where the name of
// the variable says that it is an address.
func addresses(name, value string) []address {
	var found []address
	if telemetry.MatchString(name) {
		return nil
	}
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
		if a, ok := addressOf(name, strings.TrimPrefix(word, "jdbc:")); ok && !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found
}

func addressOf(name, word string) (address, bool) {
	if strings.Contains(word, "://") {
		u, err := url.Parse(word)
		if err != nil || !slices.Contains(calls, strings.ToLower(u.Scheme)) && !slices.Contains(databases, family(u.Scheme)) {
			return address{}, false
		}
		if slices.Contains(telemetryPorts, u.Port()) {
			return address{}, false
		}
		a, ok := checked(u.Hostname(), slices.Contains(databases, family(u.Scheme)))
		a.grpc = slices.Contains([]string{"grpc", "grpcs", "h2c"}, strings.ToLower(u.Scheme))
		return a, ok
	}
	h, port, err := net.SplitHostPort(word)
	if err != nil || !variable.MatchString(name) && !strings.HasSuffix(strings.ToUpper(name), "_PORT") || !numeric(port) ||
		slices.Contains(telemetryPorts, port) {
		return address{}, false
	}
	return checked(h, slices.Contains([]string{"5432", "3306", "6379", "27017", "9042", "11211"}, port))
}

// family takes a driver's suffix off a scheme: postgresql+asyncpg.
func family(scheme string) string {
	first, _, _ := strings.Cut(strings.ToLower(scheme), "+")
	return first
}

func checked(h string, db bool) (address, bool) {
	local := h == "localhost" || h == "0.0.0.0" || strings.HasPrefix(h, "127.") || h == "::1"
	return address{host: h, database: db}, !local && host.MatchString(h) && !filled.MatchString(h)
}

func numeric(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// database reports whether the first of the images is that of something that stores.
func database(images []string) bool {
	if len(images) == 0 {
		return false
	}
	name, _, _ := strings.Cut(path.Base(images[0]), ":")
	name, _, _ = strings.Cut(name, "@")
	return slices.Contains(databases, name)
}
