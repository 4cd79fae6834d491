package sidecar

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

// checkAddresses finds what is wrong with the flags about where to listen.
func (f *proxyFlags) checkAddresses() {
	f.checkListen("--listen", f.listen, "127.0.0.1:15001")
	f.checkListen("--admin", f.admin, "127.0.0.1:15000")
	if f.redirected != cli.Off && !cli.IsAddress(f.redirected) {
		f.wrong("--redirected %q is not an address: write host:port, for example 127.0.0.1:15006, or off", f.redirected)
	}
	f.letPass()
	if f.config.Mark < 0 || f.config.Mark > 1<<31-1 || f.uid < 0 {
		f.wrong("--mark and --proxy-uid are numbers from 0 to 2147483647")
	}
	if f.listen == f.admin && cli.IsListen(f.listen) && !strings.HasSuffix(f.listen, ":0") {
		f.wrong("--listen and --admin are both %s: write another port for one of them", f.listen)
	}
	f.checkTLS("listen", f.config.ListenTLS)
	f.checkTLS("admin", f.config.AdminTLS)
	if f.tlsMin != "" && f.tlsMin != "TLSv1.2" && f.tlsMin != "TLSv1.3" {
		f.wrong("--tls-min-version %q is not known: write TLSv1.2 or TLSv1.3", f.tlsMin)
	}
	if f.tlsMin != "" && !f.config.ListenTLS.Enabled() && !f.config.AdminTLS.Enabled() && len(f.problems) == 0 {
		f.wrong("--tls-min-version has no effect: it needs --listen-tls-cert or --admin-tls-cert")
	}
	f.config.ListenTLS.MinVersion, f.config.AdminTLS.MinVersion = f.tlsMin, f.tlsMin
}

// letPass has requests to hosts of no service go on, if they are to. Only the program beside the proxy may have that:
// it gets no further through the proxy than it does by itself, and from elsewhere others would.
func (f *proxyFlags) letPass() {
	host, _, _ := net.SplitHostPort(f.listen)
	at, _ := netip.ParseAddr(host)
	switch {
	case f.strangers == "refuse":
	case f.strangers != "pass":
		f.wrong("--strangers %q is not known: write pass or refuse", f.strangers)
	case f.config.Gateway:
		f.wrong("--strangers pass is for one program's sidecar: remove --gateway, or list hosts in outside.passThrough")
	case f.listen != cli.Off && !strings.HasPrefix(f.listen, "unix:") && !at.IsLoopback() && host != "localhost":
		f.wrong("--strangers pass would let others reach what only this machine does: write --listen 127.0.0.1:15001, " +
			"or list hosts in outside.passThrough")
	default:
		f.config.PassThrough = cli.Anywhere
	}
}

func (f *proxyFlags) checkListen(flag, addr, example string) {
	if problem := cli.AddressProblem(flag, addr, example); problem != nil {
		f.wrong("%v", problem)
	}
}

// checkTLS checks the files of --listen-tls-cert and its like.
func (f *proxyFlags) checkTLS(of string, t policyfile.TLS) {
	switch {
	case t.Certificate == "" && (t.Key != "" || t.ClientCA != ""):
		f.wrong("--%s-tls-cert is missing: --%[1]s-tls-key and --%[1]s-client-ca need it", of)
	case t.Certificate != "" && t.Key == "":
		f.wrong("--%s-tls-key is missing: --%[1]s-tls-cert needs it", of)
	}
}

// open opens all listeners, and says what is wrong with each.
func (f *proxyFlags) open(p *proxy.Proxy, stderr io.Writer) (l, redirected, admin net.Listener, ok bool) {
	l, err := listenAt("--listen", f.listen, stderr)
	redirected, redirErr := listenAt("--redirected", f.redirected, stderr)
	admin, adminErr := listenAt("--admin", f.admin, stderr)
	openErr := p.Open()
	for _, err := range cli.Each(openErr) {
		fmt.Fprintf(stderr, "abate proxy: %s: %s\n", f.config.Policy, f.entranceProblem(err))
	}
	if errors.Join(err, redirErr, adminErr, openErr) == nil {
		if secure := p.AdminTLS(); admin != nil && secure != nil {
			admin = tls.NewListener(admin, secure)
		}
		return l, redirected, admin, true
	}
	for _, one := range []net.Listener{l, redirected, admin} {
		if one != nil {
			one.Close()
		}
	}
	return nil, nil, nil, false
}

