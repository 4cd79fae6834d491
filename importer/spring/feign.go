package spring

import (
	"slices"
	"strconv"
	"time"

	"github.com/abate-go/abate/topology"
)

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// feign reads the time limits of OpenFeign's clients: for a client that resilience4j has an instance for, of its tries.
func (a *application) feign(instances []string) {
	clients := a.root.get("spring.cloud.openfeign.client.config")
	if clients == nil {
		clients = a.root.get("feign.client.config")
	}
	if clients == nil {
		return
	}
	for _, c := range clients.kids {
		if same(c.name) == "default" {
			continue
		}
		read, connect := c.kid("readTimeout"), c.kid("connectTimeout")
		if d := clients.kid("default"); d != nil {
			if read == nil {
				read = d.kid("readTimeout")
			}
			if connect == nil {
				connect = d.kid("connectTimeout")
			}
		}
		perTry, open := scalar(a.form, read, duration), scalar(a.form, connect, duration)
		if perTry.IsZero() && open.IsZero() {
			continue
		}
		if slices.Contains(instances, c.name) {
			a.within(c.name, perTry, open)
			continue
		}
		a.policies++
		a.form.Policies = append(a.form.Policies, topology.Policy{Callees: []string{c.name}, Callers: []string{a.service},
			Layer: topology.Layer{Kind: topology.Client, Product: "openfeign", Name: "OpenFeign " + c.name, At: c.at,
				PerTry:  perTry,
				Connect: open, Cancels: topology.Assume(false, "a blocking client does not hear that its caller left")}})
	}
}

// within gives the policy of an instance the time limits of the client of the same name.
func (a *application) within(name string, perTry, connect topology.Value[time.Duration]) {
	for i := range a.form.Policies {
		p := &a.form.Policies[i]
		if p.Callees[0] == name && p.Callers[0] == a.service && p.Layer.Product == "resilience4j" {
			if p.Layer.PerTry.IsZero() || p.Layer.PerTry.IsUnknown() {
				p.Layer.PerTry = perTry
			}
			p.Layer.Connect = connect
		}
	}
}
