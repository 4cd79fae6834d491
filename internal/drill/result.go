package drill

import (
	"time"
)

// Version is the version of the JSON form of a Result. Fields may be added to a version, never renamed or removed.
const Version = 1

// Result is what came of a drill. Its JSON form is for machines: times carry their unit in their name.
type Result struct {
	Version     int         `json:"version"`
	Setup       Setup       `json:"setup"`
	Acts        []ActResult `json:"acts"`
	Interrupted bool        `json:"interrupted"` // somebody stopped the drill; the last act is cut short
	Passed      bool        `json:"passed"`      // the guarded act recovered in time; true when it was not to be played
	Verdict     string      `json:"verdict"`     // what made the difference, in words
}

// Setup is what was played.
type Setup struct {
	Seed                  uint64   `json:"seed"`
	Clients               int      `json:"clients"`
	OfferedPerSecond      float64  `json:"offeredPerSecond"`
	Workers               int      `json:"workers"`
	ServiceTimeSeconds    float64  `json:"serviceTimeSeconds"`
	CapacityPerSecond     float64  `json:"capacityPerSecond"`
	Queue                 int      `json:"queue"`
	QueueSeconds          float64  `json:"queueSeconds"`
	StormPerSecond        float64  `json:"stormPerSecond"`
	AttemptTimeoutSeconds float64  `json:"attemptTimeoutSeconds"`
	Retries               int      `json:"retries"`
	RetryDelaySeconds     float64  `json:"retryDelaySeconds"`
	BeforeSeconds         float64  `json:"beforeSeconds"`
	OutageSeconds         float64  `json:"outageSeconds"`
	AfterSeconds          float64  `json:"afterSeconds"`
	WithinSeconds         float64  `json:"withinSeconds"`
	Threshold             float64  `json:"threshold"`
	HoldSeconds           float64  `json:"holdSeconds"`
	Policy                string   `json:"policy"`
	Notes                 []string `json:"notes"` // what to know before believing the numbers
}

// ActResult is what came of one act.
type ActResult struct {
	Act             string         `json:"act"`
	Complete        bool           `json:"complete"`
	Offered         int            `json:"offered"`
	Attempts        int            `json:"attempts"`
	PerOffered      float64        `json:"attemptsPerOffered"` // attempts per request offered, those refused early counted in
	PerSent         float64        `json:"attemptsPerSent"`    // amplification: attempts per request that the guard let out at all
	Phases          []PhaseResult  `json:"phases"`
	RecoverySeconds *float64       `json:"recoverySeconds"` // from the end of the outage; null for never
	AnsweredP50     float64        `json:"answeredP50Seconds"`
	AnsweredP99     float64        `json:"answeredP99Seconds"`
	FailedP50       float64        `json:"failedP50Seconds"`
	FailedP99       float64        `json:"failedP99Seconds"`
	Endings         map[string]int `json:"endings"`                  // calls by how they ended; they add up to offered
	BreakerRefused  int            `json:"requestsRefusedByBreaker"` // without an attempt
	BudgetRefused   int            `json:"retriesRefusedByBudget"`   // each ended its call
	Service         ServiceCounts  `json:"service"`
	LateSeconds     float64        `json:"latestArrivalSeconds"` // how far this machine fell behind the schedule at worst
	CPU             float64        `json:"cpuCores"`             // processor time of the whole process per second
	BinSeconds      float64        `json:"binSeconds"`
	Series          []SeriesBin    `json:"series"`
}

// PhaseResult is one phase of an act. The first is measured from when the first answers are in.
type PhaseResult struct {
	Phase             string  `json:"phase"`
	FromSeconds       float64 `json:"fromSeconds"`
	ToSeconds         float64 `json:"toSeconds"`
	OfferedPerSecond  float64 `json:"offeredPerSecond"`
	AttemptsPerSecond float64 `json:"attemptsPerSecond"`
	GoodputPerSecond  float64 `json:"goodputPerSecond"`
	Goodput           float64 `json:"goodput"` // share of the requests that arrived one service time earlier, and so could be answered by now
	AnsweredP50       float64 `json:"answeredP50Seconds"`
	AnsweredP99       float64 `json:"answeredP99Seconds"`
}

// SeriesBin is one column of the plot.
type SeriesBin struct {
	AtSeconds float64 `json:"atSeconds"`
	Offered   int     `json:"offered"`
	Attempts  int     `json:"attempts"`
	Answered  int     `json:"answered"`
	Late      int     `json:"late"`
	Refused   int     `json:"refused"`
	Failed    int     `json:"failed"`
}

// Recovered tells whether goodput came back.
func (a *ActResult) Recovered() bool { return a.RecoverySeconds != nil }

// healthyShare is the goodput before the outage that a drill needs to mean anything.
const healthyShare = 0.9

