package engine

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/expect"
)

// Value is what an expectation measures in this run, in the unit of the expectation: seconds, shares, per second. It is
// NaN where the run has nothing to measure, and +Inf for a recovery that never came. Rates are those of the full size,
// if the scenario was scaled down; counts are as they were in the run.
func (r *Record) Value(x *expect.Expectation) float64 {
	from, to := r.bins(x.Window)
	if s := r.service(x.Subject); s != nil {
		return r.ofService(x, s, from, to)
	}
	f := r.fleet(x.Subject)
	seconds := float64(to-from) * r.Bin.Seconds()
	offered := sum(f.Offered, from, to)
	switch x.Measure {
	case "collapse", "recovery":
		return r.ofFleets(x.Measure, x.Subject)
	case "served":
		return r.served(f, x.Quantile)
	case "serving":
		return r.serving(f)
	case "userVisible":
		return r.userVisible(f)
	case "goodput":
		wanted, came := f.Course()
		return ratio(sum(came, from, to), sum(wanted, from, to))
	case "failures":
		return ratio(sum(f.Bad, from, to), offered)
	case "refused":
		return ratio(sum(f.Refused, from, to), offered)
	case "offered":
		return ratio(offered*float64(r.Scale), seconds)
	case "latency":
		h := merged(&f.Latency, x.Window)
		return h.Quantile(x.Quantile)
	case "retries":
		var all float64
		for i := range r.Services {
			all += sum(r.Services[i].Retries, from, to)
		}
		return ratio(all*float64(r.Scale), seconds)
	}
	return r.ofTopic(x, f, from, to)
}

func (r *Record) ofService(x *expect.Expectation, s *ServiceRecord, from, to int) float64 {
	seconds := float64(to-from) * r.Bin.Seconds()
	arrived := sum(s.Arrived, from, to)
	switch x.Measure {
	case "amplification":
		return ratio(arrived, r.demand(s, from, to))
	case "attempts":
		return ratio(arrived*float64(r.Scale), seconds)
	case "retries":
		return ratio(sum(s.Retries, from, to)*float64(r.Scale), seconds)
	case "queueWait":
		if x.Quantile > 0 {
			h := merged(&s.Wait, x.Window)
			return h.Quantile(x.Quantile)
		}
		return ratio(sum(s.WaitNS, from, to)/1e9, sum(s.Waits, from, to))
	case "queue":
		return largest(s.Longest, from, to)
	case "waste":
		return ratio(sum(s.WasteNS, from, to), sum(s.WorkNS, from, to))
	case "utilization":
		return ratio(sum(s.HeldNS, from, to)/1e9, seconds*float64(s.Workers))
	case "peak":
		most := float64(max(s.Peak[Before], s.Peak[During], s.Peak[After]))
		return most / time.Duration(peakWidth).Seconds() * float64(r.Scale)
	case "connects":
		return ratio(sum(s.Connects, from, to)*float64(r.Scale), seconds)
	case "connectPeak":
		return float64(max(s.ConnectPeak[Before], s.ConnectPeak[During], s.ConnectPeak[After]))
	case "unopened":
		return sum(s.Unopened, from, to)
	case "connections":
		return largest(s.Conns, 0, len(s.Conns))
	case "load":
		return r.load(s, from, to)
	case "yield":
		return r.yield(s, from, to, x.Quantile)
	case "collapse":
		return r.serviceCollapsed(s)
	case "recovery":
		return r.serviceRecovery(s)
	case "response":
		h := merged(&s.Response, x.Window)
		return h.Quantile(x.Quantile)
	}
	return r.atGate(x, s, from, to)
}

// atGate is what an expectation measures at the gates of a service.
func (r *Record) atGate(x *expect.Expectation, s *ServiceRecord, from, to int) float64 {
	switch x.Measure {
	case "shed":
		if x.Priority != "" {
			return r.ofClass(x, s, from, to)
		}
		return ratio(sum(s.Shed, from, to), sum(s.Arrived, from, to))
	case "rateLimited":
		return ratio(sum(s.Limited, from, to), sum(s.Arrived, from, to))
	case "gateWait":
		h := merged(&s.GateWait, x.Window)
		if x.Quantile > 0 {
			return h.Quantile(x.Quantile)
		}
		return h.Mean()
	case "limit":
		return ratio(sum(s.Limit, from, to), float64(to-from)) * float64(r.Scale)
	}
	return r.ofWorld(x, s, from, to)
}

// yield is what a service did for callers that still waited, as a share of what came or of what it can do, whichever is
// less: over some bins, or with a quantile that of the stretches of Hold among them. Time in which nothing came is left
// out.
func (r *Record) yield(s *ServiceRecord, from, to int, quantile float64) float64 {
	step := to - from
	if quantile > 0 {
		step = max(int(r.Model.Hold/r.Bin), 1)
	}
	var shares []float64
	for ; from+step <= to && step > 0; from += step {
		able := math.Min(float64(s.Capacity*float64(step)*r.Bin.Seconds()), sum(s.Arrived, from, from+step))
		if able > 0 {
			shares = append(shares, sum(s.Served, from, from+step)/able)
		}
	}
	sample := expect.NewSample(shares)
	if sample.N() == 0 {
		return math.NaN()
	}
	return sample.Quantile(max(quantile, 0))
}

