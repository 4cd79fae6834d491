package harm

import (
	"fmt"
	"math"
	"time"
)

// day decides what happens, and when. How long anything lasts is bounded by how many requests a run may have.
func (s *System) day(d *draw) {
	whole := budget / float64(len(s.Services)) / s.Rate // seconds that a run may take
	whole = math.Max(whole, leastRun)
	within := func(share, low, high float64) time.Duration {
		return seconds(math.Min(math.Max(share*whole, low), high)).Round(100 * time.Millisecond)
	}
	s.WarmUp = within(0.1, 1, 10)
	at, after := within(0.15, 1, 10), within(0.3, 2, 60)
	longest := math.Min(0.35*whole, 600)
	last := seconds(math.Max(d.log(0.5, longest), math.Min(20/s.Rate, longest))).Round(100 * time.Millisecond)
	if after < 3*last {
		after = min(3*last, within(0.4, 2, 300))
	}
	s.Hold = max(time.Second, min(seconds(30/s.Rate), after/3)).Round(100 * time.Millisecond)
	if s.Kind.Healthy() {
		s.healthy(d, at, max(last, within(0.3, 2, 30)))
	} else {
		s.trouble(d, at, last)
	}
	s.Duration += after
}

// fault adds a fault, and moves the end of the run to its end.
func (s *System) fault(at, last time.Duration, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if last > 0 {
		text = fmt.Sprintf("for: %v, ", last) + text
	}
	s.Faults = append(s.Faults, fmt.Sprintf("{at: %v, %s}", at, text))
	s.Duration = max(s.Duration, at+last)
}

// trouble decides what goes wrong.
func (s *System) trouble(d *draw, at, last time.Duration) {
	x := &s.Services[s.Target]
	slower := number(d.log(2, 50))
	switch s.Kind {
	case Refuse:
		s.fault(at, last, "outage: %s, mode: refuse", x.Name)
	case FastErrors:
		s.fault(at, last, "outage: %s, mode: fail", x.Name)
	case SlowErrors:
		s.fault(at, last, "slowdown: %s, factor: %s", x.Name, number(d.log(2, 10)))
		s.fault(at, last, "errors: %s, rate: %s", x.Name, percent(d.between(0.5, 1)))
	case Hang:
		s.fault(at, last, "outage: %s, mode: %s", x.Name, d.pick("hang", "blackhole"))
	case PartialHang:
		if x.Replicas > 1 && d.chance(0.5) {
			s.fault(at, last, "outage: %s, mode: %s, share: %s", x.Name, d.pick("hang", "blackhole"),
				percent(d.between(0.1, 0.6)))
			return
		}
		s.fault(at, last, "slowdown: %s, add: %ds, requests: %s", x.Name, d.count(10, 60), percent(d.between(0.05, 0.5)))
	case Slowdown:
		s.fault(at, last, "slowdown: %s, factor: %s", x.Name, slower)
	case CapacityLoss:
		left := math.Min(d.between(0.1, 0.8), 1-0.6/float64(x.Workers)) // at least one worker is lost
		s.fault(at, last, "capacity: %s, factor: %v", x.Name, math.Floor(left*1000)/1000)
	case BrownOut:
		s.fault(at, last, "%s: %s, rate: %s", d.pick("errors", "loss"), x.Name, percent(d.between(0.05, 0.6)))
	case BadEndpoint:
		s.fault(at, last, "%s, share: %s", oneBad(d, x.Name, slower), percent(0.9/float64(x.Replicas)))
	case Flapping:
		s.flapping(d, at, last, slower)
	case Restart:
		s.restart(d, x, at, last)
	case Surge:
		s.surge(d, at, last)
	}
}

// oneBad is what may be wrong with one endpoint.
func oneBad(d *draw, service, slower string) string {
	switch d.stream.IntN(5) {
	case 0:
		return "outage: " + service + ", mode: fail"
	case 1:
		return "outage: " + service + ", mode: refuse"
	case 2:
		return "outage: " + service + ", mode: blackhole"
	case 3:
		return "slowdown: " + service + ", factor: " + slower
	}
	return "errors: " + service + ", rate: 100%"
}

