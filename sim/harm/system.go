package harm

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/kernel"
)

// System is one random system, and its day.
type System struct {
	Number    int
	Kind      Kind
	Rate      float64       // requests per second
	Instances int           // of the program that users speak to, each with its own guards
	Patience  time.Duration // of users; 0 for no end
	Deadlines bool          // what a caller does not wait for any more is given up by those behind it, too
	Services  []Service     // the first one is called by users
	Target    int           // the service that the trouble is with

	WarmUp, Duration time.Duration
	Hold             time.Duration // over which goodput is looked at
	Faults           []string      // as a scenario file has them
	Curve            string        // of the rate, the same; empty for an even load
}

// Service is one service of a system.
type Service struct {
	Name        string
	Replicas    int
	Workers     int           // of each replica; 0 for no limit
	Mean        time.Duration // of its own work
	Time        string        // its distribution
	Balancing   string
	Queue       string // as a scenario file has it; empty for one without limit
	Utilisation float64
	ErrorRate   float64       // on every day
	Timeout     time.Duration // of an attempt at it, which all its callers have in common; 0 for none
	Calls       []int
	Parallel    bool
	hold        time.Duration // how long a request keeps a worker when all is well
}

const (
	seed     = 0x68_61_72_6d // of all systems
	budget   = 60_000        // visits to services in one run, about
	leastRun = 5.0           // seconds
	most     = 20 * 512      // workers of a service
)

// New returns the system of a number.
func New(number int) *System {
	d := &draw{kernel.NewStream(seed, uint64(number))}
	s := &System{Number: number, Kind: KindOf(number)}
	s.draw(d)
	return s
}

// draw decides everything about a system.
func (s *System) draw(d *draw) {
	s.shape(d)
	visits := float64(len(s.Services))
	s.Rate = short(d.log(0.1, 10_000))
	if s.Kind == LowTraffic {
		s.Rate = short(d.log(0.1, 5))
	}
	s.Rate = math.Min(s.Rate, short(budget/visits/leastRun))
	s.Instances = d.count(1, 1000)
	s.Deadlines = d.chance(0.5)
	for i := len(s.Services) - 1; i >= 0; i-- { // from the back: what is in front waits for it
		s.size(d, i)
	}
	s.patience(d)
	for i := range s.Services {
		x := &s.Services[i]
		x.Utilisation = x.used(s.Rate, x.hold)
	}
	s.day(d)
}

// shape decides who calls whom: a chain of up to four services, at the end of which several may be asked at once.
func (s *System) shape(d *draw) {
	hops := d.count(1, 4)
	for i := range hops {
		s.add()
		if i > 0 {
			s.Services[i-1].Calls = []int{i}
		}
	}
	last := hops - 1
	s.Target = last
	if hops < 4 && d.chance(0.2) {
		for range d.count(2, 4) {
			s.Services[last].Calls = append(s.Services[last].Calls, s.add())
		}
		s.Services[last].Parallel = true
		s.Target = len(s.Services) - 1
	}
	if d.chance(0.3) {
		s.Target = d.stream.IntN(len(s.Services))
	}
}

// add adds a service and returns its index.
func (s *System) add() int {
	s.Services = append(s.Services, Service{Name: string(rune('a' + len(s.Services)))})
	return len(s.Services) - 1
}

// size decides how large and how fast a service is. What it calls has its size already.
func (s *System) size(d *draw, i int) {
	x := &s.Services[i]
	x.Mean = seconds(d.log(0.001, 1))
	x.Utilisation = d.between(0.2, 0.95)
	switch {
	case s.Kind == Steady:
		x.Utilisation = d.between(0.2, 0.85)
	case s.Kind.Healthy():
		x.Utilisation = d.between(0.2, 0.6) // what comes on top has to fit in
	}
	behind := time.Duration(0)
	for _, c := range x.Calls {
		behind = max(behind, s.Services[c].latency())
	}
	targeted := i == s.Target
	needs := targeted && (s.Kind == CapacityLoss || s.Kind == BadEndpoint)
	x.Replicas = 1
	if needs || d.chance(0.6) {
		x.Replicas = d.count(2, 20)
	}
	if behind > 0 && !targeted && d.chance(0.4) {
		x.hold = round(x.Mean) + behind // waits without a worker
	} else {
		s.staff(d, x, behind, needs)
	}
	x.Mean = max(round(x.Mean), time.Microsecond)
	x.hold = x.Mean + behind
	x.Time = s.distribution(d, x.Mean)
	x.Balancing = d.pick("random", "round-robin", "least-queue")
	if x.Workers > 0 {
		x.Queue = s.queue(d, x.Workers)
	}
	if d.chance(0.3) {
		x.ErrorRate = short(d.log(0.0001, 0.01))
		if s.Kind.Healthy() {
			x.ErrorRate = short(x.ErrorRate / 5)
		}
	}
}

