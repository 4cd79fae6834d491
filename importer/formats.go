package importer

import (
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/traces"
	"github.com/abate-go/abate/importer/workloads"
	"github.com/abate-go/abate/topology"
)

// format is one kind of file. A document belongs to the first format that recognises it.
type format struct {
	name      string
	recognise func(source.Document) bool
	read      func([]source.Document, source.Assume) topology.Form
}

// formats are all that an audit reads.
var formats = []format{
	{"calls", isForm, readForms},
	{"workloads", workloads.Recognise, workloads.Read},
	{"traces", traces.Recognise, traces.Read},
}

// Formats returns the names of all formats that Read knows.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}
