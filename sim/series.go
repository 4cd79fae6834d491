package sim

import (
	"math"
	"time"

	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

const (
	mostColumns = 300 // of a series
	fanColumns  = 150 // of a fan and of paths
	mostPaths   = 20  // runs in a phase portrait
)

// columns merges the bins of a record into at most so many columns: how many bins each takes, and how many there are.
func columns(r *engine.Record, most int) (per, count int) {
	bins := len(r.Fleets[0].Offered)
	per = max(1, (bins+most-1)/most)
	return per, (bins + per - 1) / per
}

// rate merges a series into columns, per second of the full size.
func rate(r *engine.Record, series []uint32, per, count int) []float64 {
	out := make([]float64, count)
	for i := range out {
		from, to := i*per, min((i+1)*per, len(series))
		out[i] = total(series, from, to) / (float64(to-from) * r.Bin.Seconds()) * float64(r.Scale)
	}
	return out
}

func total[T uint32 | int64](series []T, from, to int) float64 {
	var sum int64
	for _, n := range series[from:to] {
		sum += int64(n)
	}
	return float64(sum)
}

// divided divides two series column by column; 0 where there is nothing to divide by.
func divided(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		if b[i] > 0 {
			out[i] = a[i] / b[i]
		}
	}
	return out
}

// seriesOf is one run as a reader sees it.
func seriesOf(r *engine.Record, s *scenario.Scenario, v *scenario.Variant) Series {
	per, count := columns(r, mostColumns)
	f := r.Together()
	out := Series{
		Seed: r.Seed, BinSeconds: r.Bin.Seconds() * float64(per), Detail: r.Detail,
		Offered: rate(r, f.Offered, per, count), Goodput: rate(r, f.Answered, per, count),
		Failed: rate(r, f.Failed, per, count), Refused: rate(r, f.Refused, per, count),
	}
	out.P50, out.P99 = latencies(r, per, count)
	for i := range r.Services {
		out.Services = append(out.Services, serviceSeries(r, &r.Services[i], per, count))
		x := &out.Services[i]
		_, x.Gated = v.ProtectionOf(x.Name)
		x.Timeout, x.AmplificationBound = shortestTimeout(s, v, x.Name).Seconds(), amplificationBound(s, v, x.Name)
	}
	return out
}

func serviceSeries(r *engine.Record, s *engine.ServiceRecord, per, count int) ServiceSeries {
	out := ServiceSeries{
		Name:        s.Name,
		Attempts:    rate(r, s.Arrived, per, count),
		Retries:     rate(r, s.Retries, per, count),
		Served:      rate(r, s.Served, per, count),
		Wasted:      rate(r, s.Wasted, per, count),
		Rejected:    rate(r, s.Rejected, per, count),
		Waiting:     last(s.Waiting, per, count),
		Shed:        rate(r, s.Shed, per, count),
		RateLimited: rate(r, s.Limited, per, count),
		Limit:       last(s.Limit, per, count),
		Refusals:    refusals(r, s),
	}
	for i := range out.Limit {
		out.Limit[i] *= float64(r.Scale)
	}
	demand := make([]float64, count)
	for i := range r.Fleets {
		for b, n := range rate(r, r.Fleets[i].Offered, per, count) {
			demand[b] += float64(n * s.Visits[i])
		}
	}
	out.Amplification = divided(out.Attempts, demand)
	out.Wait = make([]float64, count)
	for i := range out.Wait {
		from, to := i*per, min((i+1)*per, len(s.Waits))
		out.Wait[i] = -1
		if n := total(s.Waits, from, to); n > 0 {
			out.Wait[i] = total(s.WaitNS, from, to) / n / 1e9
		}
	}
	if !math.IsInf(s.Capacity, 0) {
		out.Capacity = s.Capacity * float64(r.Scale)
	}
	return out
}

// refusals lists what the gates of a service refused.
func refusals(r *engine.Record, s *engine.ServiceRecord) []Refusal {
	list := []Refusal{}
	add := func(reason string, count float64) {
		if count > 0 {
			list = append(list, Refusal{reason, count * float64(r.Scale)})
		}
	}
	add("rate-limited", total(s.Limited, 0, len(s.Limited)))
	for _, why := range shed.Reasons {
		add(why.String(), float64(s.Reasons[why]))
	}
	return list
}

// last takes the state at the end of each column.
func last(series []uint32, per, count int) []float64 {
	out := make([]float64, count)
	for i := range out {
		out[i] = float64(series[min((i+1)*per, len(series))-1])
	}
	return out
}

// latencies reads the median and the 99th percentile of the answered requests out of the heat map of a detailed run.
func latencies(r *engine.Record, per, count int) (p50, p99 []float64) {
	p50, p99 = make([]float64, count), make([]float64, count)
	if r.Detail == nil {
		return p50, p99
	}
	for i := range p50 {
		at := time.Duration(i*per) * r.Bin
		if k := int(at / r.Detail.HeatBin); k < len(r.Detail.Heat) {
			p50[i], p99[i] = heatQuantile(&r.Detail.Heat[k], 0.5), heatQuantile(&r.Detail.Heat[k], 0.99)
		}
	}
	return p50, p99
}

// heatQuantile reads a quantile off a column of the heat map: the middle of its row, on a logarithmic scale.
func heatQuantile(column *[engine.HeatRows]uint32, q float64) float64 {
	n := total(column[:], 0, len(column))
	if n == 0 {
		return 0
	}
	var below float64
	for row, c := range column {
		if below += float64(c); below >= q*n {
			return math.Exp2(float64(row)/2+0.25) / 1e3
		}
	}
	return 0
}

// goodputOf is the share of the requests offered that were answered in time, by when they were offered; where nothing
// was offered it repeats what was before.
func goodputOf(r *engine.Record) []float64 {
	per, count := columns(r, fanColumns)
	wanted, came := r.Together().Course()
	out := make([]float64, count)
	before := 1.0
	for i := range out {
		from, to := i*per, min((i+1)*per, len(wanted))
		if n := total(wanted, from, to); n > 0 {
			before = total(came, from, to) / n
		}
		out[i] = before
	}
	return out
}

// waitsOf is the longest mean queue wait of all services; where no work began, it repeats what was before.
func waitsOf(r *engine.Record) []float64 {
	per, count := columns(r, fanColumns)
	out := make([]float64, count)
	before := make([]float64, len(r.Services))
	for i := range out {
		for k := range r.Services {
			s := &r.Services[k]
			from, to := i*per, min((i+1)*per, len(s.Waits))
			if n := total(s.Waits, from, to); n > 0 {
				before[k] = total(s.WaitNS, from, to) / n / 1e9
			}
			out[i] = max(out[i], before[k])
		}
	}
	return out
}

// fanOf is how the goodput of all runs spreads.
func fanOf(all []outcome, r *engine.Record) Fan {
	per, count := columns(r, fanColumns)
	fan := Fan{BinSeconds: r.Bin.Seconds() * float64(per), Low: make([]float64, count), Mid: make([]float64, count),
		High: make([]float64, count)}
	for b := range count {
		s := expect.NewSample(column(all, func(o *outcome) float64 { return o.goodput[b] }))
		fan.Low[b], fan.Mid[b], fan.High[b] = s.Quantile(0.05), s.Quantile(0.5), s.Quantile(0.95)
	}
	return fan
}
