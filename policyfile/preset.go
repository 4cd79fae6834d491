package policyfile

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/strictyaml"
)

// Preset is what a service begins with.
type Preset string

const (
	// Calls: requests to a service. It begins with abate.DefaultPolicy as the defaults of the file change it. The empty
	// Preset means the same.
	Calls Preset = "calls"
	// Connections: new connections to a database, a cache or a broker. It begins with abate.ConnectionPolicy, and the
	// defaults of the file do not apply: their timeouts, retries and thresholds are about requests.
	Connections Preset = "connections"
)

// entry is one policy as it stands in the file.
type entry struct {
	// Preset is what a service begins with: calls (requests; the built-in policy as defaults changes it) or connections
	// (new connections to a database, a cache or a broker: gently, one probe at a time after an outage; defaults does
	// not apply). Empty means calls. Only services have this key, defaults does not.
	Preset Preset `yaml:"preset" enum:"calls|connections" example:"connections"`

	Policy `yaml:",inline"`
}

// connections is the policy that a service for connections begins with. One that says in numbers what is to be
// different about its pace begins with the pace that the preset had before it was adaptive, so that such a file keeps
// its meaning.
func (d *decoder) connections(n *yaml.Node) Policy {
	p := Policy{Policy: abate.ConnectionPolicy()}
	service, _ := d.ahead.Entries(n, "", "", "")
	for _, e := range service {
		if e.Key.Value != "pacing" {
			continue
		}
		keys, _ := d.ahead.Entries(strictyaml.Resolve(e.Value), "", "", "")
		has := func(keys []strictyaml.Entry, names ...string) bool {
			return slices.ContainsFunc(keys, func(k strictyaml.Entry) bool { return slices.Contains(names, k.Key.Value) })
		}
		if has(keys, "perSecond", "burst", "jitter", "rampUp", "rampUpFrom") && !has(keys, "adaptive") {
			pace := &p.Pacing
			pace.Adaptive, pace.PerSecond, pace.RampUp, pace.RampUpFrom = false, 10, 30*time.Second, 0.05
		}
	}
	return p
}

// presetOf looks for the preset in a service that is read later, which is when its mistakes are reported.
func (d *decoder) presetOf(n *yaml.Node) Preset {
	entries, _ := d.ahead.Entries(n, "", "", "")
	for _, e := range entries {
		if v := strictyaml.Resolve(e.Value); e.Key.Value == "preset" && v.Kind == yaml.ScalarNode &&
			v.Value == string(Connections) {
			return Connections
		}
	}
	return Calls
}

// checkPreset refuses what contradicts the preset.
func (r *reader) checkPreset(e *entry) {
	switch {
	case r.Service == "" && r.Has("preset"):
		r.Reject("preset", "cannot have a default", "it says what one service begins with: write it there")
	case e.Preset == Connections:
		for key, n := range map[string]int{"upstreams": len(e.Upstreams), "routes": len(e.Routes)} {
			if n > 0 {
				r.Reject(key, "leads requests to a policy for connections",
					"remove it, or list the service that gets the requests under a name of its own, without preset")
			}
		}
	}
}
