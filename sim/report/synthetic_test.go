package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/engine"
)

// kind is how a made-up variant behaves.
type kind int

const (
	collapses kind = iota
	recovers
	wavers
)

const (
	bins    = 300
	seconds = 180.0
	begin   = 30.0
	end     = 60.0
	load    = 1000.0
)

// study makes a result with every kind of data in it: a database behind a payment service is away for half a minute.
func study(kinds ...kind) *sim.Result { return studyOf(bins, kinds...) }

// studyOf is a study with n bins in its series.
func studyOf(n int, kinds ...kind) *sim.Result {
	r := &sim.Result{
		Version:     sim.Version,
		Name:        "Checkout outage",
		File:        "scenarios/checkout.yaml",
		Seed:        1,
		Scale:       1,
		Seconds:     seconds,
		About:       "A database is away for 30 s; do the retries let it come back?",
		TroubleFrom: begin,
		TroubleTo:   end,
		Verdict:     "PASS",
		Faults:      []sim.FaultText{{Text: "payment-db hangs", From: begin, To: end}},
		Assumptions: []sim.Assumption{
			{Setting: "model.cancellation", Value: "ignored", Default: true,
				Why: "A request whose caller has left stays in the queue and is worked on."},
			{Setting: "model.serviceTimeDrawn", Value: "start", Default: true,
				Why: "A request's service time is drawn when its work begins."},
			{Setting: "warmUp", Value: "5s", Default: true,
				Why: "Queues and estimates settle before the run; it is not measured."},
			{Setting: "model.recovered", Value: "95 %", Why: "The share of the goodput before the fault that counts as " +
				"recovered."},
		},
		NotModelled: []string{
			"Network bandwidth and packet loss below a request.", "Garbage collection, except where slowsQueued says so.",
		},
	}
	names := [...]string{"fixed delay", "guarded", "jitter alone", "budget, no breaker", "breaker, no budget"}
	for i, k := range kinds {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		r.Variants = append(r.Variants, variant(rng, names[i%len(names)], k, n))
		if i > 0 {
			r.Variants[i].Differences = differences(&r.Variants[0], &r.Variants[i])
		}
		if k == collapses {
			r.Verdict = "FAIL"
		}
	}
	return r
}

// shape is a made-up storm at a time: how far attempts are multiplied, and what share of requests is answered.
func shape(rng *rand.Rand, k kind, t float64) (amplification, good float64) {
	amplification, good = 1, 1
	switch {
	case t < begin:
	case t < end:
		amplification, good = 1+2.9*math.Min((t-begin)/4, 1), 0.02
		if k == recovers {
			amplification = 1.1
		}
	case k == collapses:
		amplification, good = 3.9, 0.05
	case k == wavers:
		f := math.Exp(-(t - end) / 40)
		amplification, good = 1+2.9*f, 1-0.9*f
	default:
		f := math.Exp(-(t - end) / 3)
		amplification, good = 1+0.1*f, 1-f
	}
	noise := 1 + 0.03*rng.NormFloat64()
	return math.Max(amplification*noise, 0), math.Min(math.Max(good*(1+0.02*rng.NormFloat64()), 0), 1)
}

func variant(rng *rand.Rand, name string, k kind, n int) sim.VariantResult {
	v := sim.VariantResult{
		Name:     name,
		About:    "up to 3 retries, 1 s apart",
		Runs:     400,
		Verdict:  "PASS",
		Events:   123_456_789,
		Attempts: 12_345_678,
		Policy:   "services:\n  payment-db:\n    maxRetries: 3\n    initialDelay: 1s\n    retryBudget:\n      ratio: 0.1\n",
		Run:      series(rng, k, n),
	}
	v.Collapse = sim.Share{Share: 0, Low: 0, High: 0.0095}
	recovered := 400
	switch k {
	case collapses:
		v.Verdict, v.Collapse, recovered = "FAIL", sim.Share{Share: 1, Low: 0.9905, High: 1}, 0
		v.Advice = []sim.Advice{
			{Change: "payment-db: retryBudget.ratio 0.1 (was off)", Verdict: "PASS", Step: 1, Runs: 40, Held: 1,
				YAML: "services:\n  payment-db:\n    retryBudget:\n      ratio: 0.1\n"},
			{Change: "payment-db: maxRetries 1 (was 3)", Verdict: "PASS", Step: 1.6, Runs: 40, Held: 0.975,
				YAML: "services:\n  payment-db:\n    maxRetries: 1\n"},
		}
	case wavers:
		v.Verdict, v.Collapse, recovered = "UNDECIDED", sim.Share{Share: 0.0825, Low: 0.0592, High: 0.1138}, 367
	}
	for range recovered {
		v.Recovery = append(v.Recovery, 2+8*rng.ExpFloat64())
	}
	slices.Sort(v.Recovery)
	v.Expectations = expectations(v.Verdict)
	v.Measures = measures(rng, k)
	v.Fan, v.Paths = fan(rng, k, n)
	v.Margins = []sim.Margin{
		{Dimension: "load", Here: 1, Cliff: 1.8, Low: 1.75, High: 1.85, Stands: k != collapses, Runs: 160,
			Text: "stands up to 1.8 × the load (1,800 requests/s)"},
		{Dimension: "trouble", Unit: "s", Here: 30, Cliff: 240, Low: 30, High: 240, Beyond: true, Stands: true, Runs: 80,
			Text: "stands beyond 240 s of trouble"},
		{Dimension: "capacity", Here: 1, Cliff: 0.86, Low: 0.85, High: 0.87, Stands: true, Runs: 160,
			Text: "stands down to 0.86 × the capacity"},
	}
	v.Map = &sim.CliffMap{Loads: []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2}, Lengths: []float64{1, 5, 15, 30, 60, 120},
		Runs: 40, HereLoad: 1, HereLen: 30, StableLoad: 0.6}
	for i := range v.Map.Lengths {
		var row []float64
		for j := range v.Map.Loads {
			row = append(row, math.Min(math.Max(float64(i+j-6)/4+0.1*float64(k), 0), 1))
		}
		v.Map.Collapse = append(v.Map.Collapse, row)
	}
	v.Map.Collapse[0][0] = -1
	return v
}

