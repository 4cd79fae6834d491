package sidecar

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
	base "github.com/abate-go/abate/internal/upstream"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

// mostPorts is how many ports one rule with multiport may have.
const mostPorts = 15

// rules are the lines that redirect connections to these ports to the proxy's. What the user uid, or a socket with the
// mark, sends is left out: else the proxy would get its own connections back.
func rules(ports []int, to, uid, mark int) (lines []string) {
	for _, program := range []string{"iptables", "ip6tables"} {
		lines = append(lines, program+" -t nat -N ABATE", program+" -t nat -A ABATE -m owner --uid-owner "+strconv.Itoa(uid)+
			" -j RETURN")
		if mark != 0 {
			lines = append(lines, fmt.Sprintf("%s -t nat -A ABATE -m mark --mark %d -j RETURN", program, mark))
		}
		for some := range slices.Chunk(ports, mostPorts) {
			var list []string
			for _, p := range some {
				list = append(list, strconv.Itoa(p))
			}
			lines = append(lines, fmt.Sprintf("%s -t nat -A ABATE -p tcp -m multiport --dports %s -j REDIRECT --to-ports %d",
				program, strings.Join(list, ","), to))
		}
		lines = append(lines, program+" -t nat -A OUTPUT -p tcp -j ABATE")
	}
	return lines
}

// portsOf are the ports of the services that speak no TLS, and of hosts of routes.
func portsOf(file *policyfile.File) (ports []int) {
	add := func(text string) {
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 1<<16 && !slices.Contains(ports, n) {
			ports = append(ports, n)
		}
	}
	for _, s := range file.Services {
		for _, raw := range s.Policy.Upstreams {
			u, _ := base.Parse(raw)
			_, port, _ := net.SplitHostPort(u.Authority())
			if u.Scheme == "https" { // where the program can say http://, that is
				port = "80"
			}
			add(port)
		}
		for _, r := range s.Policy.Routes {
			if _, port, err := net.SplitHostPort(r.Host); err == nil {
				add(port)
			} else if r.Host != "" {
				add("80")
			}
		}
	}
	slices.Sort(ports)
	return ports
}

// printIPTables is --print-iptables.
func (f *proxyFlags) printIPTables(stdout, stderr io.Writer) int {
	file, err := cli.PolicyFile(f.config.Policy)
	if err != nil {
		startProblem(err, stderr)
		return 1
	}
	at := f.redirected
	if at == cli.Off {
		at = "127.0.0.1:15006"
	}
	_, port, _ := net.SplitHostPort(at)
	to, _ := strconv.Atoi(port)
	ports := portsOf(file)
	switch {
	case to == 0:
		fmt.Fprintf(stderr, "abate proxy: --redirected %s has no port that rules could name: write one\n", at)
		return 1
	case len(ports) == 0:
		fmt.Fprintf(stderr, "abate proxy: %s has no services with upstreams or hosts: there is nothing to redirect\n",
			f.config.Policy)
		return 1
	}
	fmt.Fprintf(stdout, "# What is sent to the ports of the services goes to abate proxy --redirected, which runs as "+
		"user %d.\n", f.uid)
	if a, err := netip.ParseAddrPort(at); err == nil && a.Addr().Is4() {
		fmt.Fprintf(stdout, "# Over IPv6 they are refused: --redirected [::]:%d takes those, too.\n", to)
	}
	for _, line := range rules(ports, to, f.uid, f.config.Mark) {
		fmt.Fprintln(stdout, line)
	}
	return 0
}

// watchPorts says of each port that services have had only since a reload that rules which were made before do not
// redirect what is sent there: such calls go past the proxy, and nobody else would know. It ends with ctx.
func (f *proxyFlags) watchPorts(ctx context.Context, p *proxy.Proxy, known []int) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for hash := ""; ; {
		if now := p.Policies().Status().Hash; now != hash {
			hash = now
			known = append(known, f.unredirected(known)...)
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// unredirected returns the ports of the policy file that are not known yet, and says so.
func (f *proxyFlags) unredirected(known []int) []int {
	file, err := cli.PolicyFile(f.config.Policy)
	if err != nil {
		return nil // who reloads it has said so
	}
	added := slices.DeleteFunc(portsOf(file), func(port int) bool { return slices.Contains(known, port) })
	if len(added) > 0 {
		slog.Warn("services have ports that they had not at the start: calls there go past the proxy unless the "+
			"firewall redirects them; make its rules anew (--print-iptables)", "ports", added)
	}
	return added
}
