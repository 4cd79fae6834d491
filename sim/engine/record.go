package engine

import (
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/scenario"
)

// Record is what happened in one run. Times are since the end of the warm-up. It is made of numbers only, and the same
// for the same scenario, variant and seed on every machine.
type Record struct {
	Seed     uint64
	Scale    int            // what the scenario was divided by; rates are multiplied by it where they are shown
	Model    scenario.Model // what counts as recovered and as collapsed
	Bin      time.Duration  // width of a bin of the series
	Duration time.Duration
	Begin    time.Duration // of the trouble: see scenario.Scenario.Trouble
	End      time.Duration
	Fleets   []FleetRecord   // in the order of the scenario
	Services []ServiceRecord // in the order of the scenario
	Edges    []EdgeRecord    // caller → callee, callers in the order fleets, services
	Events   int64           // of the engine
	Attempts int64           // on all edges, warm-up included
	LastEnd  time.Duration   // when the last request ended
	Detail   *Detail         // of the one run that was asked for it

	all *FleetRecord // all fleets as one, once somebody asked
}

// FleetRecord is what one fleet saw. Slices have one member per bin.
type FleetRecord struct {
	Name     string
	Offered  []uint32        // requests that began
	Good     []uint32        // of the requests that began in this bin: how many were answered in time, ever
	Bad      []uint32        // of the requests that began in this bin: how many failed or were never answered
	Answered []uint32        // requests answered with success in this bin
	Failed   []uint32        // requests that failed in this bin, after at least one attempt
	Refused  []uint32        // requests that a guard refused in this bin without an attempt, or an operator shed
	Serving  time.Duration   // when each of its instances had had an answer after the trouble; 0 if that never was
	Latency  [4]Histogram    // of answered requests, by the window they began in; the fourth is outside of all
	Ends     [EndKinds]int64 // requests by how they ended, warm-up excluded
	Topic    *TopicRecord    // of a fleet that consumes, whose requests are messages; else nil

	sessions *SessionRecord // of one whose users hold sessions
}

// ServiceRecord is what one service saw, all replicas together.
type ServiceRecord struct {
	Name        string
	Arrived     []uint32            // attempts that callers sent to it, whether or not they got through
	Retries     []uint32            // of those: not the first attempt of their call
	Served      []uint32            // answers with success to callers that still waited
	Errors      []uint32            // answers with an error after work
	Rejected    []uint32            // refused: queue full, connection refused, dropped
	Wasted      []uint32            // work finished for callers that had left
	WorkNS      []int64             // time that workers were held, noted when they were freed
	HeldNS      []int64             // time that workers were held within the bin
	WasteNS     []int64             // of WorkNS: for callers that had left
	Waiting     []uint32            // requests in the queues, at the end of the bin
	Longest     []uint32            // most requests waiting at once in one replica
	Busy        []uint32            // workers held, at the end of the bin
	Conns       []uint32            // most open connections at once, in the bin
	Connects    []uint32            // attempts to open a connection
	Unopened    []uint32            // of those: refused, or broken off by the service; not those that nobody answered
	WaitNS      []int64             // waits of the requests whose work began in this bin, summed
	Waits       []uint32            // and their number
	Shed        []uint32            // of those rejected: the gate found the service overloaded, or their deadline passed
	Limited     []uint32            // of those rejected: the gate's rate limit
	Limit       []uint32            // requests that all gates let in at once, at the end of the bin; 0 without a limit
	GateWait    [4]Histogram        // time in the gates' queues of those they let in, by the window in which they came in
	Response    [4]Histogram        // from arrival, at the gate if there is one, to the end of the work; successes only
	Wait        [4]Histogram        // waits, by the window in which work began; the fourth is outside of all
	Peak        [4]uint32           // most arrivals within any 10 ms, by window
	ConnectPeak [4]uint32           // most attempts to open a connection within any 100 ms, by window
	Reasons     [shed.CPU + 1]int64 // what the gates refused, warm-up excluded, by why; rate limits are not among them
	Visits      []float64           // calls to it that one request of each fleet needs if nothing fails
	Workers     int                 // of all replicas; 0 for no limit
	Capacity    float64             // requests per second by its own work alone; +Inf for no limit

	world   *WorldRecord // of one that changes while it runs
	classes *classes     // of what came to its gates, if it has any
}

