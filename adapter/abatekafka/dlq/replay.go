package dlq

import (
	"time"

	"github.com/abate-go/abate"
)

// Replay says what to replay and how carefully.
type Replay struct {
	// Filter chooses the letters. Those in another state than Waiting are replayed only if its State says so.
	Filter Filter
	// To is the topic. Empty: the original one of each.
	To string
	// DryRun sends nothing and writes nothing.
	DryRun bool
	// Rate is messages per second at most. Zero: 100. Range 0.01 to 1000000.
	Rate float64
	// Batches grow 1, 2, 5, 10, ... 10000. After each the replay waits until the group that reads the letters has
	// committed an offset behind all of them, which tells that each was handled or has failed again, and stops when
	// more than MaxFailures of the batch, or of all so far, have failed (a share, 0 to 1; zero: 0.1; negative: at the
	// first one).
	MaxFailures float64
	// Reader is that group. Empty: the one that failed at the letter, where it goes back to its topic; else every group
	// that reads the target.
	Reader string
	// Settle is how long it waits where nobody reads, because the group has no members or has committed nothing (zero:
	// 5s, at most 24h); Patience how long while the group's commits stand still (zero: 5m). Then the replay ends, with
	// what is known. It can be resumed.
	Settle, Patience time.Duration
	// Unjudged goes on without a verdict, Settle after each batch: for readers that commit nothing. Only what fails
	// again stops it.
	Unjudged bool
	// MaxReplays leaves out what has been replayed so often already. Zero: 3.
	MaxReplays int
	// Watch are the topics in which a message that fails again turns up, besides the dead-letter topic. Nil: every
	// topic whose name begins with that of the target and goes on with "-" and "retry", or with "-" or "." and ends as
	// those of dead letters do, or in which a letter failed before.
	Watch []string
	// Resume continues the replay with this ID: with its Filter and To, without what it has sent. Other fields that are
	// zero are as they were.
	Resume string
	// TakeOver begins although another replay has given a sign of life within the last minute: because its process is
	// known to be dead. If it is not, it stops within a second or two.
	TakeOver bool
	// Guard, if not nil, is the service that the consumers call: while its circuit is open the replay waits.
	Guard *abate.Guard
	// Progress is told after every chunk and batch, and at the end, one call at a time; nil for none. It must be quick.
	Progress func(Progress)
	// Report is told of each letter, one call at a time, before it is sent: where to, or, if it is left out, why; nil for
	// none. A dry run tells, too.
	Report func(e *Entry, to string, skip string)
}

// Phase is what a replay is doing.
type Phase string

// The phases. Counting reads the topic first, to know how many there are; Settling waits for those that fail again;
// CircuitOpen waits for the service of its guard. Stopped (too many failed, or it could not go on), Cancelled, Pending
// and Done are ends. Pending: all was sent, and some of it nobody has got to yet; resumed, the replay tells what became
// of those.
const (
	Counting    Phase = "counting"
	Running     Phase = "running"
	Settling    Phase = "settling"
	CircuitOpen Phase = "circuit-open"
	Stopped     Phase = "stopped"
	Cancelled   Phase = "cancelled"
	Pending     Phase = "pending"
	Done        Phase = "done"
)

// Ended reports whether it is over. What was stopped or cancelled or is pending can be resumed.
func (p Phase) Ended() bool { return p == Stopped || p == Cancelled || p == Pending || p == Done }

// Progress is a replay at one moment.
type Progress struct {
	ID string `json:"id"`
	// Chosen is how many letters the filter chose; Sent were acknowledged (in a dry run: would be sent), those of
	// earlier runs of a resumed replay included; Failed could not be sent; Skipped were left out, Skips says why; Back
	// have failed again, in a retry topic or as a new dead letter.
	Chosen  int `json:"chosen"`
	Sent    int `json:"sent"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Back    int `json:"back"`
	// Handled, Waiting and Gone are the rest of Sent: those that their group has finished, those that it has not got
	// to, and those that it had not got to when their topic was deleted and made anew. ETASeconds is how long the
	// waiting will take at its pace; 0 if nobody knows.
	Handled    int            `json:"handled"`
	Waiting    int            `json:"waiting"`
	Gone       int            `json:"gone,omitempty"`
	ETASeconds float64        `json:"etaSeconds,omitempty"`
	Skips      map[string]int `json:"skips,omitempty"`
	// Batch is the size of the batch under way, and Batches counts them.
	Batch   int `json:"batch"`
	Batches int `json:"batches"`
	// DryRun reports that nothing was sent.
	DryRun bool  `json:"dryRun,omitempty"`
	Phase  Phase `json:"phase"`
	// Why says why it waits or ended, for people, and what to do.
	Why string `json:"why,omitempty"`
	// Started is when it began, Updated when this was told.
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	// By is who started it.
	By string `json:"by"`
}
