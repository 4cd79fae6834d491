package importer

import "github.com/abate-go/abate/topology"

// tidied takes out of names and remarks what moves the cursor of a terminal or begins a line. A log reads as a command
// what stands at the beginning of a line, and whoever audits files has not always written them.
func tidied(f *topology.Form) {
	for i := range f.Services {
		s := &f.Services[i]
		clean(&s.Name)
		for j := range s.Aliases {
			clean(&s.Aliases[j])
		}
	}
	for i := range f.Calls {
		c := &f.Calls[i]
		clean(&c.From)
		clean(&c.To)
		for j := range c.Layers {
			tidiedLayer(&c.Layers[j])
		}
	}
	for i := range f.Policies {
		p := &f.Policies[i]
		for _, names := range [][]string{p.Callees, p.Callers} {
			for j := range names {
				clean(&names[j])
			}
		}
		clean(&p.Namespace)
		tidiedLayer(&p.Layer)
	}
	for i := range f.Leads {
		l := &f.Leads[i]
		clean(&l.From)
		clean(&l.Namespace)
		for j := range l.To {
			clean(&l.To[j])
		}
	}
	for i := range f.Remarks {
		r := &f.Remarks[i]
		for _, text := range []*string{&r.Subject, &r.Text, &r.Fix, &r.Assumed} {
			clean(text)
		}
	}
}

func tidiedLayer(l *topology.Layer) {
	for _, text := range []*string{&l.Name, &l.Product, &l.Version.V, &l.Choice, &l.Match.Host, &l.Match.Path,
		&l.Match.Other} {
		clean(text)
	}
	for i := range l.Match.Methods {
		clean(&l.Match.Methods[i])
	}
	for i := range l.Repeats {
		clean(&l.Repeats[i].Word)
	}
}

func clean(text *string) { *text = topology.OneLine(*text) }
