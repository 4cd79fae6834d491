package summary

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/abate-go/abate/sim"
)

// JSON writes one result, the same bytes for the same result. Nothing is written on an error.
func JSON(w io.Writer, r *sim.Result) error { return writeJSON(w, r) }

// JSONList writes the results of several scenarios as {"version": …, "results": […]}. Nothing is written on an error.
func JSONList(w io.Writer, results []*sim.Result) error {
	if results == nil {
		results = []*sim.Result{}
	}
	return writeJSON(w, struct {
		Version int           `json:"version"`
		Results []*sim.Result `json:"results"`
	}{sim.Version, results})
}

func writeJSON(w io.Writer, what any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(what); err != nil {
		return fmt.Errorf("a result that cannot be written as JSON: %w", err)
	}
	_, err := w.Write(text.Bytes())
	return err
}
