package sim

import (
	"github.com/abate-go/abate/sim/engine"
)

// Version is the version of the JSON form of a Result. Fields may be added to a version, never renamed or removed.
const Version = 1

// Result is what came of a study: a scenario, run under each of its variants on the same random numbers. The same
// scenario, options and version give the same bytes on every machine. Times are in seconds, shares between 0 and 1.
// What was never reached, such as the recovery of a run that collapsed, is null in JSON and NaN-free everywhere.
type Result struct {
	Version     int             `json:"version"`
	Name        string          `json:"name"`
	About       string          `json:"about,omitempty"`
	File        string          `json:"file,omitempty"`
	Seed        uint64          `json:"seed"` // of the first run; run i has seed + i
	Scale       int             `json:"scale"`
	Seconds     float64         `json:"durationSeconds"`
	TroubleFrom float64         `json:"troubleFromSeconds"`
	TroubleTo   float64         `json:"troubleToSeconds"`
	Faults      []FaultText     `json:"faults"`
	Verdict     string          `json:"verdict"` // PASS, FAIL, UNDECIDED, or NONE without expectations
	Interrupted bool            `json:"interrupted"`
	Variants    []VariantResult `json:"variants"`
	Assumptions []Assumption    `json:"assumptions"`
	NotModelled []string        `json:"notModelled"`
}

// FaultText is a fault in words, for legends.
type FaultText struct {
	Text string  `json:"text"`
	From float64 `json:"fromSeconds"`
	To   float64 `json:"toSeconds"`
}

// Assumption is one setting of the run, given or by default.
type Assumption struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Default bool   `json:"default"` // nobody wrote it down
	Why     string `json:"why"`     // what it means, in a sentence
}

// VariantResult is what came of one variant.
type VariantResult struct {
	Name         string              `json:"name"`
	About        string              `json:"about,omitempty"`
	Runs         int                 `json:"runs"`
	Verdict      string              `json:"verdict"`
	Expectations []ExpectationResult `json:"expectations"`
	// what a reader should know before he believes the numbers
	Notes []string `json:"notes"`
	// what the verdict does not say, to be read beside it: a fleet that no fault reaches, or a margin nobody looked for
	NotCovered []string `json:"notCovered"`
	// how each fleet fared, where there are several
	Fleets   []FleetResult `json:"fleets,omitempty"`
	Collapse Share         `json:"collapse"`   // runs in which goodput stayed down, of any fleet
	Recovery []float64     `json:"recoveries"` // seconds, of the runs in which all fleets recovered, ascending
	// runs with nothing to recover to, or in which nothing was offered after the trouble
	NoRecovery   int           `json:"recoveriesUnmeasured"`
	Measures     []Measure     `json:"measures"`              // a standard list, for tables
	Differences  []Difference  `json:"differences,omitempty"` // of those from the first variant, which has none
	Fan          Fan           `json:"fan"`
	Paths        []Path        `json:"paths"` // of the first runs, for a phase portrait
	Run          Series        `json:"run"`   // of the first run
	Margins      []Margin      `json:"margins,omitempty"`
	Map          *CliffMap     `json:"map,omitempty"`
	Advice       []Advice      `json:"advice,omitempty"`
	AdviceSearch *AdviceSearch `json:"adviceSearch,omitempty"` // what was looked at for it, where it was looked for
	Policy       string        `json:"policy"`                 // of every edge, in force, as YAML
	Cohort       *CohortCheck  `json:"cohort,omitempty"`       // of a fleet counted in cohorts
	Events       int64         `json:"events"`
	Attempts     int64         `json:"attempts"`
}

// FleetResult is how one of several fleets fared.
type FleetResult struct {
	Name       string    `json:"name"`
	Collapse   Share     `json:"collapse"`   // of the runs in which it can be said: not those in which it offered nothing
	Judged     int       `json:"judgedRuns"` // how many those are
	Recovery   []float64 `json:"recoveries"` // seconds, of the runs in which it recovered, ascending
	NoRecovery int       `json:"recoveriesUnmeasured"`
	Requests   int       `json:"judgedRequests"` // on which a run's verdict rests, the median over the runs
}

// CohortCheck says how well cohorts agree with clients that run one by one.
type CohortCheck struct {
	Error   float64 `json:"error"`   // difference of the attempts per second, as a share of all attempts
	Clients int     `json:"clients"` // how many were run to find out; more agree better
}