func expectations(verdict string) []sim.ExpectationResult {
	held := map[string]int{"PASS": 400, "FAIL": 0, "UNDECIDED": 390}[verdict]
	q := func(v float64) sim.Quantiles { return sim.Quantiles{P05: &v, P50: &v, P95: &v, P99: &v} }
	out := []sim.ExpectationResult{
		{Text: "recovery < 10s in 99% of runs", Verdict: verdict, Runs: 400, Held: held, Held95: sim.Share{
			Share: float64(held) / 400, Low: 0.955, High: 0.995,
		}, Needed: 0.99, Value: q(8.2)},
		{Text: "amplification(payment-db) < 1.2", Verdict: "PASS", Runs: 400, Held: 400, Held95: sim.Share{
			Share: 1, Low: 0.9905, High: 1,
		}, Needed: 0.9, Value: q(1.1)},
		{Text: "goodput(after) > 95%", Verdict: verdict, Runs: 400, Held: held, Held95: sim.Share{
			Share: float64(held) / 400, Low: 0.955, High: 0.995,
		}, Needed: 0.9, Value: q(0.981)},
	}
	if verdict == "FAIL" {
		out[0].Value = sim.Quantiles{}
	}
	return out
}

func measures(rng *rand.Rand, k kind) []sim.Measure {
	var out []sim.Measure
	add := func(name, unit string, v float64, finite int) {
		m := sim.Measure{Name: name, Unit: unit, Mean: v, SD: v * 0.02, Finite: finite}
		if finite > 0 {
			low, high, top := v*0.97, v*1.03, v*1.05
			m.Value = sim.Quantiles{P05: &low, P50: &v, P95: &high, P99: &top}
		}
		out = append(out, m)
	}
	a, g := shape(rng, k, seconds)
	recovered := 400
	if k == collapses {
		recovered = 0
	}
	add("recovery", "s", 8.2, recovered)
	add("goodput(after)", "share", g*0.97, 400)
	add("amplification(payment-db)", "", a, 400)
	add("amplification(payment-service)", "", math.Sqrt(a), 400)
	add("attempts(payment-db, during)", "1/s", a*load, 400)
	add("queueWait(payment-db, after)", "s", a*0.8, 400)
	add("peak(payment-db)", "1/s", a*load*1.7, 400)
	add("connections(payment-db)", "count", 1200, 400)
	return out
}

func differences(first, v *sim.VariantResult) []sim.Difference {
	var out []sim.Difference
	for i := range v.Measures {
		m, d := &v.Measures[i], v.Measures[i].Mean-first.Measures[i].Mean
		out = append(out, sim.Difference{
			Measure: m.Name, Unit: m.Unit, Mean: d, Low: d - 0.01*m.Mean, High: d + 0.01*m.Mean, Pairs: 400,
		})
	}
	return out
}

func fan(rng *rand.Rand, k kind, n int) (sim.Fan, []sim.Path) {
	f := sim.Fan{BinSeconds: seconds / float64(n)}
	paths := make([]sim.Path, 12)
	for i := range n {
		t := (float64(i) + 0.5) * f.BinSeconds
		a, g := shape(rng, k, t)
		f.Mid = append(f.Mid, g)
		f.Low = append(f.Low, g*0.9)
		f.High = append(f.High, math.Min(g*1.06, 1))
		for j := range paths {
			_, g := shape(rng, k, t)
			paths[j].Wait = append(paths[j].Wait, math.Max(a-1, 0.002)*(0.9+0.2*rng.Float64()))
			paths[j].Goodput = append(paths[j].Goodput, g)
		}
	}
	for j := range paths {
		paths[j].Seed = uint64(j + 1)
	}
	return f, paths
}

