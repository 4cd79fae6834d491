package topology

import (
	"cmp"
	"net"
	"slices"
	"strings"
)

// Names finds the service that a name in a file means. The rules, in this order:
//
//  1. A name is stripped of what is not part of it: scheme, path, port, Envoy's "outbound|8080|v1|", the cluster's
//     domain (".svc.cluster.local"), a trailing dot, upper case.
//  2. It is the name or an alias of a service, stripped in the same way.
//  3. It is the short name of a service in the namespace of the file.
//  4. Its first label is that of exactly one service, and one of the two has no namespace.
//
// Build it with NewNames. It is not for use by several goroutines.
type Names struct {
	exact map[string]string   // stripped name or alias to service
	first map[string][]string // first label to services
}

// Rule says how a name was found.
type Rule string

// The rules by which a name is found.
const (
	ByName      Rule = "the name of the service"
	ByAlias     Rule = "another name of the service"
	ByNamespace Rule = "the short name in the namespace of the file"
	ByLabel     Rule = "the first label, which one service has"
	NotFound    Rule = "no service has this name"
	Ambiguous   Rule = "several services have this name"
)

// NewNames returns the names of services.
func NewNames(services []Service) *Names {
	n := &Names{exact: map[string]string{}, first: map[string][]string{}}
	for _, s := range services { // an alias never takes the name of another service
		n.Add(Service{Name: s.Name})
	}
	for _, s := range services {
		n.Add(s)
	}
	return n
}

// Add adds a service. The first service to have a name or alias keeps it.
func (n *Names) Add(s Service) {
	own := Strip(s.Name)
	if _, taken := n.exact[own]; !taken {
		n.exact[own] = s.Name
	}
	for _, alias := range s.Aliases {
		if a := Strip(alias); n.exact[a] == "" {
			n.exact[a] = s.Name
		}
	}
	label := firstLabel(own)
	if !slices.Contains(n.first[label], s.Name) {
		n.first[label] = append(n.first[label], s.Name)
	}
}

// Find returns the service that a name means in a file of a namespace, which may be empty, and the rule that found it.
// The service is empty when the rule is NotFound or Ambiguous.
func (n *Names) Find(name, namespace string) (service string, rule Rule) {
	stripped := Strip(name)
	if !strings.Contains(stripped, ".") && namespace != "" {
		if s := n.exact[stripped+"."+strings.ToLower(namespace)]; s != "" {
			return s, ByNamespace
		}
	}
	if s := n.exact[stripped]; s != "" {
		if Strip(s) == stripped {
			return s, ByName
		}
		return s, ByAlias
	}
	if net.ParseIP(stripped) != nil {
		return "", NotFound
	}
	candidates := slices.DeleteFunc(slices.Clone(n.first[firstLabel(stripped)]), func(s string) bool {
		return strings.Contains(stripped, ".") && strings.Contains(s, ".")
	})
	switch len(candidates) {
	case 0:
		return "", NotFound
	case 1:
		return candidates[0], ByLabel
	}
	return "", Ambiguous
}

// Strip returns what two spellings of one name have in common; see Names.
func Strip(name string) string {
	s := strings.ToLower(strings.TrimSpace(name))
	if strings.Contains(s, "|") { // outbound|8080|v1|orders.shop.svc.cluster.local
		s = s[strings.LastIndexByte(s, '|')+1:]
	}
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	s = strings.TrimSuffix(strings.Trim(s, "[]"), ".")
	if i := strings.Index(s, ".svc."); i > 0 {
		s = s[:i]
	}
	s = strings.TrimSuffix(s, ".svc")
	if i := strings.LastIndex(s, ".$("); i > 0 && strings.HasSuffix(s, ")") { // a namespace that Kustomize fills in
		s = s[:i]
	}
	return s
}

func firstLabel(stripped string) string {
	label, _, _ := strings.Cut(stripped, ".")
	return cmp.Or(label, stripped)
}
