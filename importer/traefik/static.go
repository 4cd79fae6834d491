package traefik

import (
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// transport is what Traefik's own start says of every call that has no transport of its own, by the name of the limit in
// lower case.
type transport map[string]word

// argument begins an argument of such a limit.
const argument = "--serverstransport.forwardingtimeouts."

// arguments returns the nodes whose items, or whose text, may be arguments of Traefik: in the values of its chart, by
// themselves or in a release of Flux or Argo CD, in a workload, and in a compose file.
func arguments(root source.Node) (all []source.Node) {
	for _, values := range []source.Node{root, root.Get("spec", "values"), root.Get("spec", "source", "helm", "valuesObject")} {
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

// begun returns the limits that a document gives to Traefik as it starts: as arguments, or in its file.
func begun(root source.Node) transport {
	out := transport{}
	for _, list := range arguments(root) {
		for _, item := range list.List() {
			for part := range strings.FieldsSeq(item.Text()) {
				key, value, _ := strings.Cut(part, "=")
				if limit, ok := strings.CutPrefix(strings.ToLower(key), argument); ok {
					out[limit] = word{value, item.At(), true}
				}
			}
		}
	}
	for _, p := range root.Get("serversTransport", "forwardingTimeouts").Pairs() {
		out[strings.ToLower(p.Key)] = word{p.Value.Text(), p.Value.At(), true}
	}
	return out
}

// start adds what a document says of every call. Where two documents differ, the value is unknown: they may be of two
// Traefiks.
func (c *configuration) start(root source.Node) {
	for limit, w := range begun(root) {
		if was, twice := c.begun[limit]; twice && was.text != w.text {
			w.text, w.at = "${"+limit+"}", topology.Position{File: w.at.File, Line: w.at.Line, Column: w.at.Column}
		}
		c.begun[limit] = w
	}
}