func series(rng *rand.Rand, k kind, n int) sim.Series {
	s := sim.Series{Seed: 1, BinSeconds: seconds / float64(n)}
	names := [...]string{"gateway", "payment-service", "payment-db"}
	s.Services = make([]sim.ServiceSeries, len(names))
	for i, name := range names {
		s.Services[i] = sim.ServiceSeries{Name: name, Timeout: 1}
	}
	s.Services[2].Capacity = 1200
	s.Services[1].Timeout = 2
	if k == recovers {
		s.Services[1].AmplificationBound, s.Services[2].AmplificationBound = 1.2, 1.1
	}
	for i := range n {
		a, g := shape(rng, k, (float64(i)+0.5)*s.BinSeconds)
		offered := load * (1 + 0.02*rng.NormFloat64())
		s.Offered = append(s.Offered, offered)
		s.Goodput = append(s.Goodput, g*offered)
		s.Failed = append(s.Failed, (1-g)*offered)
		s.Refused = append(s.Refused, 0)
		s.P50 = append(s.P50, 0.02+0.3*(1-g))
		s.P99 = append(s.P99, 0.09+3*(1-g))
		for j := range s.Services {
			amp := math.Pow(a, float64(j+1)/3)
			x := &s.Services[j]
			x.Attempts = append(x.Attempts, amp*offered)
			x.Retries = append(x.Retries, (amp-1)*offered)
			x.Served = append(x.Served, g*offered)
			x.Wasted = append(x.Wasted, (1-g)*offered)
			x.Rejected = append(x.Rejected, 0)
			x.Amplification = append(x.Amplification, amp)
			x.Wait = append(x.Wait, math.Max(amp-1, 0)*float64(j)*(0.8+0.1*rng.Float64()))
			x.Waiting = append(x.Waiting, amp*100)
		}
	}
	s.Detail = detail(rng, k, n)
	return s
}

func detail(rng *rand.Rand, k kind, n int) *engine.Detail {
	d := &engine.Detail{HeatBin: seconds * time.Second / time.Duration(n),
		StateBin: seconds * time.Second / time.Duration(n), Fine: engine.FineArrivals{From: 59 * time.Second}}
	for i := range n {
		t := (float64(i) + 0.5) * seconds / float64(n)
		_, g := shape(rng, k, t)
		var column [engine.HeatRows]uint32
		for range 2 * int(float64(n)*g) {
			l := 20 * math.Exp(0.5*rng.NormFloat64())
			if g < 0.9 && rng.Float64() < 0.3 {
				l *= 40
			}
			column[min(max(int(2*math.Log2(l)), 0), engine.HeatRows-1)]++
		}
		d.Heat = append(d.Heat, column)
	}
	for _, edge := range [][2]string{
		{"checkout", "gateway"}, {"gateway", "payment-service"}, {"payment-service", "payment-db"},
	} {
		d.States = append(d.States, strip(rng, k, n, edge[0], edge[1]))
	}
	for j := range 3 {
		var fine []uint16
		for i := range n * 5 / 3 {
			count := 10 * float64(j+1) * (1 + 0.3*rng.NormFloat64())
			if k == collapses && i%100 < 6 {
				count *= 8
			}
			fine = append(fine, uint16(math.Max(count, 0)))
		}
		d.Fine.Services = append(d.Fine.Services, fine)
	}
	d.Sample = sample(k)
	return d
}

func strip(rng *rand.Rand, k kind, n int, caller, callee string) engine.StateStrip {
	s := engine.StateStrip{Caller: caller, Callee: callee}
	for i := range n {
		t := (float64(i) + 0.5) * seconds / float64(n)
		open, half, budget := 0.0, 0.0, -1.0
		if callee == "payment-db" && k != collapses {
			if t > begin+1 && t < end+4 {
				open, half = 0.85+0.05*rng.Float64(), 0.08
			}
			budget = 10
			if t > begin && t < end+20 {
				budget = 0.4 + 0.2*rng.Float64()
			}
		}
		s.Open = append(s.Open, float32(open))
		s.HalfOpen = append(s.HalfOpen, float32(half))
		s.Budget = append(s.Budget, float32(budget))
		s.Bulkhead = append(s.Bulkhead, 0)
	}
	return s
}

func sample(k kind) []engine.Span {
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	spans := []engine.Span{{Kind: "request", Where: "checkout", From: at(35), To: at(42), End: engine.TimedOut},
		{Depth: 1, Kind: "call", Where: "payment-service", From: at(35), To: at(42), End: engine.TimedOut}}
	for i := range 4 {
		t := 35 + 2*float64(i)
		end := engine.TimedOut
		if i == 3 && k != collapses {
			end = engine.Answered
		}
		spans = append(spans, engine.Span{
			Depth: 2, Kind: "attempt", Where: "payment-service", From: at(t), To: at(t + 1), End: end,
		},
			engine.Span{Depth: 3, Kind: "queue", Where: "payment-service", From: at(t + 0.002), To: at(t + 0.5)},
			engine.Span{Depth: 3, Kind: "work", Where: "payment-service", From: at(t + 0.5), To: at(t + 1)})
		if i < 3 {
			spans = append(spans, engine.Span{
				Depth: 2, Kind: "backoff", Where: fmt.Sprintf("before attempt %d", i+2), From: at(t + 1), To: at(t + 2),
			})
		}
	}
	return spans
}