// latency is about how long an answer of a service takes.
func (x *Service) latency() time.Duration { return x.hold + x.hold*3/10 }

// staff decides how many workers each replica has, and then how long work takes, so that the utilisation comes out.
func (s *System) staff(d *draw, x *Service, behind time.Duration, needs bool) {
	wanted := float64(s.Rate*(x.Mean+behind).Seconds()) / x.Utilisation
	total := math.Min(math.Max(wanted, 1), most)
	if total < float64(x.Replicas) && !needs {
		x.Replicas = max(1, int(total))
	}
	x.Workers = min(max(int(math.Round(total/float64(x.Replicas))), 1), 512)
	if needs {
		x.Workers = max(x.Workers, 2)
	}
	if wanted < 1 && d.chance(0.5) { // a small service need not be a busy one
		return
	}
	hold := seconds(float64(x.Utilisation*float64(x.Workers*x.Replicas)) / s.Rate)
	x.Mean = max(min(hold-behind, 10*time.Second), x.Mean/4)
	const highest = 0.95
	if used := x.used(s.Rate, x.Mean+behind); used > highest { // there are no more workers
		s.Rate = short(s.Rate * x.Utilisation / used)
	}
}

// used returns which share of its workers' time a service uses.
func (x *Service) used(rate float64, hold time.Duration) float64 {
	return rate * hold.Seconds() / float64(max(x.Workers*x.Replicas, 1))
}

// distribution decides how service times spread around a mean.
func (s *System) distribution(d *draw, mean time.Duration) string {
	switch d.stream.IntN(4) {
	case 0:
		return mean.String()
	case 1:
		return "exponential " + mean.String()
	case 2:
		sigma := d.between(0.3, 2)
		cv := math.Sqrt(kernel.Exp(float64(sigma*sigma)) - 1)
		return "lognormal mean " + mean.String() + " cv " + number(cv)
	}
	share, slower := math.Round(d.log(1, 20)), math.Round(d.log(3, 50))
	fast := round(time.Duration(float64(mean) / (1 + float64(share/100*(slower-1)))))
	fast = max(fast, 100*time.Nanosecond)
	return number(100-share) + "% exponential " + fast.String() + ", " + number(share) + "% exponential " +
		time.Duration(float64(fast)*slower).String()
}

// queue decides who may wait.
func (s *System) queue(d *draw, workers int) string {
	kind := d.stream.Float64()
	limit := max(1, int(math.Round(float64(workers)*d.log(0.5, 100))))
	if s.Kind.Healthy() { // on which nobody is refused by chance
		kind = math.Min(kind, 0.9)
		limit = max(limit, 10*workers, 50)
	}
	order := ""
	if u := d.stream.Float64(); u < 0.1 {
		order = "order: lifo"
	} else if u < 0.2 {
		order = "order: codel"
	}
	switch {
	case kind < 0.4:
		return order
	case kind < 0.5 && !s.Kind.Healthy():
		return "none: true"
	}
	text := "limit: " + number(float64(limit))
	if kind > 0.92 {
		text += ", whenFull: silence"
	}
	if order != "" {
		text += ", " + order
	}
	return text
}

// patience decides who waits how long for whom.
func (s *System) patience(d *draw) {
	latency := s.Services[0].latency()
	u, patience := d.stream.Float64(), d.log(3, 100)
	if s.Kind.Healthy() {
		patience = max(patience, 30)
	}
	if u > 0.15 {
		s.Patience = round(min(max(time.Duration(float64(latency)*patience), 50*time.Millisecond), time.Minute))
	}
	for i := range s.Services {
		x := &s.Services[i]
		set, times := d.chance(0.6), d.log(4, 50)
		if s.Kind.Healthy() {
			times = max(times, 30)
		}
		if set {
			x.Timeout = max(round(time.Duration(float64(x.latency())*times)), 20*time.Millisecond)
		}
	}
}
