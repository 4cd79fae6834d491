package topology

import "slices"

// Lead says that whoever calls one name reaches other services: a route sends the requests there, or the pods that a
// Service selects are those of another.
type Lead struct {
	From      string   `yaml:"from"`
	To        []string `yaml:"to"` // the requests are shared among them
	Namespace string   `yaml:"namespace,omitempty"`
	At        Position `yaml:"at,omitempty"`
	// Route reports that only the sidecar of a caller does it. A gateway has routes of its own.
	Route bool `yaml:"route,omitempty"`

	itself bool // the name stays a service
	ways   int  // among which the requests are shared
}

// follow makes the calls of names that lead elsewhere those of the services that get them, each with the layers that it
// has by the name that is called. Where several services share them, or some stay, that name is a proxy in front of the
// others. A name that makes calls is taken for the service that it is.
func (j *joining) follow(leads []Lead) {
	calls := map[string]bool{}
	for i := range j.out.Calls {
		calls[j.out.Calls[i].From] = true
	}
	for _, route := range []bool{false, true} { // whose pods they are decides what a route leads to
		by, order := map[string]*Lead{}, []string{}
		for _, l := range leads {
			from, to := j.leads(l)
			if l.Route != route || from == "" {
				continue
			}
			if by[from] == nil {
				by[from] = &Lead{From: from, At: l.At, Route: route}
				order = append(order, from)
			}
			by[from].To = append(by[from].To, to...)
		}
		for _, from := range order {
			l := by[from]
			for i, to := range l.To {
				l.To[i] = j.end(to)
			}
			slices.Sort(l.To)
			l.To = slices.Compact(l.To)
			l.ways = len(l.To)
			l.itself = slices.Contains(l.To, from)
			l.To = slices.DeleteFunc(l.To, func(s string) bool { return s == from })
			if !calls[from] && len(l.To) > 0 {
				l.itself = l.itself || j.twice(from, l.To)
				j.lead(l)
			}
		}
	}
}

// leads returns the services that the names of a lead mean, none where one of them is not known.
func (j *joining) leads(l Lead) (from string, to []string) {
	find := func(name string) string {
		if s := j.end(name); s != name {
			return s
		}
		s, _ := j.names.Find(name, l.Namespace)
		return j.end(s)
	}
	for _, name := range l.To {
		if s := find(name); s != "" {
			to = append(to, s)
		}
	}
	if len(to) == 0 {
		return "", nil
	}
	return find(l.From), to
}

// end returns the service that one became, over as many names as lead there.
func (j *joining) end(name string) string {
	for s, led := j.led[name]; led; s, led = j.led[name] {
		name = s
	}
	return name
}

// twice reports whether somebody calls a name and also the one service it leads to, with layers of their own.
func (j *joining) twice(name string, to []string) bool {
	callers := map[string]bool{}
	for i := range j.out.Calls {
		if c := &j.out.Calls[i]; c.To == name {
			callers[c.From] = true
		}
	}
	return slices.ContainsFunc(j.out.Calls, func(c Call) bool { return slices.Contains(to, c.To) && callers[c.From] })
}

func (j *joining) lead(l *Lead) {
	var moved, stay bool
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		switch {
		case c.To != l.From:
		case l.Route && c.ofGateway():
			stay = true
		default:
			moved = true
			if len(l.To) == 1 && !l.itself {
				c.To = l.To[0]
			}
		}
	}
	at := slices.IndexFunc(j.out.Services, func(s Service) bool { return s.Name == l.From })
	if !moved && (l.Route || stay) || at < 0 {
		return
	}
	if len(l.To) > 1 || l.itself {
		if s := &j.out.Services[at]; moved {
			s.Proxy = true
			keep(&s.AnswersWith, DefaultOf("same", "a name of several services", l.At))
			even := DefaultOf(1/float64(l.ways), "requests shared evenly", l.At)
			for _, to := range l.To {
				j.out.Calls = append(j.out.Calls, Call{From: l.From, To: to, At: l.At, PerRequest: even})
			}
		}
		return
	}
	if stay {
		return
	}
	to := slices.IndexFunc(j.out.Services, func(s Service) bool { return s.Name == l.To[0] })
	if to < 0 {
		return
	}
	gone := j.out.Services[at]
	gone.Aliases = append(slices.Clone(gone.Aliases), gone.Name)
	j.out.Services[to].merge(gone)
	j.out.Services = slices.Delete(j.out.Services, at, at+1)
	j.led[l.From] = l.To[0]
}
