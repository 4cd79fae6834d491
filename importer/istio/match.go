package istio

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// match is one condition of a route, and whose requests it is for.
type match struct {
	topology.Match
	gateways []source.Node // none: those of the VirtualService
	callers  []string      // none: all
}

// matches returns the conditions of a route, of which one has to be met; without one, the condition that all meet.
func matches(n source.Node) []match {
	var out []match
	for _, m := range n.List() {
		one := match{gateways: m.Get("gateways").List()}
		one.Path = path(m.Get("uri"))
		if method := m.Get("method", "exact").Text(); method != "" {
			one.Methods = []string{method}
		}
		one.Host = m.Get("authority", "exact").Text()
		var other []string
		for _, p := range m.Pairs() {
			switch p.Key {
			case "headers", "withoutHeaders", "queryParams", "sourceLabels":
				for _, h := range p.Value.Pairs() {
					other = append(other, p.Key+" "+h.Key)
				}
			case "port", "scheme":
				other = append(other, p.Key+" "+p.Value.Text())
			}
		}
		one.Other = strings.Join(other, ", ")
		if space := m.Get("sourceNamespace").Text(); space != "" {
			one.callers = []string{"*." + space}
		}
		if !slices.ContainsFunc(out, func(o match) bool { return same(o, one) }) {
			out = append(out, one)
		}
	}
	if len(out) == 0 {
		return []match{{}}
	}
	return out
}

func same(a, b match) bool {
	return a.Path == b.Path && a.Host == b.Host && a.Other == b.Other && slices.Equal(a.Methods, b.Methods) &&
		slices.Equal(a.callers, b.callers) && len(a.gateways) == 0 && len(b.gateways) == 0
}

func path(uri source.Node) string {
	switch {
	case uri.Get("prefix").Exists():
		if p := uri.Get("prefix").Text(); p != "/" {
			return p + "*"
		}
	case uri.Get("exact").Exists():
		return uri.Get("exact").Text()
	case uri.Get("regex").Exists():
		return "~" + uri.Get("regex").Text()
	}
	return ""
}
