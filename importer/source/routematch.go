package source

import (
	"cmp"
	"strings"

	"github.com/abate-go/abate/topology"
)

// RouteMatches returns the conditions of a rule of the Gateway API, of which one has to be met; without one, the
// condition that every request meets.
func RouteMatches(n Node) []topology.Match {
	var out []topology.Match
	for _, m := range n.Items() {
		var one topology.Match
		path := m.Get("path")
		switch v := path.Get("value").Text(); path.Get("type").Text() {
		case "RegularExpression":
			one.Path = "~" + v
		case "Exact":
			one.Path = v
		default:
			if v != "" && v != "/" {
				one.Path = v + "*"
			}
		}
		if method := m.Get("method"); method.IsMap() { // gRPC
			one.Path = "/" + cmp.Or(method.Get("service").Text(), "*")
			if name := method.Get("method").Text(); name != "" {
				one.Path += "/" + name
			} else if method.Get("service").Exists() {
				one.Path += "/*"
			}
		} else if method.Text() != "" {
			one.Methods = []string{method.Text()}
		}
		var other []string
		for _, h := range m.Get("headers").Items() {
			other = append(other, "header "+h.Get("name").Text())
		}
		for _, q := range m.Get("queryParams").Items() {
			other = append(other, "query parameter "+q.Get("name").Text())
		}
		one.Other = strings.Join(other, ", ")
		out = append(out, one)
	}
	if len(out) == 0 {
		return []topology.Match{{}}
	}
	return out
}
