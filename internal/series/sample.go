package series

import "time"

// Sample is one series at one moment.
type Sample struct {
	Desc *Desc
	Kind Kind
	// Values are those of Desc.Labels.
	Values []string
	// Value is that of a counter or a gauge.
	Value float64
	// Distribution is that of a histogram or a summary; nobody changes it.
	Distribution *Distribution
	// Created is since when it has been counted, and zero if nobody knows. The formats here do not show it.
	Created time.Time
}

// Distribution is what a histogram or a summary has seen.
type Distribution struct {
	Count uint64
	Sum   float64
	// Buckets are those of a histogram, the last one without a bound.
	Buckets []Bucket
	// Quantiles are those of a summary.
	Quantiles []Quantile
}

// Bucket counts what was not above Bound.
type Bucket struct {
	Bound    float64
	Count    uint64
	Exemplar *Exemplar // nil for none
}

// Quantile is the value that a share of all was not above.
type Quantile struct{ Share, Value float64 }

// Exemplar is one of those that a bucket has counted, with what leads to it.
type Exemplar struct {
	Labels []Label
	Value  float64
	At     time.Time
}

// Label is a label with its value.
type Label struct{ Name, Value string }

// Gauge makes a sample of a gauge.
func Gauge(d *Desc, v float64, values ...string) Sample {
	return Sample{Desc: d, Kind: GaugeKind, Value: v, Values: d.ordered(values)}
}

// Count makes a sample of what is counted elsewhere.
func Count(d *Desc, v float64, values ...string) Sample {
	return Sample{Desc: d, Kind: CounterKind, Value: v, Values: d.ordered(values)}
}
