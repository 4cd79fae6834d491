package series

import (
	"math"
	"strconv"
	"strings"
)

// Format is how a page is written.
type Format uint8

const (
	// Text is Prometheus' text format 0.0.4.
	Text Format = iota
	// OpenMetrics is OpenMetrics 1.0. It has exemplars and units.
	OpenMetrics
)

// Append writes the families to page.
func (f Format) Append(page []byte, families ...*Family) []byte {
	w := writer{page, f == OpenMetrics}
	for _, family := range families {
		w.family(family)
	}
	return w.page
}

// End writes what ends a page.
func (f Format) End(page []byte) []byte {
	if f == OpenMetrics {
		page = append(page, "# EOF\n"...)
	}
	return page
}

// writer writes families.
type writer struct {
	page []byte
	open bool // it is OpenMetrics
}

func (w *writer) text(s string) { w.page = append(w.page, s...) }

// family writes one, if it has samples.
func (w *writer) family(f *Family) {
	name, kind := f.Desc.Name, f.Kind.String()
	if w.open && f.Kind == CounterKind { // whose family has the name without the suffix that its samples have to have
		if short, ok := strings.CutSuffix(name, total); ok {
			name = short
		} else {
			kind = "unknown"
		}
	}
	w.about("# HELP ", name)
	w.escaped(f.Desc.Help, w.open)
	w.about("\n# TYPE ", name)
	w.text(kind)
	if w.open && f.Desc.Unit != "" {
		w.about("\n# UNIT ", name)
		w.text(f.Desc.Unit)
	}
	w.text("\n")
	for i := range f.Samples {
		w.sample(&f.Samples[i])
	}
}

const total = "_total"

// about begins what a line says of a metric.
func (w *writer) about(what, name string) {
	w.text(what)
	w.text(name)
	w.text(" ")
}

func (w *writer) sample(s *Sample) {
	d := s.Distribution
	switch s.Kind {
	case CounterKind, GaugeKind:
		w.series(s, "", "", 0)
		w.number(s.Value)
		w.text("\n")
		return
	case HistogramKind:
		for i := range d.Buckets {
			w.series(s, "_bucket", "le", d.Buckets[i].Bound)
			w.count(d.Buckets[i].Count)
			if e := d.Buckets[i].Exemplar; w.open && e != nil {
				w.exemplar(e)
			}
			w.text("\n")
		}
	case SummaryKind:
		for _, q := range d.Quantiles {
			w.series(s, "", "quantile", q.Share)
			w.number(q.Value)
			w.text("\n")
		}
	}
	w.series(s, "_sum", "", 0)
	w.number(d.Sum)
	w.text("\n")
	w.series(s, "_count", "", 0)
	w.count(d.Count)
	w.text("\n")
}

// series writes the name of a series with its labels, and one more with a number unless that has no name.
func (w *writer) series(s *Sample, suffix, more string, bound float64) {
	w.text(s.Desc.Name)
	w.text(suffix)
	before := "{"
	for i, name := range s.Desc.Labels {
		w.label(before, name, s.Values[i])
		before = ","
	}
	if more != "" {
		w.text(before)
		w.text(more)
		w.text(`="`)
		w.number(bound)
		w.text(`"`)
		before = ","
	}
	if before == "," {
		w.text("}")
	}
	w.text(" ")
}

// label writes one, after what comes before it.
func (w *writer) label(before, name, value string) {
	w.text(before)
	w.text(name)
	w.text(`="`)
	w.escaped(value, true)
	w.text(`"`)
}

func (w *writer) exemplar(e *Exemplar) {
	w.text(" # ")
	before := "{"
	for _, l := range e.Labels {
		w.label(before, l.Name, l.Value)
		before = ","
	}
	w.text("} ")
	w.number(e.Value)
	w.text(" ")
	w.number(float64(e.At.UnixNano()) / 1e9)
}

// escaped writes a text that may have line breaks, backslashes and, of a value, quotes.
func (w *writer) escaped(s string, quotes bool) {
	for from := 0; ; {
		n := strings.IndexAny(s[from:], "\\\n\"")
		if n < 0 {
			w.text(s[from:])
			return
		}
		w.text(s[from : from+n])
		switch c := s[from+n]; {
		case c == '\n':
			w.text(`\n`)
		case c == '\\' || quotes:
			w.page = append(w.page, '\\', c)
		default:
			w.page = append(w.page, c)
		}
		from += n + 1
	}
}

// count writes how many. In the older format all numbers are written alike.
func (w *writer) count(n uint64) {
	if w.open {
		w.page = strconv.AppendUint(w.page, n, 10)
		return
	}
	w.number(float64(n))
}

// number writes a number. In OpenMetrics one that could be an integer gets a fraction.
func (w *writer) number(v float64) {
	if v == 0 {
		v = 0 // not -0
	}
	from := len(w.page)
	w.page = strconv.AppendFloat(w.page, v, 'g', -1, 64)
	if w.open && !math.IsInf(v, 0) && !math.IsNaN(v) && !strings.ContainsAny(string(w.page[from:]), "e.") {
		w.text(".0")
	}
}
