package drill

import "fmt"

// Second is what one second of an act came to, for the line that shows it while the act is run. It says how things
// stand, whatever was planned for that second: an act may be down long after a fault is over.
type Second struct {
	Offered  int // requests that began, or messages that were written
	Answered int // requests that were answered with success, or messages that were handled
	Refused  int // requests that a guard refused without an attempt
	Attempts int // at the service that is called
	Extra    int // of them, those that are no first attempts
	Circuits Circuits
}

// When a second is well. A share that is missing, or as many requests as make no difference: the measure of harm has
// the same floor, and between two seconds a few requests are always under way.
const (
	missingShare = 0.05
	missingFew   = 3
	// extraShare is what the retry budget adds by default, for long.
	extraShare = 0.1
)

// Answering reports whether requests are answered as they come.
func (s *Second) Answering() bool {
	return float64(s.Offered-s.Answered) <= max(missingShare*float64(s.Offered), missingFew) &&
		(s.Answered > 0 || s.Offered == 0)
}

// Well reports whether all is well: requests are answered as they come, at the load that they are, and no circuit is
// open or on its way back.
func (s *Second) Well() bool {
	return s.Answering() && s.Circuits.Away() == 0 && !s.TooMany()
}

// TooMany reports whether extra attempts add more to the load than a budget allows for long.
func (s *Second) TooMany() bool {
	return float64(s.Extra) > max(extraShare*float64(s.Offered), missingFew)
}

// Share is which share of the requests offered was answered, in at most 5 characters. Answers of requests that
// began earlier count, so it stops at 100 %; a dash stands for no request.
func (s *Second) Share() string {
	if s.Offered == 0 {
		return "–"
	}
	percent := 100 * float64(min(s.Answered, s.Offered)) / float64(s.Offered)
	switch {
	case s.Answered > 0 && percent < 1:
		return "<1 %" // not nothing
	case s.Answered < s.Offered && percent > 99:
		return "99 %" // not all
	}
	return fmt.Sprintf("%.0f %%", percent)
}

// ExtraLoad is what the extra attempts add to the load, in words: "+12 %".
func (s *Second) ExtraLoad() string {
	if s.Offered == 0 {
		return "–"
	}
	return fmt.Sprintf("+%.0f %%", 100*float64(s.Extra)/float64(s.Offered))
}

// Circuits are how many circuits stand how.
type Circuits struct {
	All      int // with a breaker; 0 if there is none
	Open     int
	HalfOpen int // or in their ramp-up: on their way back
}

// Add counts n more circuits in a state, by its name; less, if n is below 0.
func (c *Circuits) Add(state string, n int) {
	switch state {
	case "open":
		c.Open += n
	case "closed":
	default:
		c.HalfOpen += n
	}
}

// Away is how many are not closed.
func (c *Circuits) Away() int { return c.Open + c.HalfOpen }

// String is how they stand, in words: "closed", "half-open", "37 open, 3 half-open", "none" without a breaker.
func (c *Circuits) String() string {
	switch {
	case c.All == 0:
		return "none"
	case c.Away() == 0:
		return "closed"
	case c.All == 1 && c.Open > 0:
		return "open"
	case c.All == 1:
		return "half-open"
	case c.HalfOpen == 0:
		return fmt.Sprintf("%d open", c.Open)
	case c.Open == 0:
		return fmt.Sprintf("%d half-open", c.HalfOpen)
	}
	return fmt.Sprintf("%d open, %d half-open", c.Open, c.HalfOpen)
}