// Share is a share of the runs with its 95 % Wilson interval.
type Share struct {
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// ExpectationResult is the verdict on one expectation.
type ExpectationResult struct {
	Text       string `json:"text"`
	Verdict    string `json:"verdict"`
	Runs       int    `json:"runs"`
	Held       int    `json:"held"`
	Unmeasured int    `json:"unmeasured"`
	// of an expectation about all fleets, where there are several: who collapsed, or came back last, in how many runs
	Where  string    `json:"where,omitempty"`
	Held95 Share     `json:"interval"`
	Needed float64   `json:"neededShare"`
	Value  Quantiles `json:"value"` // of what was measured, in the unit of the expectation
}

// Measure is one measured number over all runs.
type Measure struct {
	Name   string    `json:"name"` // as an expectation writes it: "amplification(payment-db)"
	Unit   string    `json:"unit"` // "", "s", "share", "1/s", "count"
	Value  Quantiles `json:"value"`
	Mean   float64   `json:"mean"`
	SD     float64   `json:"sd"`
	Finite int       `json:"finite"` // runs in which it could be measured; the others are left out
}

// Difference is by how much a variant differs from the first one in a measure, over the seeds that both ran.
type Difference struct {
	Measure string  `json:"measure"` // as in Measure.Name
	Unit    string  `json:"unit"`
	Mean    float64 `json:"mean"` // of this variant's value minus the first one's, on the same seed
	Low     float64 `json:"low"`  // 95 % interval of the mean, by Student's t; of each measure by itself
	High    float64 `json:"high"`
	Pairs   int     `json:"pairs"` // seeds on which both could be measured, at least 2
}

// Quantiles of a number over the runs; nil where more than that share of the runs never reached it.
type Quantiles struct {
	P05 *float64 `json:"p05"`
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
}

// Fan is how the runs spread over time, one member per bin.
type Fan struct {
	BinSeconds float64   `json:"binSeconds"`
	Low        []float64 `json:"p05"` // goodput as a share of what was offered, by the time of the request
	Mid        []float64 `json:"p50"`
	High       []float64 `json:"p95"`
}

// Path is one run as a line in the plane of queue wait and goodput.
type Path struct {
	Seed    uint64    `json:"seed"`
	Wait    []float64 `json:"waitSeconds"` // the longest mean queue wait of all services, per bin of Fan
	Goodput []float64 `json:"goodput"`
}

// Series is one run, coarse enough to draw: at most 300 bins. It shares its detail with the engine's record.
type Series struct {
	Seed       uint64          `json:"seed"`
	BinSeconds float64         `json:"binSeconds"`
	Offered    []float64       `json:"offeredPerSecond"` // all fleets
	Goodput    []float64       `json:"goodputPerSecond"` // answers, by the time of the answer
	Failed     []float64       `json:"failedPerSecond"`
	Refused    []float64       `json:"refusedPerSecond"`
	Services   []ServiceSeries `json:"services"`
	P50        []float64       `json:"latencyP50Seconds"` // of answered requests; 0 where there were none
	P99        []float64       `json:"latencyP99Seconds"`
	Detail     *engine.Detail  `json:"-"`
}

// ServiceSeries is one service in one run.
type ServiceSeries struct {
	Name     string    `json:"name"`
	Attempts []float64 `json:"attemptsPerSecond"`
	Retries  []float64 `json:"retriesPerSecond"`
	Served   []float64 `json:"servedPerSecond"`
	Wasted   []float64 `json:"wastedPerSecond"` // work finished for callers that had left
	Rejected []float64 `json:"rejectedPerSecond"`
	// attempts per request that needs the service; 0 where none was offered
	Amplification []float64 `json:"amplification"`
	Wait          []float64 `json:"queueWaitSeconds"` // mean of the requests that left the queue; -1 where none did
	Waiting       []float64 `json:"waiting"`
	Gated         bool      `json:"gated"` // gates stand in front of its replicas
	// refused by them for overload, or because a deadline had passed
	Shed        []float64 `json:"shedPerSecond"`
	RateLimited []float64 `json:"rateLimitedPerSecond"` // refused by their rate limit
	// attempts that they let in at once, all together; 0 without such a limit
	Limit    []float64 `json:"concurrencyLimit"`
	Refusals []Refusal `json:"refusals"`              // what they refused, by why
	Capacity float64   `json:"capacityPerSecond"`     // 0 for no limit
	Timeout  float64   `json:"attemptTimeoutSeconds"` // the shortest of its callers'; 0 for none

	// AmplificationBound is how many attempts per call the retry budgets of its direct callers allow in the long run,
	// 1 + ratio, the largest of them; 0 if a caller that retries has no such budget. Reserves, what was saved up within
	// the budget's window, and other layers come on top.
	AmplificationBound float64 `json:"amplificationBound"`
}

// Refusal is why gates refused attempts, and how many.
type Refusal struct {
	Reason string  `json:"reason"` // rate-limited, expired, priority, attempt, unfair, queue-full, queue-delay or cpu
	Count  float64 `json:"count"`
}

// Margin is the distance to the cliff along one dimension.
type Margin struct {
	Dimension string `json:"dimension"` // "load", "trouble" (its length), "capacity"
	// whose margin it is, where one of several fleets differs; all loads grow together, the values are its own
	Fleet  string  `json:"fleet,omitempty"`
	Unit   string  `json:"unit"` // requests/s, users, requests (once), factor (several of these), s, share
	Here   float64 `json:"here"`
	Cliff  float64 `json:"cliff"`            // where the verdict turns, the middle of the bracket
	Low    float64 `json:"low"`              // bracket
	High   float64 `json:"high"`             // bracket
	Beyond bool    `json:"beyond"`           // no cliff was found up to High (for capacity: down to Low)
	Stands bool    `json:"stands"`           // whether the scenario itself stands, on the safe side
	Runs   int     `json:"runs"`             // how many runs the search took
	Breaks string  `json:"breaks,omitempty"` // what happens on the other side: "collapses", "misses recovery < 20s"
	Text   string  `json:"text"`             // "stands up to 1.8 × the load (18,000 requests/s)"
}

// CliffMap is the share of collapsed runs over load and length of the trouble.
type CliffMap struct {
	Loads    []float64   `json:"loads"`    // factors of the scenario's
	Lengths  []float64   `json:"lengths"`  // seconds
	Collapse [][]float64 `json:"collapse"` // [length][load]; -1 where it was not run
	Runs     int         `json:"runsPerCell"`
	HereLoad float64     `json:"hereLoad"`
	HereLen  float64     `json:"hereLength"`

	// StableLoad is the factor of the load at which all attempts that the policies allow fill the capacity of a service:
	// offered × attempts = capacity, where a call makes maxRetries + 1 attempts, with a retry budget 1 + ratio, and layers
	// multiply. 0 where that is not known: without a capacity, and with users or once, who offer no fixed rate.
	StableLoad float64 `json:"stableLoad"`
}
