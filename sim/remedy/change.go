package remedy

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/scenario"
)

// Change is one thing to do, or several together: see Join. The zero Change changes nothing.
type Change struct {
	Key  string  // what it changes: "pay circuitBreaker"
	Name string  // the same in every system: "circuitBreaker small"
	Text string  // in one line: "pay: circuitBreaker: {kind: adaptive} (was off)"
	YAML string  // the piece of a policy file; of a queue, the piece of a scenario
	Step float64 // how far it is from what is there, about in doublings

	lines  []line
	queues []queueChange
}

// Changes lists what may be tried with a variant, the smallest steps first. Some of them may turn out to be impossible:
// see Apply.
func Changes(s *scenario.Scenario, v *scenario.Variant) []Change {
	var all []Change
	places := placesOf(s, v)
	seen := map[string]bool{}
	for i := range places {
		p := &places[i]
		if p.consuming {
			continue // what is retried for messages is decided by their topics
		}
		for _, o := range guardOptions(p) {
			all = append(all, newChange("services", p.listed, &o))
		}
		if seen[p.service.Name] {
			continue
		}
		seen[p.service.Name] = true
		for _, o := range gateOptions(p) {
			all = append(all, newChange("protect", p.service.Name, &o))
		}
	}
	all = append(all, everywhere(all)...)
	services := s.ServicesOf(v)
	for i := range services {
		for _, o := range queueOptions(&services[i]) {
			all = append(all, newChange("queue", services[i].Name, &o))
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(a.Step, b.Step) })
	return all
}

// newChange makes a change of an option at a place.
func newChange(list, name string, o *option) Change {
	c := Change{Key: name + " " + o.part, Name: o.part + " " + o.name, Step: o.step}
	if o.queue != nil {
		c.queues = []queueChange{*o.queue}
		c.Text = name + ": queue " + strings.Trim(o.lines[0].flow(), "{}") + " (was " + o.was + ")"
		c.YAML = queueText(c.queues)
		return c
	}
	what := make([]string, len(o.lines))
	for i, l := range o.lines {
		l.list, l.name = list, name
		c.lines = append(c.lines, l)
		if what[i] = l.key + ": " + l.flow(); l.key == "" {
			what[i] = "{}"
		}
	}
	c.Text = name + ": " + strings.Join(what, ", ") + " (was " + o.was + ")"
	if list == "protect" {
		c.Text = "protect " + c.Text
	}
	c.YAML = text(c.lines)
	return c
}

func queueText(queues []queueChange) string {
	var b strings.Builder
	for _, q := range queues {
		var e strings.Builder
		entry(&e, []line{{list: "services", name: q.service, key: "queue", section: fields(q.to)}}, "services", q.service)
		b.WriteString(e.String())
	}
	return "services: # of the scenario, for the service itself\n" + b.String()
}

// everywhere joins changes of the same name at all places, where there are several.
func everywhere(changes []Change) []Change {
	var names []string
	byName := map[string][]*Change{}
	for i := range changes {
		c := &changes[i]
		if byName[c.Name] == nil {
			names = append(names, c.Name)
		}
		byName[c.Name] = append(byName[c.Name], c)
	}
	var all []Change
	for _, name := range names {
		if list := byName[name]; len(list) > 1 {
			one := *list[0]
			part, _, _ := strings.Cut(one.Key[strings.Index(one.Key, " ")+1:], "\n")
			for _, c := range list[1:] {
				one, _ = Join(&one, c)
			}
			one.Key, one.Name, one.Step = "every "+part, "every "+name, 1.5*list[0].Step
			all = append(all, one)
		}
	}
	return all
}

// Join returns two changes made together, and whether they can be: not if they are about the same thing.
func Join(a, b *Change) (Change, bool) {
	c := Change{Key: a.Key + " + " + b.Key, Name: a.Name + " + " + b.Name, Text: a.Text + "; " + b.Text,
		Step: a.Step + b.Step, lines: slices.Concat(a.lines, b.lines), queues: slices.Concat(a.queues, b.queues)}
	for _, x := range a.lines {
		for _, y := range b.lines {
			if x.list == y.list && x.name == y.name && x.key == y.key {
				return Change{}, false
			}
		}
	}
	for _, x := range a.queues {
		for _, y := range b.queues {
			if x.service == y.service {
				return Change{}, false
			}
		}
	}
	c.YAML = text(c.lines)
	if len(c.queues) > 0 {
		c.YAML = strings.TrimPrefix(c.YAML+"---\n"+queueText(c.queues), "---\n")
	}
	return c, true
}

// OfPolicy reports whether the change is one of the policy alone, which a policy file can hold.
func (c *Change) OfPolicy() bool { return len(c.queues) == 0 }

// Apply returns a copy of the scenario with the changed variant. An error says why the change is impossible there.
func (c *Change) Apply(s *scenario.Scenario, v *scenario.Variant) (*scenario.Scenario, *scenario.Variant, error) {
	s, v = s.Copy(v)
	for _, q := range c.queues {
		for i := range v.Overrides {
			if v.Overrides[i].Name == q.service {
				v.Overrides[i].Queue = q.to
			}
		}
	}
	if len(c.lines) == 0 {
		return s, v, nil
	}
	if err := write(text(c.lines), v); err != nil {
		return nil, nil, err
	}
	if lost := s.LostByScale(v); lost != "" {
		return nil, nil, errors.New("scale: " + lost)
	}
	return s, v, nil
}
