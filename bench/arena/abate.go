package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

// guarded is a transport under DefaultPolicy. What the rig gives everybody is all that is added: an attempt's time
// limit, and the caller's patience, which the context says.
func guarded(next http.RoundTripper) (http.RoundTripper, error) {
	p := abate.DefaultPolicy()
	p.AttemptTimeout = attemptTimeout
	guard, err := abate.New("arena", p)
	if err != nil {
		return nil, err
	}
	return abatehttp.NewTransport(next, guard), nil
}

func startLibrary(r *rig) (caller, error) {
	t, url := r.direct()
	t, err := guarded(t)
	return func(ctx context.Context) bool { return answered(ctx, t, url) }, err
}

// urls are the service's endpoints as a list of a policy file.
func (r *rig) urls() string {
	return `["http://` + strings.Join(r.addresses(), `", "http://`) + `"]`
}

// callPolicy is DefaultPolicy with the rig's two times.
func callPolicy(urls string) string {
	return fmt.Sprintf("services:\n  arena:\n    timeout: %v\n    attemptTimeout: %v\n    upstreams: %s\n"+
		"    routes: [{path: /}]\n", patience, attemptTimeout, urls)
}

// gatePolicy is DefaultProtection. Its callers wait for one attempt's time, as those of nothing do.
func gatePolicy(addr, urls string) string {
	return fmt.Sprintf("protect:\n  arena:\n    listen: %s\n    timeout: %v\n    upstreams: %s\n", addr,
		attemptTimeout, urls)
}

// startAbate runs the proxy under a policy file.
func (r *rig) startAbate(policy, addr string, more ...string) error {
	path, err := r.write("policy.yaml", policy)
	if err != nil {
		return err
	}
	return r.start("abate", addr, append([]string{r.lab.abate, "proxy", "-c", path, "--admin", "off",
		"--access-log", "off"}, more...))
}

func startSidecar(r *rig) (caller, error) { return r.sidecar() }

func startGateway(r *rig) (caller, error) { return r.sidecar("--gateway") }

func (r *rig) sidecar(more ...string) (caller, error) {
	addr, err := r.address()
	if err != nil {
		return nil, err
	}
	err = r.startAbate(callPolicy(r.urls()), addr, append(more, "--listen", addr)...)
	return r.throughProxy(addr), err
}

// gate starts the gate and returns its address.
func (r *rig) gate() (string, error) {
	addr, err := r.address()
	if err != nil {
		return "", err
	}
	return addr, r.startAbate(gatePolicy(addr, r.urls()), addr, "--listen", "off")
}

func startGate(r *rig) (caller, error) {
	addr, err := r.gate()
	t := r.transport()
	return func(ctx context.Context) bool { return attempt(ctx, t, "http://"+addr+"/") }, err
}

func startGuardAndGate(r *rig) (caller, error) {
	addr, err := r.gate()
	if err != nil {
		return nil, err
	}
	t, err := guarded(r.transport())
	return func(ctx context.Context) bool { return answered(ctx, t, "http://"+addr+"/") }, err
}
