package topology

// implied adds the calls that must exist because somebody set a policy for them. Policies that name several callers, as
// the scopes of a Resiliency of Dapr do, name all that may call: where they and their callees are the same services,
// such calls would go in a circle that no file tells of, so these are not made.
func (j *joining) implied(policies []Policy) {
	type wanted struct {
		Call
		several bool
	}
	var all []wanted
	from := map[string][]string{}
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		from[c.From] = append(from[c.From], c.To)
	}
	for i := range policies {
		p := &policies[i]
		if len(p.Callers) == 0 || patterns(p.Callees) || patterns(p.Callers) {
			continue
		}
		to, ok := j.callee(p)
		if !ok {
			continue
		}
		for _, caller := range p.Callers {
			if name, known := j.service(caller, p.Namespace, p.Layer.At); known && name != to {
				all = append(all, wanted{Call{From: name, To: to, At: p.Layer.At}, len(p.Callers) > 1})
				from[name] = append(from[name], to)
			}
		}
	}
	j.unclear = map[string]bool{}
	reached := map[string]map[string]bool{}
	for _, w := range all {
		if w.several && reached[w.To] == nil {
			reached[w.To] = reach(from, w.To)
		}
		if w.several && reached[w.To][w.From] && !j.has(w.From, w.To) {
			j.unclear[w.To] = true
			continue
		}
		j.call(w.Call)
	}
}

// has reports whether there is a call between two services.
func (j *joining) has(from, to string) bool {
	for i := range j.out.Calls {
		if c := &j.out.Calls[i]; c.From == from && c.To == to {
			return true
		}
	}
	return false
}
