package series

import "sort"

// Desc describes a metric. Make it with NewDesc, once: families are told apart by it.
type Desc struct {
	// Name has the suffix _total if the metric is a counter.
	Name, Help string
	// Unit is shown in OpenMetrics, where a name has to end in it; "" shows none.
	Unit string
	// Labels are the names of its labels in their alphabetical order, as they are written.
	Labels []string

	place []int // of the values that With is given, among Labels; nil if they come in this order
}

// NewDesc describes a metric with labels. Their values are given in the order that the labels have here.
func NewDesc(name, help string, labels ...string) *Desc {
	d := &Desc{Name: name, Help: help, Labels: labels}
	if sort.StringsAreSorted(labels) {
		return d
	}
	d.Labels = append([]string(nil), labels...)
	sort.Strings(d.Labels)
	d.place = make([]int, len(labels))
	for i, name := range labels {
		d.place[i] = sort.SearchStrings(d.Labels, name)
	}
	return d
}

// ordered brings the values of labels into the order in which they are written.
func (d *Desc) ordered(values []string) []string {
	if len(values) != len(d.Labels) {
		panic("series: " + d.Name + " has another number of labels")
	}
	if d.place == nil {
		return values
	}
	all := make([]string, len(values))
	for i, v := range values {
		all[d.place[i]] = v
	}
	return all
}

// Kind is what a metric is.
type Kind uint8

// The kinds of metrics.
const (
	CounterKind Kind = iota
	GaugeKind
	HistogramKind
	SummaryKind
)

// String returns the kind's name in both formats.
func (k Kind) String() string { return [...]string{"counter", "gauge", "histogram", "summary"}[k] }