// healthy tells whether goodput was as it should be before the outage. Where it was not, a recovery to that level is worth
// nothing.
func (a *ActResult) healthy() bool {
	return len(a.Phases) > 0 && a.Phases[BeforeOutage].Goodput >= healthyShare
}

// act returns the result of the named act, or nil.
func (r *Result) act(name string) *ActResult {
	for i := range r.Acts {
		if r.Acts[i].Act == name {
			return &r.Acts[i]
		}
	}
	return nil
}

func (c Config) setup() Setup {
	return Setup{
		Seed: c.Seed, Clients: c.Clients, OfferedPerSecond: c.Rate,
		Workers: c.Service.Workers, ServiceTimeSeconds: c.Service.ServiceTime.Seconds(), CapacityPerSecond: c.Service.Capacity(),
		Queue: c.Service.Queue, QueueSeconds: c.Service.QueueTime().Seconds(), StormPerSecond: c.StormLoad(),
		AttemptTimeoutSeconds: c.AttemptTimeout.Seconds(), Retries: c.Retries, RetryDelaySeconds: c.RetryDelay.Seconds(),
		BeforeSeconds: c.Before.Seconds(), OutageSeconds: c.Outage.Seconds(), AfterSeconds: c.After.Seconds(),
		WithinSeconds: c.Within.Seconds(), Threshold: Threshold, HoldSeconds: Hold.Seconds(),
		Policy: c.Policy.Name, Notes: append([]string{}, c.Notes()...),
	}
}

// actResult makes the result of an act out of its record; played is how far the act came.
func (c Config) actResult(name string, r *Recorder, played time.Duration) ActResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	arrivals := r.arrivals()
	offered := func(from, to time.Duration) int {
		return arrivals(from-c.Service.ServiceTime, to-c.Service.ServiceTime)
	}
	a := ActResult{
		Act: name, Complete: played >= c.Length(), Offered: len(r.begins), Attempts: r.attempts,
		PerOffered: ratio(float64(r.attempts), float64(len(r.begins))),
		Endings:    make(map[string]int), LateSeconds: r.late.Seconds(),
		BreakerRefused: r.breakerRefused, BudgetRefused: r.budgetRefused,
	}
	for _, call := range r.calls {
		a.Endings[call.ending.String()]++
	}
	a.PerSent = ratio(float64(r.attempts), float64(a.Offered-a.Endings[RefusedEarly.String()]))
	for p := range phases {
		if from, to := c.bounds(p); played > from {
			a.Phases = append(a.Phases, phaseResult(r, offered, p, from, min(to, played)))
		}
	}
	answered := latenciesOf(r.calls, func(k call) bool { return k.ending == Answered })
	failed := latenciesOf(r.calls, func(k call) bool { return k.ending.failed() })
	a.AnsweredP50, a.AnsweredP99 = quantile(answered, 0.5).Seconds(), quantile(answered, 0.99).Seconds()
	a.FailedP50, a.FailedP99 = quantile(failed, 0.5).Seconds(), quantile(failed, 0.99).Seconds()
	if a.Complete {
		normal := min(a.Phases[BeforeOutage].Goodput, 1) // one answer to a request of before the first bin is one too many
		if d, ok := recovery(r.bins, offered, c.Before+c.Outage, normal); ok {
			s := d.Seconds()
			a.RecoverySeconds = &s
		}
	}
	a.series(r.bins, coarseWidth(c.Length()), played)
	return a
}

func phaseResult(r *Recorder, offered func(from, to time.Duration) int, p Phase, from, to time.Duration) PhaseResult {
	seen, seconds := sum(r.bins, from, to), (to - from).Seconds()
	took := latenciesOf(r.calls, func(k call) bool { return k.ending == Answered && k.end >= from && k.end < to })
	return PhaseResult{
		Phase: p.String(), FromSeconds: from.Seconds(), ToSeconds: to.Seconds(),
		OfferedPerSecond:  float64(seen.Offered) / seconds,
		AttemptsPerSecond: float64(seen.Attempts) / seconds,
		GoodputPerSecond:  float64(seen.Answered) / seconds,
		Goodput:           share(r.bins, offered, from, to),
		AnsweredP50:       quantile(took, 0.5).Seconds(),
		AnsweredP99:       quantile(took, 0.99).Seconds(),
	}
}

// series fills in the columns of the plot up to where the act was played.
func (a *ActResult) series(bins []Bin, width, played time.Duration) {
	a.BinSeconds = width.Seconds()
	for i, b := range coarse(bins, width) {
		at := time.Duration(i) * width
		if at >= played {
			break
		}
		a.Series = append(a.Series, SeriesBin{
			AtSeconds: at.Seconds(), Offered: b.Offered, Attempts: b.Attempts,
			Answered: b.Answered, Late: b.Late, Refused: b.Refused, Failed: b.Failed,
		})
	}
}
