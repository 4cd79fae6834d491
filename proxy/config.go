package proxy

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy/calltree"
	"github.com/abate-go/abate/proxy/spread"
	"github.com/abate-go/abate/proxy/tracing"
)

// Config is what a proxy is started with. What may change while it runs stands in the policy file.
type Config struct {
	// Policy is the path of the policy file.
	Policy string

	// Gateway reports that the proxy stands in front of services and is not the sidecar of one program. A gateway repeats
	// requests only if the file says gatewayRetries: true, passes the client's Host on, and adds X-Forwarded-For,
	// X-Forwarded-Host and X-Forwarded-Proto. A sidecar sends the Host of the service's own URL.
	Gateway bool
	// TrustedPeers are the addresses of those in front of a gateway whose headers it believes and passes on. From
	// everybody else it takes off what proxies tell each other: X-Forwarded-For and its like, Abate-..., X-Envoy-...,
	// and headers that tell who a user is. None means that all are believed.
	TrustedPeers []netip.Prefix

	// Zone is the zone in which the proxy runs, by the name that its services' endpoints have for it. "" means that
	// nobody knows: no endpoint is preferred.
	Zone string

	// ServiceAccount is the folder with the files that the API server of Kubernetes asks for, for services with discovery
	// of type kubernetes. "" means that of the pod, discovery.ServiceAccount.
	ServiceAccount string

	// ConnectTimeout bounds the making of a connection to an endpoint, TLS included. 0 means 1s.
	ConnectTimeout time.Duration
	// HeaderTimeout bounds how long a client may take to send the head of a request, from its first byte. 0 means 10s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a client's connection is kept without a request. 0 means 5m.
	IdleTimeout time.Duration
	// StallTimeout is how long a client may send or take nothing while its request or its answer is on its way, and a
	// service take nothing of a request. What lies in the socket counts on Linux. 0 means 1m.
	StallTimeout time.Duration
	// UpstreamIdleTimeout is how long a connection to an endpoint is kept without a request. 0 means 30s: below the 60s
	// or more that servers usually keep theirs, so that the proxy is the one that closes.
	UpstreamIdleTimeout time.Duration

	// UpstreamMaxAge is how old a connection to an endpoint becomes, times the number of endpoints of its service: then
	// another takes its place, and it ends with its last request. Behind an address may be a balancer of connections,
	// and backends that it has got meanwhile are found by new connections only. Some live half as long, at random. 0
	// means 8s; negative means for ever.
	UpstreamMaxAge time.Duration

	// MaxConnections is how many clients may be connected at once, over all addresses. One more waits until the
	// connection of another ends; one that has been idle for a while is closed for it. 0 means as many as leave a
	// descriptor for each, of those that the process may have when New is called, for a connection to a service, and
	// a ninth of all for clients of HTTP/2 that need more than one; negative means any number.
	MaxConnections int

	// MaxBufferedBody is the size, in bytes, up to which a request's body is held in memory so that it can be sent again.
	// A longer one is sent once, as a stream. 0 means 64 KiB.
	MaxBufferedBody int
	// StaleMemory bounds the memory for answers kept for staleIfError, in bytes. 0 means 64 MiB.
	StaleMemory int64
	// CallTrees bounds how many requests at once, of those that came with an allowance for retries, are joined with
	// the calls that are made for them, at about 512 bytes each. Of one more nothing is repeated. 0 means 16384.
	CallTrees int

	// PassThrough is hosts to which requests are passed on beside those of outside.passThrough of the policy file, written
	// in the same way. An entry with a mistake allows nothing.
	PassThrough []string
	// Mark is set on the sockets of all connections to services, so that rules of a firewall that send connections here
	// can leave them out. It needs CAP_NET_ADMIN on Linux, and works nowhere else. 0 means none.
	Mark int
	// Control is called with the socket of every connection to a service or to another host before it is connected, as
	// that of net.Dialer is, by several goroutines at once; an error refuses the connection. It may be nil.
	Control func(network, address string, c syscall.RawConn) error

	// ListenTLS is how programs connect to the listeners of Serve; the zero TLS is without. With ClientCA each of them
	// needs a client certificate, whose name stands in the access log.
	ListenTLS policyfile.TLS
	// ProxyProtocol has connections of TrustedPeers to the listeners of Serve begin with a header of the PROXY protocol,
	// version 1 or 2, which tells the address of the client. One without is closed.
	ProxyProtocol bool
	// AdminTokens is the path of a file with the bearer tokens of those who may see the admin page; "" asks for none.
	AdminTokens string
	// AdminTLS is how the admin page is served; the zero TLS is without. With ClientCA, what Admin shows needs a client
	// certificate.
	AdminTLS policyfile.TLS

	// Tracing is how spans of requests and attempts are made and where they go; the zero Settings have none made.
	Tracing tracing.Settings
	// WithoutPlainNames takes the names without the prefix abate_ out of /metrics. No alert or dashboard may use them
	// then.
	WithoutPlainNames bool
	// Version is the program's, for abate_build_info and the spans. "" means what the Go command has built into it.
	Version string

	// AccessLog gets one record for each request; nil for none.
	AccessLog *slog.Logger
	// LogAll has every request logged, not only those that failed.
	LogAll bool
	// Adjust sets what a policy file cannot hold, such as an Observer; see policyfile.Load. It may be nil.
	Adjust func(service string, p *abate.Policy)
	// Sharing begins to share through the Redis of the policy file. Nil refuses files that name one; sharing.Redis is it.
	Sharing OpenSharing
	// Log gets what the proxy itself has to say; nil means slog.Default.
	Log *slog.Logger
}

// trusts reports whether what a peer says in front of its requests is believed. Who may open a Unix socket, its mode
// says.
func (c *Config) trusts(peer netip.Addr) bool {
	return !peer.IsValid() || slices.ContainsFunc(c.TrustedPeers, func(p netip.Prefix) bool { return p.Contains(peer) })
}

func (c *Config) defaults() {
	orDuration(&c.ConnectTimeout, time.Second)
	orDuration(&c.HeaderTimeout, 10*time.Second)
	orDuration(&c.IdleTimeout, 5*time.Minute)
	orDuration(&c.StallTimeout, time.Minute)
	orDuration(&c.UpstreamIdleTimeout, 30*time.Second)
	orDuration(&c.UpstreamMaxAge, spread.Age)
	c.MaxBufferedBody = cmp.Or(c.MaxBufferedBody, 64<<10)
	c.StaleMemory = cmp.Or(c.StaleMemory, 64<<20)
	c.CallTrees = cmp.Or(c.CallTrees, calltree.DefaultMost)
	c.Log = cmp.Or(c.Log, slog.Default())
}

func orDuration(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}
