package httpdrill

import (
	"slices"
	"time"

	"github.com/abate-go/abate/sim/scenario"
)

// Break lets a fault of the scenario begin. Work under way is finished.
func (s *Server) Break(f *scenario.Fault) {
	s.mu.Lock()
	s.faults = append(s.faults, f)
	s.mu.Unlock()
	if f.Outage != "" && f.Mode == scenario.Refuse {
		s.http.SetKeepAlivesEnabled(false) // which closes idle connections
		_ = s.listener.Close()
	}
}

// Fix ends it. The error is that of a port that somebody else has taken in an outage of mode refuse.
func (s *Server) Fix(f *scenario.Fault) error {
	s.mu.Lock()
	s.faults = slices.DeleteFunc(s.faults, func(x *scenario.Fault) bool { return x == f })
	refusing := s.outage(scenario.Refuse)
	s.startNext()
	s.mu.Unlock()
	if f.Outage == "" || f.Mode != scenario.Refuse || refusing {
		return nil
	}
	s.http.SetKeepAlivesEnabled(true)
	return s.listen()
}

// outage reports whether there is one of a mode. s.mu is held.
func (s *Server) outage(mode string) bool {
	return slices.ContainsFunc(s.faults, func(f *scenario.Fault) bool {
		return f.Outage != "" && (f.Mode == mode || f.Mode == "" && mode == scenario.Hang)
	})
}

// draw returns how long the work on one request takes that begins now.
func (s *Server) draw() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	took := time.Duration(s.spec.ServiceTime.Sample(&s.stream))
	for _, f := range s.faults {
		if f.Slowdown != "" && s.hits(f.Requests) {
			if f.Factor > 0 {
				took = time.Duration(float64(took) * f.Factor)
			}
			took += time.Duration(f.Add.Sample(&s.stream))
		}
	}
	return took
}

// fails reports whether the work on one request fails that ends now.
func (s *Server) fails() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec.ErrorRate > 0 && s.hits(s.spec.ErrorRate) ||
		slices.ContainsFunc(s.faults, func(f *scenario.Fault) bool { return f.Errors != "" && s.hits(f.Rate) })
}

// hits draws whether a request is one of a share; 0 is a share that was not given, and means all. s.mu is held.
func (s *Server) hits(share float64) bool { return share == 0 || s.stream.Float64() < share }