// demand is how many attempts at a service the requests offered within some bins need if nothing fails.
func (r *Record) demand(s *ServiceRecord, from, to int) float64 {
	var all float64
	for i := range r.Fleets {
		all += float64(s.Visits[i] * sum(r.Fleets[i].Offered, from, to))
	}
	return all
}

// bins are the first bin of a window and the one behind its last.
func (r *Record) bins(w expect.Window) (from, to int) {
	begin, end := int(r.Begin/r.Bin), int((r.End+r.Bin-1)/r.Bin)
	bins := len(r.Fleets[0].Offered)
	switch w {
	case expect.Before:
		return 0, min(begin, bins)
	case expect.During:
		return begin, min(end, bins)
	case expect.After:
		return min(end, bins), bins
	}
	return 0, bins
}

func (r *Record) service(name string) *ServiceRecord {
	for i := range r.Services {
		if r.Services[i].Name == name {
			return &r.Services[i]
		}
	}
	return nil
}

// fleet is the fleet with a name, or all of them together.
func (r *Record) fleet(name string) *FleetRecord {
	if len(r.Fleets) == 1 {
		return &r.Fleets[0]
	}
	if name == "" {
		if r.all == nil {
			r.all = r.together()
		}
		return r.all
	}
	for i := range r.Fleets {
		if r.Fleets[i].Name == name {
			return &r.Fleets[i]
		}
	}
	return &FleetRecord{}
}

// together adds all fleets up.
func (r *Record) together() *FleetRecord {
	all, never := newFleetRecord("", len(r.Fleets[0].Offered)), false
	all.sessions = r.Fleets[0].sessions
	for i := range r.Fleets {
		f := &r.Fleets[i]
		for b := range all.Offered {
			all.Offered[b] += f.Offered[b]
			all.Good[b] += f.Good[b]
			all.Bad[b] += f.Bad[b]
			all.Answered[b] += f.Answered[b]
			all.Failed[b] += f.Failed[b]
			all.Refused[b] += f.Refused[b]
		}
		for w := range all.Latency {
			all.Latency[w].Merge(&f.Latency[w])
		}
		for k, n := range f.Ends {
			all.Ends[k] += n
		}
		all.Topic = all.Topic.with(f.Topic)
		if i > 0 {
			all.sessions = all.sessions.with(f.sessions)
		}
		if all.Serving = max(all.Serving, f.Serving); f.Serving == 0 {
			never = true
		}
	}
	if never {
		all.Serving = 0
	}
	return &all
}

// Together is all fleets as one.
func (r *Record) Together() *FleetRecord { return r.fleet("") }

// userVisible is for how long, in seconds, goodput was below what counts as recovered; counted in stretches of Hold.
func (r *Record) userVisible(f *FleetRecord) float64 {
	step := max(int(r.Model.Hold/r.Bin), 1)
	normal := r.normal(f)
	if normal < 0.5 { // most requests failed before the trouble, too: see collapsed
		normal = 1
	}
	wanted, came := f.Course()
	var bad int
	for from := 0; from < len(f.Offered); from += step {
		to := min(from+step, len(f.Offered))
		if ratio(sum(came, from, to), sum(wanted, from, to)) < r.Model.Recovered*normal {
			bad += to - from
		}
	}
	return float64(bad) * r.Bin.Seconds()
}

// served is the time from the end of the trouble until a share of all requests of the run have been answered.
func (r *Record) served(f *FleetRecord, share float64) float64 {
	offered, answered := sum(f.Offered, 0, len(f.Offered)), 0.0
	if offered == 0 {
		return math.NaN()
	}
	for b := range f.Answered {
		if answered += float64(f.Answered[b]); answered >= share*offered {
			return max(0, (time.Duration(b+1)*r.Bin - r.End).Seconds())
		}
	}
	return math.Inf(1)
}

// serving is the time from the end of the trouble until each instance has had an answer.
func (r *Record) serving(f *FleetRecord) float64 {
	switch {
	case f.Topic != nil || r.Begin >= r.Duration: // consumers have no answers; or there was no trouble
		return math.NaN()
	case f.Serving == 0:
		return math.Inf(1)
	}
	return (f.Serving - r.End).Seconds()
}

func merged(all *[4]Histogram, w expect.Window) *Histogram {
	if w != expect.All {
		return &all[w-expect.Before]
	}
	h := all[Before]
	h.Merge(&all[During])
	h.Merge(&all[After])
	return &h
}

func sum[T uint32 | int64](series []T, from, to int) float64 {
	var all int64
	for _, n := range series[from:max(from, to)] {
		all += int64(n)
	}
	return float64(all)
}

func largest(series []uint32, from, to int) float64 {
	var most uint32
	for _, n := range series[from:max(from, to)] {
		most = max(most, n)
	}
	return float64(most)
}

// ratio is a / b, and NaN where there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
