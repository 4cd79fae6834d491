package httpdrill

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/scenario"
)

// Version is the version of the JSON form of a Result. Fields may be added to a version, never renamed or removed.
const Version = 2

// Result is what came of a drill. Its JSON form is for machines: times carry their unit in their name.
type Result struct {
	Version     int         `json:"version"`
	Setup       Setup       `json:"setup"`
	Acts        []ActResult `json:"acts"`
	Interrupted bool        `json:"interrupted"` // somebody stopped the drill; the last act is cut short
	// every act was well before the trouble and is as expected; those that show a storm do not matter
	Passed     bool        `json:"passed"`
	Verdict    string      `json:"verdict"` // what made the difference, in words
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Setup is what was run.
type Setup struct {
	Scenario         string   `json:"scenario"`
	Seed             uint64   `json:"seed"`
	Clients          int      `json:"clients"`
	OfferedPerSecond float64  `json:"offeredPerSecond"`
	WarmUpSeconds    float64  `json:"warmUpSeconds"`
	BeforeSeconds    float64  `json:"beforeSeconds"`
	TroubleSeconds   float64  `json:"troubleSeconds"`
	AfterSeconds     float64  `json:"afterSeconds"`
	Word             string   `json:"word"`           // for what goes wrong: "outage" or "trouble"
	Trouble          string   `json:"trouble"`        // what goes wrong, in words
	Recovered        float64  `json:"recoveredShare"` // of the goodput before, that counts as recovered
	HoldSeconds      float64  `json:"holdSeconds"`    // and how long it has to last
	Notes            []string `json:"notes"`          // what to know before believing the numbers
}

// ActResult is what came of one act. What is counted is counted within the act, without warm-up and drain.
type ActResult struct {
	Act        string  `json:"act"`
	ShowsStorm bool    `json:"showsStorm"` // it is expected to collapse
	Complete   bool    `json:"complete"`
	Setting    Setting `json:"setting"`
	Offered    int     `json:"offered"`
	Attempts   int     `json:"attempts"`
	// attempts per request offered, those that a guard refused counted in
	PerOffered float64 `json:"attemptsPerOffered"`
	// amplification: attempts per request that the guard let out at all
	PerSent         float64          `json:"attemptsPerSent"`
	Phases          []PhaseResult    `json:"phases"`
	RecoverySeconds *float64         `json:"recoverySeconds"` // from the end of the trouble; null for never
	Collapsed       bool             `json:"collapsed"`       // the trouble is over and goodput stays down
	Expectations    []drill.Expected `json:"expectations"`
	AnsweredP50     float64          `json:"answeredP50Seconds"`
	AnsweredP99     float64          `json:"answeredP99Seconds"`
	FailedP50       float64          `json:"failedP50Seconds"`
	FailedP99       float64          `json:"failedP99Seconds"`
	Refused         int              `json:"refusedEarly"` // requests that a guard refused, without an attempt
	// requests by how they ended; they add up to offered
	Endings        map[string]int `json:"endings"`
	BreakerRefused int            `json:"requestsRefusedByBreaker"` // without an attempt
	BudgetRefused  int            `json:"retriesRefusedByBudget"`   // each ended its call
	Service        ServiceCounts  `json:"service"`
	// how far this machine fell behind the schedule at worst
	LateSeconds float64     `json:"latestArrivalSeconds"`
	CPU         float64     `json:"cpuCores"` // processor time of the whole process per second
	BinSeconds  float64     `json:"binSeconds"`
	Series      []SeriesBin `json:"series"`

	numbers Numbers
	refuses bool // a fault answers 503, whatever waits
}

// Setting is what an act is run with.
type Setting struct {
	Policy            string  `json:"policy"` // where it is from
	Service           string  `json:"service"`
	Replicas          int     `json:"replicas"`
	Workers           int     `json:"workers"`     // of all replicas
	WorkSeconds       float64 `json:"workSeconds"` // of a request, with the service behind
	CapacityPerSecond float64 `json:"capacityPerSecond"`
	Queue             int     `json:"queue"` // places of each replica
	MaxAttempts       int     `json:"maxAttempts"`
	StormPerSecond    float64 `json:"stormPerSecond"` // if every attempt fails
	WithinSeconds     float64 `json:"withinSeconds"`  // in which it is expected to recover; 0 for no matter when
}

// ServiceCounts is what the service that the clients call saw.
type ServiceCounts struct {
	Refused      int     `json:"refused"`      // attempts answered 503 at once: the queue was full
	TurnedAway   int     `json:"turnedAway"`   // attempts that the gate in front of the service refused
	Worked       int     `json:"worked"`       // requests that workers have finished
	Wasted       int     `json:"wasted"`       // of those, the caller had left by then
	WastedShare  float64 `json:"wastedShare"`  // of the time that workers were held
	LongestQueue int     `json:"longestQueue"` // how many requests waited at once, at most
}

// PhaseResult is one phase of an act. Goodput is by the time of the request: of those offered in the phase, how many
// were answered, ever.
type PhaseResult struct {
	Phase             string  `json:"phase"`
	FromSeconds       float64 `json:"fromSeconds"`
	ToSeconds         float64 `json:"toSeconds"`
	OfferedPerSecond  float64 `json:"offeredPerSecond"`
	AttemptsPerSecond float64 `json:"attemptsPerSecond"`
	GoodputPerSecond  float64 `json:"goodputPerSecond"`
	Goodput           float64 `json:"goodput"` // share of the requests offered
	AnsweredP50       float64 `json:"answeredP50Seconds"`
	AnsweredP99       float64 `json:"answeredP99Seconds"`
	MemoryBytes       uint64  `json:"memoryBytes"` // most in use by this program, clients and service together
}

// SeriesBin is one column of the plot.
type SeriesBin struct {
	AtSeconds float64 `json:"atSeconds"`
	Offered   int     `json:"offered"`
	Attempts  int     `json:"attempts"`
	Answered  int     `json:"answered"`
	Refused   int     `json:"refused"`
	Failed    int     `json:"failed"`
}

// Recovered reports whether goodput came back.
func (a *ActResult) Recovered() bool { return a.RecoverySeconds != nil }

// healthyShare is the goodput before the trouble that a drill needs to mean anything.
const healthyShare = 0.9

// healthy reports whether goodput was as it should be before the trouble. Where it was not, a recovery to that level is
// worth nothing.
func (a *ActResult) healthy() bool {
	return len(a.Phases) > 0 && a.Phases[engine.Before].Goodput >= healthyShare
}

// passed reports whether all acts that are not there to show a storm are as expected.
func (r *Result) passed() bool {
	for i := range r.Acts {
		if a := &r.Acts[i]; !a.ShowsStorm && !a.passed() {
			return false
		}
	}
	return !r.Interrupted
}

func (a *ActResult) passed() bool {
	for _, e := range a.Expectations {
		if !e.Held {
			return false
		}
	}
	return a.healthy()
}

func (c Config) setup() Setup {
	s := c.Scenario
	begin, end := s.Trouble()
	return Setup{
		Scenario:         s.Name,
		Seed:             c.Seed,
		Clients:          max(s.Clients[0].Instances, 1),
		OfferedPerSecond: s.Clients[0].Rate,
		WarmUpSeconds:    s.WarmUp.Seconds(),
		BeforeSeconds:    begin.Seconds(),
		TroubleSeconds:   (end - begin).Seconds(),
		AfterSeconds:     (s.Duration - end).Seconds(),
		Word:             c.troubleWord(),
		Trouble:          c.troubleText(),
		Recovered:        s.Model.Recovered,
		HoldSeconds:      s.Model.Hold.Seconds(),
		Notes:            append([]string{}, c.Notes()...),
	}
}

func (c Config) troubleWord() string {
	for i := range c.Scenario.Faults {
		if c.Scenario.Faults[i].Outage == "" {
			return "trouble"
		}
	}
	return "outage"
}

// troubleText says what goes wrong, for how long.
func (c Config) troubleText() string {
	var parts []string
	for i := range c.Scenario.Faults {
		f := &c.Scenario.Faults[i]
		parts = append(parts, faultText(f)+" for "+drill.Seconds(f.For.Seconds()))
	}
	return strings.Join(parts, ", ")
}

// faultText says what a fault does, while it does.
func faultText(f *scenario.Fault) string {
	kind, target := f.Kind()
	if kind == scenario.OutageFault && f.Share > 0 && f.Share < 1 {
		return fmt.Sprintf("%s of %s is down", percent(f.Share), target)
	}
	if kind == scenario.OutageFault {
		return target + " is down"
	}
	return fmt.Sprintf("%s is in trouble (%s)", target, kind)
}

func (c Config) setting(a cast) Setting {
	within, _ := c.within(a.variant)
	s := Setting{
		Policy:            c.policyName(a.variant),
		Service:           a.service().Name,
		Workers:           a.workers(),
		WorkSeconds:       a.work().Seconds(),
		CapacityPerSecond: a.capacity(),
		Replicas:          replicas(a.service()),
		Queue:             a.service().Queue.Limit,
		MaxAttempts:       a.clientPolicy().MaxRetries + 1,
		StormPerSecond:    a.stormLoad(),
		WithinSeconds:     within.Seconds(),
	}
	return s
}

// policyName says where the policy of a variant is from.
func (c Config) policyName(v *scenario.Variant) string {
	if c.Policy != "" && v == c.Guarded() {
		return c.Policy
	}
	return fmt.Sprintf("%s in %s", v.Name, c.Scenario.File)
}

// actResult makes the result of an act out of its record; reached is how far the act came.
func (c Config) actResult(by cast, r *Recorder, reached time.Duration) ActResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.record
	n := NumbersOf(record, by.front)
	service := &record.Services[by.front]
	a := ActResult{
		Act:            by.variant.Name,
		ShowsStorm:     c.showsStorm(by.variant),
		Complete:       reached >= record.Duration,
		Setting:        c.setting(by),
		Offered:        int(n.Offered),
		Attempts:       int(n.Attempts),
		PerOffered:     finite(n.PerOffered),
		PerSent:        finite(n.PerSent),
		Expectations:   []drill.Expected{},
		Endings:        make(map[string]int),
		LateSeconds:    r.late.Seconds(),
		Refused:        int(n.Refused),
		BreakerRefused: r.breakerRefused,
		BudgetRefused:  r.budgetRefused,
		FailedP50:      finite(r.failed.Quantile(0.5)),
		FailedP99:      finite(r.failed.Quantile(0.99)),
		Service:        serviceCounts(service, n),
		numbers:        n,
		refuses: slices.ContainsFunc(c.Scenario.Faults,
			func(f scenario.Fault) bool { return f.Mode == scenario.Fail }),
	}
	latency := func(q float64, w expect.Window) float64 {
		return finite(record.Value(&expect.Expectation{Measure: "latency", Quantile: q, Window: w}))
	}
	a.AnsweredP50, a.AnsweredP99 = latency(0.5, expect.All), latency(0.99, expect.All)
	for k, count := range record.Fleets[0].Ends {
		if count > 0 {
			a.Endings[engine.EndKind(k).String()] = int(count)
		}
	}
	bounds := [...]time.Duration{0, record.Begin, record.End, record.Duration}
	for w := range windows {
		if from, to := bounds[w], min(bounds[w+1], reached); to > from {
			p := phaseResult(record, service, engine.Window(w), from, to)
			p.AnsweredP50, p.AnsweredP99 = latency(0.5, windows[w]), latency(0.99, windows[w])
			p.MemoryBytes = r.memory[w]
			a.Phases = append(a.Phases, p)
		}
	}
	if a.Complete {
		a.RecoverySeconds, a.Collapsed = known(n.Recovery), n.Collapsed
		for _, x := range c.expectations(by.variant) {
			v := record.Value(&x)
			a.Expectations = append(a.Expectations, drill.Expected{Text: x.Text, Held: x.Holds(v), Value: known(v)})
		}
	}
	a.series(record, service, columnWidth(record.Duration), reached)
	return a
}

