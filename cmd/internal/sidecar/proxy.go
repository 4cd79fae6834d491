package sidecar

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

// proxyFlags is the command line of "abate proxy".
type proxyFlags struct {
	config        proxy.Config
	listen, admin string
	redirected    string
	strangers     string
	printRules    bool
	uid           int
	accessLog     string
	logFormat     string
	tlsMin        string // of --listen and --admin
	drain         time.Duration
	traces        traceFlags
	notices       []string // about the environment
	problems      []error  // with the words
}

// parseProxyFlags reads the words. It finds everything that is wrong with them, so that nobody has to fix them one by
// one.
func parseProxyFlags(args []string) (*proxyFlags, error) {
	f := new(proxyFlags)
	set := f.define()
	if err := f.read(set, args); err != nil {
		return nil, err
	}
	f.check(set)
	return f, errors.Join(f.problems...)
}

func (f *proxyFlags) wrong(format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf(format, args...))
}

func (f *proxyFlags) define() *flag.FlagSet {
	set := flag.NewFlagSet("proxy", flag.ContinueOnError)
	set.StringVar(&f.config.Policy, "c", "", "")
	set.StringVar(&f.config.Policy, "config", "", "")
	set.StringVar(&f.listen, "listen", "127.0.0.1:15001", "")
	set.StringVar(&f.redirected, "redirected", cli.Off, "")
	set.StringVar(&f.strangers, "strangers", "refuse", "")
	set.BoolVar(&f.printRules, "print-iptables", false, "")
	set.IntVar(&f.uid, "proxy-uid", os.Getuid(), "")
	set.IntVar(&f.config.Mark, "mark", 0, "")
	set.StringVar(&f.admin, "admin", "127.0.0.1:15000", "")
	set.StringVar(&f.config.AdminTokens, "admin-token-file", "", "")
	set.StringVar(&f.config.ListenTLS.Certificate, "listen-tls-cert", "", "")
	set.StringVar(&f.config.ListenTLS.Key, "listen-tls-key", "", "")
	set.StringVar(&f.config.ListenTLS.ClientCA, "listen-client-ca", "", "")
	set.StringVar(&f.tlsMin, "tls-min-version", "", "")
	set.BoolVar(&f.config.ProxyProtocol, "proxy-protocol", false, "")
	set.StringVar(&f.config.AdminTLS.Certificate, "admin-tls-cert", "", "")
	set.StringVar(&f.config.AdminTLS.Key, "admin-tls-key", "", "")
	set.StringVar(&f.config.AdminTLS.ClientCA, "admin-client-ca", "", "")
	set.BoolVar(&f.config.Gateway, "gateway", false, "")
	set.StringVar(&f.accessLog, "access-log", "errors", "")
	set.StringVar(&f.logFormat, "log-format", "text", "")
	set.DurationVar(&f.drain, "drain-timeout", 25*time.Second, "")
	set.DurationVar(&f.config.ConnectTimeout, "connect-timeout", time.Second, "")
	set.DurationVar(&f.config.HeaderTimeout, "header-timeout", 10*time.Second, "")
	set.DurationVar(&f.config.IdleTimeout, "idle-timeout", 5*time.Minute, "")
	set.DurationVar(&f.config.StallTimeout, "stall-timeout", time.Minute, "")
	set.DurationVar(&f.config.UpstreamIdleTimeout, "upstream-idle-timeout", 30*time.Second, "")
	set.DurationVar(&f.config.UpstreamMaxAge, "upstream-max-age", 8*time.Second, "")
	set.IntVar(&f.config.MaxConnections, "max-connections", 0, "")
	set.Func("trusted-peers", "", f.trustPeers)
	set.StringVar(&f.config.Zone, "zone", os.Getenv("ABATE_ZONE"), "")
	set.IntVar(&f.config.MaxBufferedBody, "max-buffered-body", 64<<10, "")
	set.StringVar(&f.traces.endpoint, "otlp-endpoint", "", "")
	set.StringVar(&f.traces.ratio, "trace-ratio", "", "")
	set.StringVar(&f.config.Tracing.File, "trace-file", "", "")
	set.StringVar(&f.traces.plainNames, "plain-metric-names", "on", "")
	set.Int64Var(&f.config.StaleMemory, "stale-memory", 64<<20, "")
	return set
}

