package scenario

import (
	"slices"
)

// Copy returns a copy of the scenario with one of its variants, and that variant in the copy. Both may be changed: they
// share no list that a change would be seen through, but for the calls of services and fleets.
func (s *Scenario) Copy(v *Variant) (*Scenario, *Variant) {
	c, w := *s, *v
	c.Clients = slices.Clone(s.Clients)
	for i := range c.Clients {
		c.Clients[i].Curve = slices.Clone(c.Clients[i].Curve)
	}
	c.Faults = slices.Clone(s.Faults)
	c.Services = slices.Clone(s.Services)
	w.Overrides = slices.Clone(s.ServicesOf(v))
	if v.Guards != nil {
		file := *v.Guards
		file.Services = slices.Clone(file.Services)
		w.Guards = &file
	}
	c.Variants = []Variant{w}
	return &c, &c.Variants[0]
}

// LostByScale says what of a variant's policy the scale of the scenario would not keep, so that [Parse] refuses it;
// empty if it keeps everything.
func (s *Scenario) LostByScale(v *Variant) string {
	if s.Scale <= 1 {
		return ""
	}
	alone := *s
	alone.Variants = []Variant{*v}
	for name, rest := range s.narrowed {
		if problem := alone.tooWide(name, s.Scale, rest); problem != "" {
			return problem
		}
	}
	for i := range s.Clients {
		if f := s.Clients[i]; slices.Contains(s.single, f.Name) {
			f.Instances = 1
			if problem := alone.absolute(&f, s.Scale); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// FullSize returns how many instances of a service or fleet each of its instances here stands for, and how many times
// as wide each of them is in full size. Both are 1 without a scale.
func (s *Scenario) FullSize(program string) (instances, wider int) {
	if s.Scale <= 1 {
		return 1, 1
	}
	if slices.Contains(s.single, program) {
		return 1, s.Scale
	}
	if rest := s.narrowed[program]; rest > 0 {
		return s.Scale / rest, rest
	}
	return s.Scale, 1
}