// EdgeRecord is what the guards of one edge did.
type EdgeRecord struct {
	Caller, Callee string
	Calls          int64
	Attempts       int64
	Hedges         int64
	Ends           [EndKinds]int64 // calls by how they ended
}

// EndKind is how a call or a request ended.
type EndKind uint8

// How a call ended. A call that failed after several attempts, without a reason of the policy's, has the kind of its
// last attempt.
const (
	Answered          EndKind = iota // with success
	RefusedConnection                // nobody listened
	Reset                            // the connection broke: a restart
	QueueFull                        // 503
	ServerError                      // 500
	Conflict                         // 409
	BadGateway                       // 502: a call that the service made failed
	TimedOut                         // no answer in time
	NoConnection                     // too many connections
	Overloaded                       // 503 of the service's gate
	RateLimited                      // 429 of the service's gate
	Expired                          // 504 of the service's gate: the deadline has passed
	CircuitOpen                      // the breaker refused, before any attempt
	BulkheadFull                     // the bulkhead refused
	AttemptsLimited                  // the guard's rate limit refused, before any attempt
	Throttled                        // the guard's throttle refused, before any attempt
	Shed                             // an operator sheds load
	Unanswered                       // the run ended first
	EndKinds
)

// refusedBy is what a call ends as whose guard refused it before any attempt, by the reason.
var refusedBy = [...]struct {
	reason error
	end    EndKind
}{
	{abate.ErrCircuitOpen, CircuitOpen}, {abate.ErrBulkheadFull, BulkheadFull}, {abate.ErrRateLimited, AttemptsLimited},
	{abate.ErrThrottled, Throttled},
}

// refused reports whether nothing was sent: a guard refused, or an operator.
func (k EndKind) refused() bool { return k >= CircuitOpen && k <= Shed }

var endNames = [...]string{"answered", "refused", "reset", "queue-full", "server-error", "conflict", "bad-gateway",
	"timed-out", "no-connection", "overloaded", "rate-limited", "expired", "circuit-open", "bulkhead-full",
	"attempts-limited", "throttled", "shed", "unanswered"}

// String returns the name used in JSON.
func (k EndKind) String() string { return endNames[k] }

// Window is a part of a run.
type Window uint8

// The windows of a run: before, during and after the trouble.
const (
	Before Window = iota
	During
	After
)

// WindowAt returns the window that a moment belongs to.
func (r *Record) WindowAt(at time.Duration) Window {
	switch {
	case at < r.Begin:
		return Before
	case at < r.End:
		return During
	}
	return After
}

// Detail is what only one run of a study keeps, for pictures.
type Detail struct {
	Fine     FineArrivals
	HeatBin  time.Duration
	Heat     [][HeatRows]uint32 // latency of answered requests of all fleets, per HeatBin of their end
	StateBin time.Duration
	States   []StateStrip
	Sample   []Span // one request, the most eventful of a few hundred
}

// HeatRows is how many rows of latency a heat map has: row i holds latencies from 1 ms × 2^(i/2) up; row 0 also less.
const HeatRows = 34

// FineArrivals are the attempts per 10 ms at each service around the end of the trouble.
type FineArrivals struct {
	From     time.Duration
	Services [][]uint16
}

// StateStrip is the state of the guards of one edge over time, one member per StateBin.
type StateStrip struct {
	Caller, Callee string
	Open           []float32 // share of breakers that are open
	HalfOpen       []float32 // share that probes or ramps up
	Budget         []float32 // mean extra attempts that could be sent; -1 without a budget
	Bulkhead       []float32 // mean calls that wait for a permit
}

// Span is one stretch of a request's life, for a waterfall: a call, an attempt, a wait or work.
type Span struct {
	Depth    int
	Kind     string // "request", "call", "attempt", "backoff", "gate", "queue", "work"
	Where    string
	From, To time.Duration
	End      EndKind
}
