package traefik

import (
	"bytes"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// argument begins an argument of such a limit.
const argument = "--serverstransport.forwardingtimeouts."

// arguments returns the nodes whose items, or whose text, may be arguments of Traefik: in the values of its chart, by
// themselves or in a release of Flux or Argo CD, in a workload, and in a compose file.
func arguments(root source.Node) (all []source.Node) {
	for _, values := range []source.Node{root, root.Get("spec", "values"),
		root.Get("spec", "source", "helm", "valuesObject")} {
		all = append(all, values.Get("additionalArguments"), values.Get("globalArguments"))
	}
	for _, c := range root.Get("spec", "template", "spec", "containers").Items() {
		all = append(all, c.Get("args"), c.Get("command"))
	}
	for _, p := range root.Get("services").Pairs() {
		all = append(all, p.Value.Get("command"))
	}
	return all
}

// start reads the limits that a document gives to Traefik as it starts, as arguments or in its file: those of every
// call
// without a transport of its own. Where two documents differ, they may be of two Traefiks, and which holds is unknown.
func (c *configuration) start(root source.Node) {
	add := func(limit, text string, at topology.Position) {
		v, remarks := source.Word(text, at, source.DurationIn(time.Second))
		c.remarks = append(c.remarks, remarks...)
		limit = strings.ToLower(limit)
		if was, twice := c.started[limit]; twice && was.V != v.V {
			v = topology.NotKnown[time.Duration]("two Traefiks start differently", at)
		}
		c.started[limit] = v
	}
	for _, list := range arguments(root) {
		for _, item := range list.List() {
			for part := range strings.FieldsSeq(item.Text()) {
				key, value, _ := strings.Cut(part, "=")
				if len(key) > len(argument) && strings.EqualFold(key[:len(argument)], argument) {
					add(key[len(argument):], value, item.At())
				}
			}
		}
	}
	for _, p := range root.Get("serversTransport", "forwardingTimeouts").Pairs() {
		add(p.Key, p.Value.Text(), p.Value.At())
	}
}

// starts reports whether a document gives a limit to Traefik as it starts.
func starts(d source.Document) bool {
	if !bytes.Contains(bytes.ToLower(d.Data), []byte("forwardingtimeouts")) {
		return false
	}
	c := &configuration{started: map[string]topology.Value[time.Duration]{}}
	c.start(d.Root)
	return len(c.started) > 0
}
