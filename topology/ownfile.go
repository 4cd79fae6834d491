package topology

import "slices"

// calledAfterItsFile is a gateway that has the name of its file, which is that of a service behind it: orders.conf of
// nginx for what is called orders.
type calledAfterItsFile struct{ name, product, file string }

// apart gives gateways that are called after their file the name of their product where they would call themselves.
func apart(f Form) Form {
	own := map[calledAfterItsFile]bool{}
	of := func(c *Call) calledAfterItsFile {
		if len(c.Layers) == 0 || c.Layers[0].Kind != Gateway {
			return calledAfterItsFile{}
		}
		return calledAfterItsFile{Strip(c.From), c.Layers[0].Product, c.At.File}
	}
	for i := range f.Calls {
		if c := &f.Calls[i]; c.From != "" && Strip(c.From) == Strip(c.To) && of(c).product != "" {
			own[of(c)] = true
		}
	}
	if len(own) == 0 {
		return f
	}
	f.Calls, f.Services = slices.Clone(f.Calls), slices.Clone(f.Services)
	for i := range f.Calls {
		if c := &f.Calls[i]; own[of(c)] {
			c.From = c.Layers[0].Product
		}
	}
	for i := range f.Services {
		s := &f.Services[i]
		for g := range own {
			if g.name == Strip(s.Name) && g.file == s.At.File {
				s.Name = g.product
			}
		}
	}
	return f
}
