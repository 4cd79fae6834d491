package sidecar

const proxyUsage = `Usage: abate proxy -c POLICY [FLAGS]

Calls that go out: it takes HTTP requests of programs in any language and forwards them under the
policy file: retries within a budget, circuit breakers, time limits, bulkheads, hedging, fallbacks.
A request belongs to the service whose route (host and path prefix) or upstream it names. Point a
program at it in one of two ways:

  PAYMENTS_URL=http://127.0.0.1:15001/payments  as the base URL of a service; needs a route
  http_proxy=http://127.0.0.1:15001             as its HTTP proxy; the service's URL stays the same

It listens for HTTP/1.1 and HTTP/2 on one port, with TLS if it has a certificate, and speaks http,
https or h2c to the upstreams. A refused call is a 503 with a problem+json body that says why,
Retry-After, and "X-Should-Retry: false"; a refused gRPC call is UNAVAILABLE with
grpc-retry-pushback-ms. Calls that a program makes for a request that came in here share the retries
that its caller allows, if the program passes Abate-Retry-Allowance or a trace id on.

Calls that come in: for every entry of protect in the policy file it listens at that entry's
address, with TLS if it has a certificate, and passes on what the service behind it can handle: rate
limits, load shedding, idempotency keys, authentication. A refused request gets 429, 503 or 401 with
a problem+json body whose code says why. Both work in one process.

  -c, --config FILE        the policy file; it is reloaded when it changes, and on SIGHUP
  --listen ADDR            where programs connect for calls that go out (default 127.0.0.1:15001;
                           "off" for none: for a file that only protects)
                           ADDR is host:port or, here and for --admin, unix:/PATH?mode=0660
  --listen-tls-cert FILE   programs connect with TLS, to this certificate; it is read again when it
                           changes, as are the next two
  --listen-tls-key FILE    the certificate's key
  --listen-client-ca FILE  programs need a client certificate of these authorities
  --tls-min-version V      of --listen and --admin: TLSv1.2 (default) or TLSv1.3
  --proxy-protocol         connections of --trusted-peers at --listen begin with a PROXY header
  --redirected ADDR        where a firewall redirects connections to, whatever they are
                           (default off; Linux): see docs/proxy.md, and --print-iptables
  --print-iptables         print the rules of iptables that redirect what a program sends to the
                           ports of the services, and exit. They leave out the user --proxy-uid
  --proxy-uid N            the user that the proxy runs as, for --print-iptables (default this user)
  --strangers WHAT         pass: plain requests to hosts that the file does not list go on, without
                           a guard and counted, to wherever this machine reaches; only with --listen
                           on loopback or a socket. refuse (default): as outside.passThrough says
  --mark N                 of the proxy's own connections (default 0: none), for rules that
                           leave them out by it; SO_MARK, needs CAP_NET_ADMIN
  --admin ADDR             the live page for a browser and "abate top", /guards /gates /policy
                           /metrics /healthz /readyz, and the gRPC health service over h2c
                           (default 127.0.0.1:15000; "off" for none)
  --admin-token-file FILE  the admin page needs a token of this file, which has a name and a token
                           on each line; /healthz and /readyz need none. Only with this or with
                           --admin-client-ca can circuits be forced open from the page, and are
                           there profiles at /debug/pprof/
  --admin-tls-cert FILE    the admin page is served with TLS and this certificate; it is read again
                           when it changes, as are the next two
  --admin-tls-key FILE     the certificate's key
  --admin-client-ca FILE   the admin page needs a client certificate of these authorities; /healthz
                           and /readyz need none
  --gateway                the proxy stands in front of services and is not one program's sidecar:
                           it retries only if the file says gatewayRetries: true, passes Host on,
                           and adds X-Forwarded-For, -Host and -Proto
  --trusted-peers LIST     addresses or CIDRs, with commas between them, of those in front of a
                           gateway whose headers it believes and passes on; from everybody else it
                           removes X-Forwarded-For and its like, Abate-..., and headers that say
                           who a user is (default: it believes all)
  --zone NAME              the zone that it runs in: endpoints there are preferred while they do no
                           worse than others (default: ABATE_ZONE, or none)
  --access-log WHICH       errors (default: at most 100 lines a second), all or off
  --log-format FORMAT      text (default) or json, on standard error
  --otlp-endpoint URL      send spans of calls and attempts to this OpenTelemetry collector, over
                           HTTP, for example http://localhost:4318; "off" for none. It goes before
                           OTEL_EXPORTER_OTLP_ENDPOINT; other OTEL_ variables count too
  --trace-ratio R          record this share of calls, 0 to 1, unless the caller's traceparent says
                           (default: OTEL_TRACES_SAMPLER, or all)
  --trace-file FILE        append spans to this file, as OTLP in JSON
  --plain-metric-names W   on (default) or off: whether /metrics has the older names without abate_
                           too, such as http_client_requests_total
  --drain-timeout D        how long requests in flight may take after SIGTERM (default 25s); a
                           second SIGTERM cuts them off at once
  --connect-timeout D      for a connection to an upstream, TLS included (default 1s)
  --header-timeout D       for a client to send the head of a request (default 10s)
  --idle-timeout D         for a client's connection without a request (default 5m)
  --stall-timeout D        for a client that sends or takes nothing in the middle of a request
                           (default 1m)
  --upstream-idle-timeout D  for an unused connection to an upstream (default 30s)
  --upstream-max-age D     for a used one, times the number of the service's endpoints: then a new
                           one takes its place, which finds what a balancer of connections has got
                           meanwhile (default 8s)
  --max-connections N      clients connected at once; idle ones make room for more (default 0:
                           4/9 of the files that the process may have open, less a few)
  --max-buffered-body N    bytes of a request body that are kept so that it can be sent again
                           (default 65536)
  --stale-memory N         bytes for answers kept for fallback.staleIfError (default 67108864)
  -h, --help               print this

Exit code: 0 drained after SIGTERM or Ctrl-C, 1 could not start, listen or drain in time, 2 wrong
usage.
`
