package series

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Collector has metrics. Describe sends the description of each, always the same; Collect what they are now. Both may
// be called by several goroutines at once, send by one at a time.
type Collector interface {
	Describe(send func(*Desc))
	Collect(send func(Sample))
}

// Registry has the metrics that are shown on one page. The zero value has none. It is safe for concurrent use.
type Registry struct {
	mu         sync.RWMutex
	collectors []Collector
	names      map[string]bool
}

// Register adds the metrics of a collector. It fails, and adds none, if one has the name of another.
func (r *Registry) Register(c Collector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	names := make(map[string]bool)
	c.Describe(func(d *Desc) {
		if r.names[d.Name] || names[d.Name] {
			err = fmt.Errorf("there is a metric %q already", d.Name)
		}
		names[d.Name] = true
	})
	if err != nil {
		return err
	}
	for name := range r.names {
		names[name] = true
	}
	r.names, r.collectors = names, append(r.collectors, c)
	return nil
}

// Family is all series of a metric.
type Family struct {
	Desc    *Desc
	Kind    Kind
	Samples []Sample
}

// Gather reads all metrics. Families are in the order of their names, and their samples in that of the values of their
// labels; those without a sample are left out. A value that is not UTF-8 gets U+FFFD where it is none. It fails if two
// samples have the same labels, since nobody could say which counts.
func (r *Registry) Gather() ([]*Family, error) {
	r.mu.RLock()
	collectors := slices.Clone(r.collectors)
	r.mu.RUnlock()
	found := make(map[*Desc]*Family)
	var all []*Family
	for _, c := range collectors {
		c.Collect(func(s Sample) {
			f := found[s.Desc]
			if f == nil {
				f = &Family{Desc: s.Desc, Kind: s.Kind}
				found[s.Desc], all = f, append(all, f)
			}
			s.Values = valid(s.Values)
			f.Samples = append(f.Samples, s)
		})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Desc.Name < all[j].Desc.Name })
	for _, f := range all {
		sort.Sort(byLabels(f.Samples))
		for i := range f.Samples[1:] {
			if slices.Equal(f.Samples[i].Values, f.Samples[i+1].Values) {
				return nil, fmt.Errorf("%s is there twice with the labels %q", f.Desc.Name, f.Samples[i].Values)
			}
		}
	}
	return all, nil
}

// valid returns values as UTF-8.
func valid(values []string) []string {
	for i, v := range values {
		if good := strings.ToValidUTF8(v, "\uFFFD"); good != v {
			values = slices.Clone(values)
			values[i] = good
		}
	}
	return values
}

// byLabels sorts the samples of a family.
type byLabels []Sample

func (s byLabels) Len() int           { return len(s) }
func (s byLabels) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s byLabels) Less(i, j int) bool { return slices.Compare(s[i].Values, s[j].Values) < 0 }
