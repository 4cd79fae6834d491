package abateprom

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/abate-go/abate/internal/series"
)

// bridge is metrics of ours as a registry of the client library sees them: one collector, so that all of it is
// registered or nothing.
type bridge struct {
	from  series.Collector
	descs map[*series.Desc]*prometheus.Desc
}

func newBridge(from series.Collector) *bridge {
	b := &bridge{from, make(map[*series.Desc]*prometheus.Desc)}
	from.Describe(func(d *series.Desc) { b.descs[d] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil) })
	return b
}

// Describe names all metrics.
func (b *bridge) Describe(to chan<- *prometheus.Desc) {
	for _, d := range b.descs {
		to <- d
	}
}

// Collect reads all metrics.
func (b *bridge) Collect(to chan<- prometheus.Metric) {
	b.from.Collect(func(s series.Sample) { to <- &metric{b.descs[s.Desc], s} })
}

// metric is a sample of ours.
type metric struct {
	desc   *prometheus.Desc
	sample series.Sample
}

// Desc describes it.
func (m *metric) Desc() *prometheus.Desc { return m.desc }

// Write writes it.
func (m *metric) Write(out *dto.Metric) error {
	s := &m.sample
	out.Label = make([]*dto.LabelPair, len(s.Values))
	for i := range s.Values {
		out.Label[i] = &dto.LabelPair{Name: &s.Desc.Labels[i], Value: &s.Values[i]}
	}
	switch s.Kind {
	case series.CounterKind:
		out.Counter = &dto.Counter{Value: &s.Value, CreatedTimestamp: timestamp(s.Created)}
	case series.GaugeKind:
		out.Gauge = &dto.Gauge{Value: &s.Value}
	case series.HistogramKind:
		out.Histogram = histogram(s.Distribution)
		out.Histogram.CreatedTimestamp = timestamp(s.Created)
	}
	return nil
}

// histogram has the bucket without a bound only where that says more than the number of all.
func histogram(d *series.Distribution) *dto.Histogram {
	h := &dto.Histogram{SampleCount: &d.Count, SampleSum: &d.Sum}
	for i := range d.Buckets {
		b := &d.Buckets[i]
		if math.IsInf(b.Bound, 1) && b.Exemplar == nil {
			continue
		}
		bucket := &dto.Bucket{CumulativeCount: &b.Count, UpperBound: &b.Bound}
		if e := b.Exemplar; e != nil {
			bucket.Exemplar = &dto.Exemplar{Value: &e.Value, Timestamp: timestamp(e.At)}
			for i := range e.Labels {
				l := &e.Labels[i]
				bucket.Exemplar.Label = append(bucket.Exemplar.Label, &dto.LabelPair{Name: &l.Name, Value: &l.Value})
			}
		}
		h.Bucket = append(h.Bucket, bucket)
	}
	return h
}

// timestamp is nil for the zero time.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
