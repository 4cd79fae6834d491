package audit

import (
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// effort is how much is tried before Propose stops with what it has found: numbers of tries, each times the size of the
// form, and what it takes to follow its calls and to read a file again. It is some seconds.
const effort = 50_000

// So many steps through a form, and so many bytes of a file, are one of effort.
const (
	stepsOfEffort = 1000
	bytesOfEffort = 200
)

// amplification is what the paths of a form are, which is effort.
func (p *plan) amplification(form *topology.Form, o lint.Options) *lint.Amplified {
	defer p.counted(form, &o)()
	return lint.Amplification(*form, o)
}

// lint is what is wrong with a form, which is effort.
func (p *plan) lint(form *topology.Form, o lint.Options) []lint.Finding {
	defer p.counted(form, &o)()
	return lint.Run(*form, o)
}

// counted takes the steps that are made with the options until it ends off the effort.
func (p *plan) counted(form *topology.Form, o *lint.Options) (end func()) {
	steps, all := 0, o.Steps
	o.Steps = &steps
	return func() {
		if p.effort -= 1 + len(form.Calls) + len(form.Services) + steps/stepsOfEffort; all != nil {
			*all += steps
		}
	}
}

// read reads a file again, which is effort.
func (in *inserts) read(f importer.File) topology.Form {
	*in.effort -= len(f.Data) / bytesOfEffort
	form, _ := importer.Read([]importer.File{f}, in.assume)
	return form
}