func (f *proxyFlags) trustPeers(list string) error {
	for _, text := range strings.Split(list, ",") {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); single == nil {
			p, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
		}
		if err != nil {
			f.wrong("--trusted-peers: %q is not an address: write an IP address or a CIDR, for example 10.0.0.0/8", text)
			continue
		}
		f.config.TrustedPeers = append(f.config.TrustedPeers, p)
	}
	return nil
}

// read sets the flags to what the words say, and collects the words that are wrong. The error is flag.ErrHelp or nil.
func (f *proxyFlags) read(set *flag.FlagSet, args []string) error {
	for len(args) > 0 {
		arg, rest := args[0], args[1:]
		args = rest
		name, value, assigned := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		to := set.Lookup(name)
		switch {
		case !strings.HasPrefix(arg, "-"):
			f.wrong("%q is not a flag; the policy file goes after -c", arg)
			continue
		case name == "h" || name == "help":
			return flag.ErrHelp
		case to == nil:
			f.wrong("%s is not a flag%s", cli.CutFlag(arg), cli.SuggestFlag(set, name))
			if !assigned && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				args = rest[1:] // what was meant to be its value
			}
			continue
		case assigned:
		case cli.IsSwitch(to):
			value = "true"
		case len(rest) == 0 || strings.HasPrefix(rest[0], "-") &&
			set.Lookup(strings.TrimLeft(cli.CutFlag(rest[0]), "-")) != nil:
			f.wrong("%s needs a value", arg)
			continue
		default:
			value, args = rest[0], rest[1:]
		}
		if set.Set(name, value) != nil {
			_ = to.Value.Set(to.DefValue) // a bad number has made it 0
			f.wrong("--%s %q is not %s", name, value, cli.KindOf(to))
		}
	}
	return nil
}

// check finds what is wrong with the values.
func (f *proxyFlags) check(set *flag.FlagSet) {
	if f.config.Policy == "" {
		f.wrong("no policy file: name one with -c, for example -c examples/policy.yaml")
	}
	set.Visit(func(fl *flag.Flag) {
		if d, ok := fl.Value.(flag.Getter).Get().(time.Duration); ok && (d <= 0 || d > 24*time.Hour) {
			f.wrong("--%s %v is out of range: write more than 0s and at most 24h", fl.Name, d)
		}
	})
	if len(f.config.TrustedPeers) > 0 && !f.config.Gateway && !f.config.ProxyProtocol {
		f.wrong("--trusted-peers is for a gateway: add --gateway, or write trustedPeers in protect of the policy file")
	}
	if f.config.ProxyProtocol && len(f.config.TrustedPeers) == 0 && !strings.HasPrefix(f.listen, "unix:") {
		f.wrong("--proxy-protocol needs --trusted-peers: write the addresses of those who send PROXY headers")
	}
	if n := f.config.MaxConnections; n < 0 || n > 1<<30 {
		f.wrong("--max-connections %d is out of range: write 1 to 1073741824, or 0 for the default", n)
	}
	if b := f.config.MaxBufferedBody; b < 1 || b > 64<<20 {
		f.wrong("--max-buffered-body %d is out of range: write 1 to 67108864", b)
	}
	if m := f.config.StaleMemory; m < 1 || m > 1<<40 {
		f.wrong("--stale-memory %d is out of range: write 1 to 1099511627776", m)
	}
	if f.accessLog != "errors" && f.accessLog != "all" && f.accessLog != "off" {
		f.wrong("--access-log %q is not known: write errors, all or off", f.accessLog)
	}
	if f.logFormat != "text" && f.logFormat != "json" {
		f.wrong("--log-format %q is not known: write text or json", f.logFormat)
	}
	f.trace()
	f.checkAddresses()
}

