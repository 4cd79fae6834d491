package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/abate-go/abate/bench/program"
	"github.com/abate-go/abate/internal/loopback"
)

// Names of the targets that others are compared with.
const (
	direct   = "direct"
	nginx    = "nginx"
	haproxy  = "haproxy"
	envoy    = "envoy"
	stdlib   = "httputil"
	fast     = "fasthttp"
	ourProxy = "abate"
	ingress  = "ingress" // abate in front of the upstream, as its gate
	traced   = "traced"  // abate that records one call in a hundred
)

// target is one proxy to measure.
type target struct {
	name    string
	program string // what must be installed; empty for what this command runs itself
	// argv returns the command line that makes it listen at addr, having written the files that it needs; nil when there
	// is nothing between the load and the upstream.
	argv func(l *lab, m mode, addr, upstream string) ([]string, error)
}

var allTargets = []target{
	{name: direct},
	{name: nginx, program: "nginx", argv: nginxCommand},
	{name: haproxy, program: "haproxy", argv: haproxyCommand},
	{name: envoy, argv: envoyCommand},
	{name: stdlib, argv: part(stdlib)},
	{name: fast, argv: part(fast)},
	{name: ourProxy, argv: abateCommand},
	{name: ingress, argv: ingressCommand},
	{name: traced, argv: tracedCommand},
}

func targetNames() string {
	names := make([]string, len(allTargets))
	for i, t := range allTargets {
		names[i] = t.name
	}
	return strings.Join(names, ", ")
}

func nginxCommand(l *lab, m mode, addr, upstream string) ([]string, error) {
	if m.grpc {
		return l.nginx("proxy.conf", nginxGRPCConfig(addr, upstream, m.clients))
	}
	return l.nginx("proxy.conf", nginxConfig(addr, upstream, m.clients))
}

// nginx is the command line for a configuration. It reads nothing and writes nothing outside the temporary folder.
func (l *lab) nginx(file, config string) ([]string, error) {
	path, err := l.write(file, config)
	return []string{"nginx", "-e", "stderr", "-p", l.dir, "-c", path}, err
}

func haproxyCommand(l *lab, m mode, addr, upstream string) ([]string, error) {
	config := haproxyConfig
	if m.grpc {
		config = haproxyGRPCConfig
	}
	path, err := l.write("haproxy.cfg", config(addr, upstream, m.clients))
	return []string{"haproxy", "-db", "-f", path}, err
}

// envoyCommand: --concurrency is the number of its threads.
func envoyCommand(l *lab, m mode, addr, upstream string) ([]string, error) {
	self, err := program.Envoy()
	if err != nil {
		return nil, err
	}
	text, err := envoyConfig(m, addr, upstream)
	if err != nil {
		return nil, err
	}
	path, err := l.write("envoy.yaml", text)
	return []string{self, "-c", path, "--concurrency", "2", "--disable-hot-restart", "--log-level", "error"}, err
}

func abateCommand(l *lab, m mode, addr, upstream string) ([]string, error) {
	limits := shortCalls
	if m.stream > 0 || m.chats > 0 {
		limits = longCalls
	}
	text := abatePolicy("http://"+upstream, max(4*connections, 2*m.chats), limits)
	if m.grpc {
		text = abatePolicy("h2c://"+upstream, max(4*connections, 2*m.chats), limits) + repeatEcho
	}
	path, err := l.write("policy.yaml", text)
	if err != nil {
		return nil, err
	}
	admin, err := loopback.Address()
	return []string{l.abate, "proxy", "-c", path, "--listen", addr, "--admin", admin, "--access-log", "off"}, err
}

// tracedCommand is abate with traces. The upstream is their collector: it answers everything with 200.
func tracedCommand(l *lab, m mode, addr, upstream string) ([]string, error) {
	argv, err := abateCommand(l, m, addr, upstream)
	return append(argv, "--otlp-endpoint", "http://"+upstream, "--trace-ratio", "0.01"), err
}

func ingressCommand(l *lab, _ mode, addr, upstream string) ([]string, error) {
	path, err := l.write("ingress.yaml", ingressPolicy(addr, upstream))
	if err != nil {
		return nil, err
	}
	admin, err := loopback.Address()
	return []string{l.abate, "proxy", "-c", path, "--listen", "off", "--admin", admin, "--access-log", "off"}, err
}

// part is a target that this command runs itself.
func part(name string) func(*lab, mode, string, string) ([]string, error) {
	return func(_ *lab, m mode, addr, upstream string) ([]string, error) {
		self, err := os.Executable()
		word := name
		if m.grpc {
			word = overGRPC + name
		}
		return []string{self, serveWord, word, addr, upstream}, err
	}
}

func (l *lab) write(file, text string) (string, error) {
	path := filepath.Join(l.dir, file)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// available returns an error that says why a target cannot be started, or nil if it can.
func (l *lab) available(t target) error {
	if t.program != "" {
		if err := program.Installed(t.program); err != nil {
			return err
		}
	}
	if t.name == envoy {
		_, err := program.Envoy()
		return err
	}
	if t.name == ourProxy || t.name == ingress || t.name == traced {
		return l.buildAbate()
	}
	return nil
}

// buildAbate builds the proxy once.
func (l *lab) buildAbate() error {
	if l.abate != "" && l.absent[ourProxy] == nil { // for another target
		return nil
	}
	l.abate = filepath.Join(l.dir, "abate")
	return program.BuildAbate(l.ctx, l.abate)
}

// startUpstream starts what all targets pass requests on to: nginx, which costs least, or this command where nginx is
// missing, the answers are long or gRPC is spoken.
func (l *lab) startUpstream(m mode) (p *program.Process, addr, what string, err error) {
	if addr, err = loopback.Address(); err != nil {
		return nil, "", "", err
	}
	argv, what, processors, err := l.upstreamCommand(m, addr)
	if err != nil {
		return nil, "", "", err
	}
	if p, err = program.Start(l.dir, "upstream", processors, argv); err != nil {
		return nil, "", "", err
	}
	if err = p.Await(l.ctx, addr, m.probe()); err != nil {
		return nil, "", "", errors.Join(err, p.Stop())
	}
	return p, addr, what, nil
}

// upstreamCommand is the command line of the upstream, what it is in words, and how many processors it gets.
func (l *lab) upstreamCommand(m mode, addr string) (argv []string, what string, processors int, err error) {
	_, missing := exec.LookPath("nginx")
	switch {
	case m.grpc:
		argv, err = part("upstream")(l, m, addr, "")
		return argv, "grpc-go " + program.Dependency(grpcModule) + ", which echoes raw messages", 1, err
	case m.stream > 0:
		argv, err = part("upstream")(l, m, addr, "")
		return argv, "net/http, one answer of " + strconv.FormatInt(m.stream, 10) + " bytes", 2, err
	case missing == nil:
		argv, err = l.nginx("upstream.conf", upstreamConfig(addr, m.clients))
		return argv, fmt.Sprintf("nginx with 1 worker, %d-byte answers", bodySize), 1, err
	}
	argv, err = part("upstream")(l, m, addr, "")
	return argv, fmt.Sprintf("net/http (nginx is not installed), %d-byte answers", bodySize), 1, err
}