// serviceCounts sums up what a service did.
func serviceCounts(s *engine.ServiceRecord, n Numbers) ServiceCounts {
	bins := len(s.Arrived)
	turnedAway := total(s.Shed, 0, bins) + total(s.Limited, 0, bins)
	return ServiceCounts{
		Refused:      total(s.Rejected, 0, bins) - turnedAway,
		TurnedAway:   turnedAway,
		Wasted:       total(s.Wasted, 0, bins),
		Worked:       total(s.Served, 0, bins) + total(s.Errors, 0, bins) + total(s.Wasted, 0, bins),
		WastedShare:  finite(n.Waste),
		LongestQueue: int(finite(n.Queue)),
	}
}

func phaseResult(r *engine.Record, s *engine.ServiceRecord, w engine.Window, from, to time.Duration) PhaseResult {
	f, seconds := &r.Fleets[0], (to - from).Seconds()
	first, behind := int(from/r.Bin), int(math.Ceil(float64(to)/float64(r.Bin)))
	offered, good := float64(total(f.Offered, first, behind)), float64(total(f.Good, first, behind))
	return PhaseResult{
		Phase: [...]string{"before", "trouble", "after"}[w], FromSeconds: from.Seconds(), ToSeconds: to.Seconds(),
		OfferedPerSecond: offered / seconds, AttemptsPerSecond: float64(total(s.Arrived, first, behind)) / seconds,
		GoodputPerSecond: good / seconds, Goodput: ratio(good, offered),
	}
}

// series fills in the columns of the plot up to where the act was run.
func (a *ActResult) series(r *engine.Record, s *engine.ServiceRecord, width, reached time.Duration) {
	f, per := &r.Fleets[0], int(width/r.Bin)
	a.BinSeconds = width.Seconds()
	for i := 0; time.Duration(i)*width < reached; i++ {
		from, to := i*per, (i+1)*per
		a.Series = append(a.Series, SeriesBin{
			AtSeconds: (time.Duration(i) * width).Seconds(),
			Offered:   total(f.Offered, from, to),
			Attempts:  total(s.Arrived, from, to),
			Answered:  total(f.Answered, from, to),
			Refused:   total(f.Refused, from, to),
			Failed:    total(f.Failed, from, to),
		})
	}
}
