package summary_test

import (
	"math"

	"github.com/abate-go/abate/sim"
)

func at(v float64) *float64 { return &v }

// checkout is a result as the checkout outage gives it: three variants that fail, are undecided, and pass.
func checkout() *sim.Result {
	return &sim.Result{
		Version:     sim.Version,
		Name:        "checkout outage",
		About:       "A database is away for 30 s; do the retries let it come back?",
		File:        "scenarios/checkout-outage.yaml",
		Seed:        1,
		Scale:       50,
		Seconds:     180,
		TroubleFrom: 30,
		TroubleTo:   60,
		Faults:      []sim.FaultText{{Text: "payment-db does not answer (hang)", From: 30, To: 60}},
		Verdict:     "FAIL",
		Variants: []sim.VariantResult{
			variant("unguarded", "FAIL", 40, 0, 40, 4),
			variant("backoff", "UNDECIDED", 400, 357, 43, 2.2),
			variant("guarded", "PASS", 40, 40, 0, 1.08),
		},
		Assumptions: []sim.Assumption{
			{Setting: "model.cancellation", Value: "ignored", Default: true, Why: "abandoned work is done"},
		},
		NotModelled: []string{"kernel queues"},
	}
}

// variant is one of runs runs, of which recovered ones did so after 2 s to 12 s.
func variant(name, verdict string, runs, recovered, collapsed int, amplification float64) sim.VariantResult {
	v := sim.VariantResult{Name: name, About: "3 retries", Runs: runs, Verdict: verdict, Collapse: share(collapsed, runs)}
	for i := range recovered {
		v.Recovery = append(v.Recovery, 2+10*float64(i)/float64(max(recovered-1, 1)))
	}
	recovery := sim.Quantiles{}
	if recovered > runs/2 {
		recovery.P50 = at(v.Recovery[runs/2-1])
	}
	e := sim.ExpectationResult{Text: "recovery < 10s in 90% of runs", Verdict: verdict, Runs: runs, Held: recovered,
		Held95: share(recovered, runs), Needed: 0.9, Value: recovery}
	c := sim.ExpectationResult{
		Text:    "collapse < 20%",
		Verdict: map[bool]string{true: "PASS", false: "FAIL"}[collapsed*5 < runs],
		Runs:    runs,
		Held:    runs - collapsed,
		Held95:  share(collapsed, runs),
		Needed:  0.8,
		Value:   sim.Quantiles{P50: at(0)},
	}
	v.Expectations = []sim.ExpectationResult{e, c}
	v.Measures = []sim.Measure{
		{Name: "recovery", Unit: "s", Value: recovery},
		{Name: "goodput(before)", Unit: "share", Value: sim.Quantiles{P50: at(0.9996)}},
		{Name: "goodput(during)", Unit: "share", Value: sim.Quantiles{P50: at(0.013)}},
		{Name: "goodput(after)", Unit: "share", Value: sim.Quantiles{P50: at(float64(recovered) / float64(runs))}},
		{Name: "amplification(payment-db)", Unit: "", Value: sim.Quantiles{P50: at(amplification)}},
		{Name: "amplification(payment-db, after)", Unit: "", Value: sim.Quantiles{P50: at(777)}},
		{Name: "peak(payment-db)", Unit: "1/s", Value: sim.Quantiles{P50: at(10000 * amplification)}},
	}
	v.Run = series(amplification, recovered > runs/2)
	return v
}

func share(held, runs int) sim.Share {
	n, h := float64(runs), float64(held)
	half := 1.96 * math.Sqrt(h*(n-h)/n+0.96)
	return sim.Share{Share: h / n, Low: max((h+1.92-half)/(n+3.84), 0), High: min((h+1.92+half)/(n+3.84), 1)}
}

