package topology

import (
	"fmt"
	"slices"
	"strings"
)

// goBack takes out the calls of a gateway that may go on to whoever makes them, where only an address in a variable
// tells of them. A service asks a gateway for others, and nobody says for which; taken for every route it would call
// itself in a circle, of which no number can be said.
func (j *joining) goBack() {
	proxy, from := map[string]bool{}, map[string][]string{}
	for i := range j.out.Services {
		if s := &j.out.Services[i]; s.Proxy {
			proxy[s.Name] = true
		}
	}
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		from[c.From] = append(from[c.From], c.To)
	}
	reached := map[string]map[string]bool{} // of a gateway, what its requests come to
	var kept []Call
	for _, c := range j.out.Calls {
		if c.From == "" || !proxy[c.To] || len(c.Layers) > 0 || c.PerRequest.Origin != Assumed {
			kept = append(kept, c)
			continue
		}
		if reached[c.To] == nil {
			reached[c.To] = reach(from, c.To)
		}
		if !reached[c.To][c.From] {
			kept = append(kept, c)
			continue
		}
		if j.ownName(&c) {
			continue
		}
		j.out.Remarks = append(j.out.Remarks, Remark{Rule: "F701", At: c.At,
			Subject: "calls of " + c.From + " through " + c.To,
			Text: fmt.Sprintf("%s has the address of %s, which leads to %s itself: which of its routes %s calls is not known, "+
				"so such calls are left out", c.From, c.To, c.From, c.From),
			Fix: fmt.Sprintf("say whom %s calls through it in a calls file (from, to)", c.From)})
	}
	j.out.Calls = kept
}

// ownName reports whether the address of a call of a gateway is a host of which all routes lead to who has it: the name
// under which others find the caller, which it is told so that it can pass it on.
func (j *joining) ownName(c *Call) bool {
	own := false
	for _, f := range j.found {
		if f.At != c.At || f.Service != c.To {
			continue
		}
		routes := 0
		for i := range j.out.Calls {
			d := &j.out.Calls[i]
			if d.From != c.To || !slices.ContainsFunc(d.Layers, func(l Layer) bool { return l.Match.serves(f.Name) }) {
				continue
			}
			if routes++; d.To != c.From {
				return false
			}
		}
		if own = routes > 0; !own {
			return false
		}
	}
	return own
}

// serves reports whether a match names a host, among others or alone.
func (m Match) serves(name string) bool {
	return slices.ContainsFunc(strings.Split(m.Host, ", "), func(host string) bool {
		return host != "" && strings.EqualFold(host, Strip(name))
	})
}

// reach returns the services that calls from a service lead to.
func reach(from map[string][]string, service string) map[string]bool {
	seen, todo := map[string]bool{}, []string{service}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, to := range from[s] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return seen
}
