package sidecar

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
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
			u, err := url.Parse(raw)
			switch {
			case err != nil:
			case u.Scheme == "https": // where the program can say http://, that is
				add("80")
			case u.Port() == "":
				add("80")
			default:
				add(u.Port())
			}
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