// series is one run of 180 s in bins of a second.
func series(amplification float64, recovers bool) sim.Series {
	s := sim.Series{Seed: 1, BinSeconds: 1, Services: []sim.ServiceSeries{{Name: "mail"}, {Name: "payment-db"}}}
	for i := range 180 {
		attempts, good := 10000.0, 10000.0
		if i >= 30 && (i < 60 || !recovers) {
			attempts, good = attempts*amplification, 0
		}
		s.Goodput = append(s.Goodput, good)
		s.Services[0].Attempts = append(s.Services[0].Attempts, 50)
		s.Services[1].Attempts = append(s.Services[1].Attempts, attempts)
	}
	return s
}

// extras is a result with margins and advice.
func extras() *sim.Result {
	r := checkout()
	r.Scale, r.Variants = 1, r.Variants[:1]
	v := &r.Variants[0]
	v.Margins = []sim.Margin{
		{Dimension: "load", Text: "falls even at 0.25 × the load (2,500 requests/s)", Cliff: 0.25},
		{Dimension: "trouble", Text: "stands up to 1.9 s of trouble"},
	}
	v.NotCovered = []string{"mailers in trouble: no fault reaches it or what it calls"}
	v.Fleets = []sim.FleetResult{
		{Name: "checkout", Collapse: share(0, v.Runs), Judged: v.Runs, Recovery: []float64{0, 1.5, 2}},
		{Name: "mailers", Judged: 0, NoRecovery: v.Runs},
	}
	v.Expectations[0].Where = "checkout never recovered in 3 of 40 runs"
	v.Advice = []sim.Advice{
		{Change: "payment-db: retryBudget.ratio 0.1 (was off)", Verdict: "PASS", Runs: 400, Held: 0.9975,
			YAML: "services:\n  payment-db:\n    retryBudget:\n      ratio: 0.1\n"},
		{Change: "payment-db: maxRetries 0 (was 3)", Verdict: "PASS", Runs: 400, Held: 1},
	}
	return r
}

// bare is the least that a result can be: one variant without expectations, without faults, one run.
func bare() *sim.Result {
	return &sim.Result{
		Version:     sim.Version,
		Name:        "quiet",
		Seed:        7,
		Scale:       1,
		Seconds:     10,
		TroubleFrom: 10,
		TroubleTo:   10,
		Verdict:     "NONE",
		Variants: []sim.VariantResult{{Name: "default", Runs: 1, Verdict: "NONE", Collapse: share(0, 1),
			NotCovered: []string{"how far the cliff is: the margin was not searched"}}},
	}
}

// interrupted was stopped during its second variant.
func interrupted() *sim.Result {
	r := checkout()
	r.Interrupted, r.Verdict = true, "UNDECIDED"
	r.Variants = r.Variants[1:]
	r.Variants[1] = sim.VariantResult{Name: "guarded", Verdict: "UNDECIDED", Expectations: []sim.ExpectationResult{
		{Text: "collapse < 20%", Verdict: "UNDECIDED", Held95: sim.Share{High: 1}},
	}}
	return r
}

// hostile has names that mean something to terminals, Markdown, HTML and XML, and numbers that are none.
func hostile() *sim.Result {
	const name = "a\x1b[31m\n**b** `c` ``d`` <script>&\"'|@someone #1 ]]>\x00\x07\ufffe\u202e\xff\t"
	r := checkout()
	r.Name, r.About, r.File = name, name, name
	r.Faults = []sim.FaultText{{Text: name, From: 1, To: math.NaN()}}
	r.Variants = r.Variants[:2]
	for i := range r.Variants {
		v := &r.Variants[i]
		v.Name, v.About = name, name
		v.Expectations[0].Text = name
		v.Expectations[0].Value.P50 = at(math.Inf(1))
		v.Margins, v.NotCovered = []sim.Margin{{Text: name}}, []string{name}
		v.Fleets = []sim.FleetResult{{Name: name}, {Name: "b", Judged: 1, Collapse: sim.Share{Share: math.NaN()}}}
		v.Expectations[0].Where = name
		v.Advice = []sim.Advice{{Change: name, Verdict: name, YAML: name + "\n" + name, Held: math.NaN()}}
		v.Run.Services[1].Name = name
		v.Run.Services[1].Attempts[3] = math.NaN()
		v.Run.Goodput[4] = math.Inf(1)
	}
	return r
}
