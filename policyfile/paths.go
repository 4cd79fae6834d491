package policyfile

import (
	"slices"
	"strings"
)

// What is done with a path that two servers may read in two ways. See inbound.Protection's AmbiguousPaths.
const (
	Refuse    = "refuse"
	Normalize = "normalize"
	Keep      = "keep"
)

// PathRules are the words of ambiguousPaths, the strictest first. Nobody may change them.
var PathRules = []string{Refuse, Normalize, Keep}

// PathRule is what is done with doubtful paths of requests that come in at listen, one of Listens or "" for calls
// that go out: a word of PathRules.
func (s *Set) PathRule(listen string) string {
	if rule := s.current.Load().paths[listen]; rule != "" {
		return rule
	}
	return Normalize
}

// CaseDecides reports whether a service that takes upper and lower case for the same would see another route, of
// those at listen, than Route and Entrance do.
func (s *Set) CaseDecides(listen, host, path string) bool {
	t := s.current.Load()
	x := t.index
	if listen != "" {
		x = t.entrances[listen]
	}
	return x != nil && x.caseDecides(host, path)
}

// pathRules finds the rule of each address.
func pathRules(file *File) map[string]string {
	rules := map[string]string{"": file.AmbiguousPaths}
	for i := range file.Protect {
		p := &file.Protect[i].Protection
		if p.Listen == "" {
			continue
		}
		rule := p.AmbiguousPaths
		switch {
		case rule != "":
		case file.authenticatesAt(p.Listen):
			rule = Refuse
		default:
			rule = Normalize
		}
		if before, ok := rules[p.Listen]; !ok || slices.Index(PathRules, rule) < slices.Index(PathRules, before) {
			rules[p.Listen] = rule
		}
	}
	return rules
}

// authenticatesAt reports whether some callers at an address have to prove who they are.
func (f *File) authenticatesAt(listen string) bool {
	return slices.ContainsFunc(f.Protect, func(p Protected) bool {
		return p.Protection.Listen == listen && p.Protection.Authenticates()
	})
}

// identity is the names of the headers that say whose an answer is: those that a service lists, or else those that
// identify callers in the file.
func (f *File) identity(own []string) []string {
	if len(own) > 0 {
		return slices.Clone(own)
	}
	var names []string
	take := func(word string) {
		if name, ok := strings.CutPrefix(word, "header:"); ok && !slices.ContainsFunc(names, func(n string) bool {
			return strings.EqualFold(n, name)
		}) {
			names = append(names, name)
		}
	}
	for i := range f.Protect {
		p := &f.Protect[i].Protection
		take(p.Caller)
		take(p.RateLimit.Key)
	}
	return names
}
