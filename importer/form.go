package importer

import (
	"errors"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// isForm reports whether d is the YAML form of package topology: people write in it what no file says.
func isForm(d source.Document) bool {
	n := d.Root
	if n.Get("apiVersion").Exists() || n.Get("kind").Exists() {
		return false
	}
	calls := n.Get("calls").Items()
	if len(calls) > 0 {
		return calls[0].Get("to").Exists()
	}
	for _, s := range n.Get("services").Items() {
		if s.Get("name").Exists() && s.Get("rate|ownTime|capacity|answersWith|aliases|callTree|database|speaks").Exists() {
			return true
		}
	}
	return false
}

func readForms(docs []source.Document, _ source.Assume) topology.Form {
	var all topology.Form
	for _, d := range docs {
		form, err := topology.ParseAt(d.File, d.Data, d.At)
		var mistakes topology.Errors
		if errors.As(err, &mistakes) {
			for _, m := range mistakes {
				all.Remarks = append(all.Remarks, topology.Remark{Rule: "F606", At: d.At(m.Line, m.Col), Subject: m.Field,
					Text: m.Field + ": " + m.Problem, Fix: m.Fix})
			}
		}
		all.Add(form)
	}
	return all
}