// listenAt listens at the address of a flag. It is nil for off.
func listenAt(name, addr string, stderr io.Writer) (net.Listener, error) {
	if addr == cli.Off {
		return nil, nil
	}
	l, err := proxy.Listen(addr)
	if err != nil {
		fmt.Fprintf(stderr, "abate proxy: %s %s: %s\n", name, addr, cli.ListenProblem(err))
		return nil, err
	}
	return l, nil
}

// entranceProblem says what is wrong with an address of the policy file.
func (f *proxyFlags) entranceProblem(err error) string {
	var at *proxy.ListenError
	if !errors.As(err, &at) {
		return err.Error()
	}
	for name, addr := range map[string]string{"--listen": f.listen, "--admin": f.admin} {
		if addr == at.Address {
			return fmt.Sprintf("%s %s: that is the address of %s; write another port for one of them", at.Key, at.Address, name)
		}
	}
	return fmt.Sprintf("%s %s: %s", at.Key, at.Address, cli.ListenProblem(at.Err))
}

// greet says what is served where.
func (f *proxyFlags) greet(p *proxy.Proxy, l, redirected, admin net.Listener, stdout io.Writer) {
	fmt.Fprintf(stdout, "abate proxy: %s from %s\n", f.contents(p), f.config.Policy)
	for _, name := range p.Policies().Names() {
		to, _ := p.Policies().Service(name)
		policy := to.Policy
		var from []string
		for _, r := range policy.Routes {
			from = append(from, r.Host+r.Path)
		}
		fmt.Fprintf(stdout, "  %-22s %s -> %s\n", name, strings.Join(append(from, "its own address"), ", "),
			upstreams(policy.Upstreams))
	}
	greetEntrances(p, stdout)
	var at []string
	if l != nil {
		at = append(at, "listening on "+f.listenURL(l))
	}
	if redirected != nil {
		at = append(at, "redirected connections on "+redirected.Addr().String())
	}
	if admin != nil {
		at = append(at, "admin on "+f.adminURL(admin))
	}
	if len(at) > 0 {
		fmt.Fprintln(stdout, strings.Join(at, ", "))
	}
	if l == nil && redirected == nil && len(p.Entrances()) == 0 {
		slog.Warn("nothing comes in: --listen is off, and the policy file has no protect with a listen; it is looked at " +
			"again when it changes")
	}
}

// contents counts what the policy file has.
func (f *proxyFlags) contents(p *proxy.Proxy) string {
	services, gates := len(p.Policies().Names()), len(p.Policies().GateNames())
	switch {
	case gates == 0:
		return cli.Count(services, "service")
	case services == 0:
		return cli.Count(gates, "protected service")
	}
	return cli.Count(services, "service") + " and " + cli.Count(gates, "protected service")
}

func upstreams(urls []string) string {
	if len(urls) == 0 {
		return "(no upstreams: every request to it gets a 502)"
	}
	return strings.Join(urls, " ")
}

// listenURL is where programs connect.
func (f *proxyFlags) listenURL(l net.Listener) string {
	at := l.Addr().String()
	if l.Addr().Network() == "unix" {
		at = "unix:" + at
	}
	if f.config.ListenTLS.Enabled() {
		at += " (TLS)"
	}
	return at
}

// adminURL is where the admin page is. Others who can reach it unasked are worth a warning.
func (f *proxyFlags) adminURL(admin net.Listener) string {
	if _, ok := admin.Addr().(*net.UnixAddr); ok {
		return "unix:" + admin.Addr().String()
	}
	if host, _, _ := net.SplitHostPort(admin.Addr().String()); !net.ParseIP(host).IsLoopback() &&
		f.config.AdminTokens == "" && f.config.AdminTLS.ClientCA == "" {
		slog.Warn("the admin page can be reached from other machines: it shows addresses and traffic; --admin-token-file "+
			"or --admin-client-ca restricts it", "address", admin.Addr().String())
	}
	if f.config.AdminTLS.Enabled() {
		return "https://" + admin.Addr().String()
	}
	return "http://" + admin.Addr().String()
}
