//go:build unix

package rollout_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// city is everything that is replaced, and those who use it.
type city struct {
	t                *testing.T
	journal, targets string
	pods             []*pod
	gateways         []*process
	toPods, toWays   *balancer
	load             *load
	policy           string // of gateways and the caller's sidecar
}

// list has those who look for endpoints find the gates of pods.
func (c *city) list(pods []*pod) {
	var all []string
	for _, p := range pods {
		all = append(all, p.gate.at["app"])
	}
	text := "- targets: [" + strings.Join(all, ", ") + "]\n"
	err := os.WriteFile(c.targets+".next", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(c.targets+".next", c.targets)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// known reports whether all proxies have the gates of these pods, and no others.
func known(pods []*pod, proxies ...*process) func() bool {
	return func() bool {
		return !slices.ContainsFunc(proxies, func(p *process) bool {
			_, page := p.page("/guards")
			return strings.Count(page, `"url": "http://127`) != len(pods) || slices.ContainsFunc(pods, func(o *pod) bool {
				return !strings.Contains(page, o.gate.at["app"])
			})
		})
	}
}

func (c *city) gateway(name string) *process {
	return proxy(c.t, "gateway "+name, c.policy+"gatewayRetries: true\n", []string{"listening on"}, "--gateway",
		"--listen", "127.0.0.1:0", "--drain-timeout", "25s")
}

func (c *city) sidecar(name string) *process {
	return proxy(c.t, "sidecar "+name, c.policy, []string{"listening on"}, "--listen", "127.0.0.1:0", "--drain-timeout",
		"5s")
}

func build(t *testing.T) *city {
	dir := t.TempDir()
	c := &city{t: t, journal: filepath.Join(dir, "journal"), targets: filepath.Join(dir, "targets.yaml"),
		toPods: newBalancer(t), toWays: newBalancer(t), load: &load{t: t}}
	// The default policy, but with the patience of a machine that does other things too.
	c.policy = fmt.Sprintf("services:\n  app:\n    upstreams: [\"http://app.test\"]\n    routes: [{path: /}]\n"+
		"    discovery: {type: file, path: %q}\n    timeout: 30s\n    attemptTimeout: 10s\n", c.targets)
	for _, name := range []string{"old 1", "old 2"} {
		p := newPod(t, name, c.journal)
		c.pods = append(c.pods, p)
		c.toPods.add(p.gate.at["app"])
	}
	c.list(c.pods)
	for _, name := range []string{"old 1", "old 2"} {
		g := c.gateway(name)
		c.gateways = append(c.gateways, g)
		c.toWays.add(g.at["listening on"])
	}
	return c
}

// TestReplacingEveryPodFailsNoRequest and does no POST twice.
func TestReplacingEveryPodFailsNoRequest(t *testing.T) {
	if testing.Short() {
		return // eleven processes take ten seconds of processor time
	}
	c := build(t)
	oldSidecar := c.sidecar("old")
	direct, ways := c.load.come("to the gates", c.toPods.addr), c.load.come("by gateways", c.toWays.addr)
	caller := c.load.come("by a sidecar", oldSidecar.at["listening on"])
	eventually(t, "everybody is served", goOn(20, direct, ways, caller))

	// What is new is there, and then listed.
	oldPods, oldWays := c.pods, c.gateways
	newPods, newWays := []*pod{newPod(t, "new 1", c.journal), newPod(t, "new 2", c.journal)},
		[]*process{c.gateway("new 1"), c.gateway("new 2")}
	newSidecar := c.sidecar("new")
	for i, p := range newPods {
		c.toPods.add(p.gate.at["app"])
		c.toWays.add(newWays[i].at["listening on"])
	}
	c.list(append(slices.Clone(oldPods), newPods...))
	finders := append(slices.Clone(oldWays), append(newWays, oldSidecar, newSidecar)...)
	eventually(t, "the new pods are known", known(append(slices.Clone(oldPods), newPods...), finders...))

	// What is old is told to end. Nobody has heard of that: requests go there as before.
	for i, p := range oldPods {
		p.gate.leave()
		oldWays[i].leave()
	}
	later := c.load.come("by a sidecar", newSidecar.at["listening on"])
	eventually(t, "all goes on", goOn(20, direct, ways, caller, later))
	for _, p := range append(oldWays, oldPods[0].gate, oldPods[1].gate) {
		if status, _ := p.page("/readyz"); status != 503 {
			t.Errorf("%s is ready", p.what)
		}
	}

	// Now they hear of it, each in his time, and the wait of preStop is over.
	c.list(newPods)
	for i, p := range oldPods {
		c.toPods.remove(p.gate.at["app"])
		c.toWays.remove(oldWays[i].at["listening on"])
	}
	eventually(t, "the old pods are unknown", known(newPods, finders...))
	eventually(t, "all goes on", goOn(20, direct, ways, caller, later))
	for i, p := range oldPods { // the service first: a sidecar outlives what it is beside
		p.service.terminate()
		p.gate.terminate()
		oldWays[i].terminate()
	}
	caller.leave()
	oldSidecar.terminate()
	eventually(t, "all goes on", goOn(20, direct, ways, later))
	for _, c := range []*crowd{direct, ways, later} {
		c.leave()
	}
	journal, err := os.ReadFile(c.journal)
	if err != nil {
		t.Fatal(err)
	}
	c.load.settle(journal)
	all := int64(0)
	c.load.made.Range(func(kind, n any) bool {
		t.Logf("%-36s %6d", kind, n.(*atomic.Int64).Load())
		all += n.(*atomic.Int64).Load()
		return true
	})
	t.Logf("%d requests, %d failed", all, c.load.failed.Load())
	for _, p := range newPods {
		p.gate.terminate()
		p.service.terminate()
	}
	for _, p := range append(newWays, newSidecar) {
		p.terminate()
	}
}
