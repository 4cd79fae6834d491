package series

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Handler serves the page of a registry: as OpenMetrics to those who ask for it, as Prometheus' text to all others;
// compressed with gzip to those who rather take that. The parameter name[], which may be there several times, leaves
// out metrics with other names.
func Handler(r *Registry) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		families, err := r.Gather()
		if err != nil {
			http.Error(w, fmt.Sprintf("An error has occurred while serving metrics:\n\n%v", err),
				http.StatusInternalServerError)
			return
		}
		if names := req.URL.Query()["name[]"]; len(names) > 0 {
			families = slices.DeleteFunc(families, func(f *Family) bool { return !slices.Contains(names, f.Desc.Name) })
		}
		format, contentType := chosen(req.Header.Get("Accept"))
		w.Header().Set("Content-Type", contentType)
		var to io.Writer = w
		if prefersGzip(req.Header["Accept-Encoding"]) {
			w.Header().Set("Content-Encoding", "gzip")
			z := compressors.Get().(*gzip.Writer)
			z.Reset(w)
			defer func() {
				_ = z.Close() // the reader may have left
				z.Reset(nil)  // which lets go of the answer
				compressors.Put(z)
			}()
			to = z
		}
		var page []byte
		for _, f := range families {
			if page = format.Append(page, f); len(page) > 32<<10 {
				if _, err := to.Write(page); err != nil {
					return // the reader has left
				}
				page = page[:0]
			}
		}
		_, _ = to.Write(format.End(page)) // the reader may have left
	})
}

// compressors are kept: each has some hundred kilobytes.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// chosen returns the format that an Accept field asks for first, and how it is called. What we do not have, such as
// protocol buffers, does not count; all that is left is the text.
func chosen(accept string) (f Format, contentType string) {
	best, name, escaping := 0.0, "text/plain; version=0.0.4", ""
	for _, c := range clauses(accept) {
		kind, of := Text, "text/plain; version=0.0.4"
		switch version := c.of("version"); {
		case c.value == "text/plain" && (version == "" || version == "0.0.4"):
		case c.value == "application/openmetrics-text" && (version == "" || version == "0.0.1" || version == "1.0.0"):
			if version == "" {
				version = "0.0.1"
			}
			kind, of = OpenMetrics, "application/openmetrics-text; version="+version
		default:
			continue
		}
		if c.quality > best {
			best, f, name, escaping = c.quality, kind, of, c.of("escaping")
		}
	}
	// How names are changed that older scrapers could not read. None of ours is.
	if !slices.Contains([]string{"allow-utf-8", "underscores", "dots", "values"}, escaping) {
		escaping = "underscores"
	}
	return f, name + "; charset=utf-8; escaping=" + escaping
}

// prefersGzip reports whether the Accept-Encoding fields rather have gzip than nothing.
func prefersGzip(fields []string) bool {
	gzip, identity := -1.0, -1.0 // nothing is said
	for _, field := range fields {
		for _, c := range clauses(field) {
			if c.value == "gzip" || c.value == "*" {
				gzip = max(gzip, c.quality)
			}
			if c.value == "identity" || c.value == "*" {
				identity = max(identity, c.quality)
			}
		}
	}
	return gzip > 0 && gzip > identity
}

// clause is one of what an Accept field lists: text/plain;version=0.0.4;q=0.5.
type clause struct {
	value   string
	quality float64
	more    string // the parameters
}

// clauses splits a field.
func clauses(field string) (all []clause) {
	for part := range strings.SplitSeq(field, ",") {
		c := clause{quality: 1}
		c.value, c.more, _ = strings.Cut(part, ";")
		c.value = strings.TrimSpace(c.value)
		if q := c.of("q"); q != "" {
			var err error
			if c.quality, err = strconv.ParseFloat(q, 64); err != nil {
				c.quality = 0
			}
		}
		all = append(all, c)
	}
	return all
}

// of returns a parameter, "" if it is not there.
func (c clause) of(name string) string {
	for p := range strings.SplitSeq(c.more, ";") {
		if key, value, _ := strings.Cut(p, "="); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
