package traefik

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// label is one label of a container that is meant for Traefik.
type label struct {
	key string // without "traefik.http."
	word
}

// labels returns those of a service of a compose file.
func labels(service source.Node) []label {
	var out []label
	add := func(key, value string, at topology.Position) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(key), "traefik.http."); ok {
			out = append(out, label{rest, word{strings.TrimSpace(value), at, true}})
		}
	}
	for _, list := range []source.Node{service.Get("labels"), service.Get("deploy", "labels")} {
		for _, p := range list.Pairs() {
			add(p.Key, p.Value.Text(), p.Value.At())
		}
		for _, item := range list.Items() {
			key, value, _ := strings.Cut(item.Text(), "=")
			add(key, value, item.At())
		}
	}
	return out
}

// below returns the values of one kind of thing, by its name: of "routers", "web" and then "rule".
func below(all []label, kind string) (names []string, values map[string]map[string]word) {
	values = map[string]map[string]word{}
	for _, l := range all {
		rest, ok := strings.CutPrefix(l.key, kind+".")
		name, key, has := strings.Cut(rest, ".")
		if !ok || !has {
			continue
		}
		if values[name] == nil {
			values[name] = map[string]word{}
			names = append(names, name)
		}
		values[name][strings.ToLower(key)] = l.word
	}
	return names, values
}

// compose reads the labels of containers. A container is the server of its services.
func (c *configuration) compose(root source.Node) {
	for _, p := range root.Get("services").Pairs() {
		all := labels(p.Value)
		if len(all) == 0 {
			continue
		}
		own := &group{at: p.Name.At(), hosts: []string{strings.ToLower(p.Key)}, servers: 1}
		services, _ := below(all, "services")
		for _, name := range services {
			c.services[name] = own
		}
		middlewares, settings := below(all, "middlewares")
		for _, name := range middlewares {
			m := &middleware{name: name, chain: plains([]string{settings[name]["chain.middlewares"].text})}
			if attempts, ok := settings[name]["retry.attempts"]; ok {
				m.at = attempts.at
				m.retry = func(key string) word { return settings[name]["retry."+strings.ToLower(key)] }
			}
			m.https = redirects(settings[name]["redirectscheme.scheme"].text)
			c.middlewares[name] = m
		}
		routers, values := below(all, "routers")
		for _, name := range routers {
			if strings.HasSuffix(values[name]["service"].text, "@internal") { // Traefik's own pages
				continue
			}
			to := plain(values[name]["service"].text)
			if to == "" || c.services[to] == nil && !slices.Contains(services, to) {
				to = p.Key
				c.services[to] = own
			}
			c.routers = append(c.routers, router{name: name, rule: values[name]["rule"].text, at: own.at,
				middlewares: plains([]string{values[name]["middlewares"].text}), services: []string{to},
				tls: encrypted(values[name])})
		}
	}
}

// encrypted reports whether the labels of a router say TLS.
func encrypted(router map[string]word) bool {
	for key, w := range router {
		if (key == "tls" || strings.HasPrefix(key, "tls.")) && w.text != "false" {
			return true
		}
	}
	return false
}