// flapping is a service that goes and comes.
func (s *System) flapping(d *draw, at, last time.Duration, slower string) {
	name := s.Services[s.Target].Name
	times := d.count(3, 8)
	what := "outage: " + name + ", mode: " + d.pick("refuse", "fail", "hang", "blackhole")
	if d.chance(0.2) {
		what = "slowdown: " + name + ", factor: " + slower
	}
	each := max(last/time.Duration(2*times), 100*time.Millisecond).Round(10 * time.Millisecond)
	for i := range times {
		s.fault(at+time.Duration(2*i)*each, each, "%s", what)
	}
}

// restart is a service whose replicas are away for a while, all at once or one after the other.
func (s *System) restart(d *draw, x *Service, at, last time.Duration) {
	if x.Replicas > 1 && d.chance(0.5) {
		each := max(last/time.Duration(x.Replicas), 100*time.Millisecond).Round(10 * time.Millisecond)
		s.fault(at, each, "restart: %s, rollout: %v", x.Name, last)
		s.Duration = max(s.Duration, at+last+each)
		return
	}
	s.fault(at, min(last, 30*time.Second), "restart: %s", x.Name)
}

// surge is more load than there usually is. The longer, the less, so that a run does not become too large.
func (s *System) surge(d *draw, at, last time.Duration) {
	factor := d.log(1.5, 20)
	last = max(time.Duration(float64(last)*math.Min(1, 2/factor)), 500*time.Millisecond).Round(100 * time.Millisecond)
	s.fault(at, last, "surge: users, factor: %s", number(factor))
}

// healthy decides what happens on a day on which nothing goes wrong.
func (s *System) healthy(d *draw, at, last time.Duration) {
	x := &s.Services[s.Target]
	highest := 0.0
	for i := range s.Services {
		if s.Services[i].Workers > 0 {
			highest = math.Max(highest, s.Services[i].Utilisation)
		}
	}
	room := math.Min(0.9/math.Max(highest, 0.05), 4) // times as much as usual is still none too much
	s.Duration = at + last
	switch s.Kind {
	case Bursts:
		s.bursts(d, at, last, room)
	case ColdStart:
		s.WarmUp = 0
		s.fault(0, min(last, 20*time.Second), "slowdown: %s, factor: %s", x.Name, number(d.between(1.1, room)))
	case Deploys:
		s.deploys(d, at, last)
	case MixShift:
		share := d.between(0.05, 0.3)
		s.fault(at, last, "slowdown: %s, factor: %s, requests: %s", x.Name,
			number(math.Min(1+(room-1)/share, 10)), percent(share))
	case SlowerForGood:
		s.fault(at, last, "slowdown: %s, factor: %s", x.Name, number(d.between(1.1, room)))
	case Daily:
		end := at + last
		low := short(s.Rate * d.between(0.05, 0.5))
		s.Curve = fmt.Sprintf("[{at: 0s, rate: %s}, {at: %v, rate: %s}, {at: %v, rate: %s}]", number(low),
			(end / 2).Round(time.Millisecond), number(s.Rate*math.Min(room, 1.5)), end, number(low))
	}
}

// bursts are short, and the service can do them.
func (s *System) bursts(d *draw, at, last time.Duration, room float64) {
	times := d.count(2, 6)
	each := last / time.Duration(times)
	for i := range times {
		s.fault((at + time.Duration(i)*each).Round(10*time.Millisecond),
			max(min(each/3, d.span(200*time.Millisecond, 5*time.Second)), 100*time.Millisecond).Round(10*time.Millisecond),
			"surge: users, factor: %s", number(d.between(1.2, math.Max(room, 1.3))))
	}
}

// deploys restart one program after the other, each for a moment.
func (s *System) deploys(d *draw, at, last time.Duration) {
	x := &s.Services[s.Target]
	if x.Replicas > 1 && d.chance(0.5) {
		s.fault(at, 0, "restart: %s, rollout: %v", x.Name, last)
	} else {
		s.fault(at, 0, "restart: users, rollout: %v", last)
	}
	s.Duration = max(s.Duration, at+last)
}
