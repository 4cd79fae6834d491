package export

import (
	"net/url"
	"slices"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/policyfile"
)

// unlisted are the alerts for what the file does not list: guards that a Set makes under the defaults when they are
// asked for, those of single hosts and methods, and whatever a program makes in Go. What each of them is really under,
// nobody knows here: they are measured by the defaults.
func unlisted(file *policyfile.File, t clockwork) []alert {
	services, gates := make([]string, len(file.Services)), make([]string, len(file.Protect))
	for i := range file.Services {
		services[i] = file.Services[i].Name
	}
	for i := range file.Protect {
		gates[i] = file.Protect[i].Name
	}
	others, p := othersThan(services), file.Defaults.WithDefaults()
	list := ofPolicy(others, p, t)
	// consumers are made in Go, and somebody has to look at a letter under any policy
	if !p.Kafka.Enabled() && p.Kafka.DLTStrategy != redelivery.DropLast {
		list = append(list, deadLetters(others, t))
	}
	if !p.Kafka.Enabled() && !p.Kafka.Flood.Disabled {
		list = append(list, letterFlood(others))
	}
	if !p.Pacing.Enabled() { // whoever paces without being listed opens connections
		connections := abate.ConnectionPolicy().WithDefaults()
		list = append(list, heldBack(others, &connections.Pacing))
	}
	for i := range list {
		list[i].text += " The policy file does not list {{ $labels.service }}: the thresholds are those of defaults."
	}
	gate := policyfile.DefaultProtection()
	gate.Idempotency.Methods = []string{"POST"} // a gate made in Go may keep keys; without, it has no such series
	arriving := ofProtection(othersThan(gates), gate.WithDefaults(), t)
	for i := range arriving {
		arriving[i].text += " The policy file has no {{ $labels.service }} under protect: the thresholds are those of the " +
			"default protection."
	}
	return slices.Concat(list, arriving)
}

// aboutOthers is the alert for what is not listed: its service is that of the series.
func (a alert) aboutOthers(t clockwork, base *url.URL) rule {
	r := a.rule(t, base)
	r.Labels.Policy = "defaults"
	return r
}