// ProxyCommand is "abate proxy". A policy file with a Redis that this program cannot reach is handed over to the one
// that can.
func (c Clients) ProxyCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseProxyFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, proxyUsage)
		return 0
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "abate proxy: %s\n", strings.TrimSpace(line))
		}
		fmt.Fprintln(stderr, `"abate proxy --help" explains the flags`)
		return 2
	}
	if f.printRules {
		return f.printIPTables(stdout, stderr)
	}
	f.logs(stderr)
	f.greetTracing(f.config.Log)
	f.config.Sharing, f.config.Version = c.Sharing, cli.Release()
	p, err := proxy.New(f.config)
	if c.Elsewhere != nil && (errors.Is(err, proxy.ErrNoRedis) || errors.Is(err, proxy.ErrNoEmbeddedRedis)) {
		return c.Elsewhere(ctx, append([]string{"proxy"}, args...), stdout, stderr)
	}
	if err != nil {
		startProblem(err, stderr)
		return 1
	}
	return f.run(ctx, p, stdout, stderr)
}

// startProblem says why the policy could not be loaded: every mistake of the file on a line of its own.
func startProblem(err error, stderr io.Writer) {
	var mistakes policyfile.Errors
	if errors.As(err, &mistakes) {
		fmt.Fprintln(stderr, mistakes)
		return
	}
	for _, one := range cli.Each(err) {
		fmt.Fprintf(stderr, "abate proxy: %v\n", one)
	}
}

// logs sets up what the proxy writes to standard error.
func (f *proxyFlags) logs(stderr io.Writer) {
	var h slog.Handler = slog.NewTextHandler(stderr, nil)
	if f.logFormat == "json" {
		h = slog.NewJSONHandler(stderr, nil)
	}
	log := slog.New(h)
	slog.SetDefault(log)
	f.config.Log = log
	if f.accessLog != "off" {
		f.config.AccessLog, f.config.LogAll = log, f.accessLog == "all"
	}
}

// run serves until ctx ends, and drains.
func (f *proxyFlags) run(ctx context.Context, p *proxy.Proxy, stdout, stderr io.Writer) int {
	asked := make(chan os.Signal, 1)
	// Before anybody can know that the proxy runs: unheard, these signals would end it.
	signal.Notify(asked, append(leaveSignals, syscall.SIGHUP)...)
	defer signal.Stop(asked)
	l, redirected, admin, ok := f.open(p, stderr)
	if !ok {
		_ = p.Shutdown(context.Background()) // it has no clients yet
		return 1
	}
	failed := make(chan error, 3)
	if redirected != nil {
		go func() { failed <- p.ServeRedirected(redirected) }()
	}
	if l != nil {
		go func() { failed <- p.Serve(l) }()
	}
	page := &http.Server{Handler: p.Admin(), ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	page.Protocols.SetHTTP1(true)
	page.Protocols.SetHTTP2(true)
	page.Protocols.SetUnencryptedHTTP2(true) // for health checks over gRPC
	if admin != nil {
		go func() { failed <- page.Serve(admin) }()
	}
	f.greet(p, l, redirected, admin, stdout)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if file, err := cli.PolicyFile(f.config.Policy); err == nil && redirected != nil {
		go f.watchPorts(watching, p, portsOf(file))
	}
	go func() { _ = p.Watch(watching) }() // ends with watching
	for {
		select {
		case s := <-asked:
			if s == syscall.SIGHUP {
				reload(p)
			} else {
				slog.Info("leaving: clients are asked to go elsewhere, and served until then")
				p.Leave()
			}
			continue
		case err := <-failed:
			fmt.Fprintf(stderr, "abate proxy: no longer listening: %v\n", err)
			f.end(p, page)
			return 1
		case <-ctx.Done():
		}
		switch err := f.end(p, page); {
		case errors.Is(err, context.Canceled):
			slog.Error("requests cut off on a second signal")
			return 1
		case err != nil:
			slog.Error("requests cut off: they took longer than --drain-timeout", "timeout", f.drain)
			return 1
		}
		slog.Info("drained")
		return 0
	}
}

func reload(p *proxy.Proxy) {
	if err := p.Reload(); err != nil {
		slog.Error("policy file not loaded: the last good policy stays in force", "error", err)
		return
	}
	slog.Info("policy file loaded on SIGHUP", "services", len(p.Policies().Names()))
}

// end drains the proxy. The admin page answers meanwhile, so that /readyz can say no. A second signal ends it at once.
func (f *proxyFlags) end(p *proxy.Proxy, page *http.Server) error {
	defer page.Close()
	slog.Info("draining", "timeout", f.drain)
	ctx, cancel := context.WithTimeout(context.Background(), f.drain)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return p.Shutdown(ctx)
}
