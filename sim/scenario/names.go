package scenario

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/sim/expect"
)

// names are the names of all fleets and services, in the order of the file and as sets.
type names struct {
	fleets, services   []string
	isFleet, isService map[string]bool
}

func namesOf(s *Scenario) *names {
	n := &names{isFleet: map[string]bool{}, isService: map[string]bool{}}
	for i := range s.Clients {
		n.fleets = append(n.fleets, s.Clients[i].Name)
		n.isFleet[s.Clients[i].Name] = true
	}
	for i := range s.Services {
		n.services = append(n.services, s.Services[i].Name)
		n.isService[s.Services[i].Name] = true
	}
	return n
}

// check reports names that two things have, or that no expectation could speak of.
func (n *names) check(m *mistakes) {
	const fix = "allowed: one word of at most 100 bytes without brackets, commas and comparisons, other than all, " +
		"before, during, after and p99"
	for _, list := range []struct {
		path  string
		names []string
	}{{"clients", n.fleets}, {"services", n.services}} {
		for _, name := range list.names {
			problem := ""
			switch {
			case !expect.CanName(name):
				problem = strictyaml.Quote(name) + " cannot stand in an expectation"
			case strings.Contains(name, "->"):
				problem = strictyaml.Quote(name) + " reads like a call"
			}
			if problem != "" {
				m.Add(list.path+"."+name, problem, fix)
			}
		}
	}
	for _, name := range n.services {
		if n.isFleet[name] {
			m.Add("services."+name, strictyaml.Quote(name)+" is the name of a fleet too", "give one of them another name")
		}
	}
}

// subjects are the names that an expectation can be about.
func (n *names) subjects(kind expect.SubjectKind) []string {
	switch kind {
	case expect.Fleet:
		return n.fleets
	case expect.Service:
		return n.services
	}
	return nil
}

// suggest is strictyaml.Suggest for names of which there may be none, or too many to compare.
func suggest(name string, names []string) string {
	const most = 1000
	if len(names) == 0 || len(names) > most {
		return ""
	}
	return strictyaml.Suggest(name, slices.Clone(names))
}
