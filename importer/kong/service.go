package kong

import (
	"time"

	"github.com/abate-go/abate/topology"
)

// Service is what Kong is told of one service. What is absent has its default.
type Service struct {
	Name, Choice   string // of the layer
	Product        string
	Version        topology.Value[string]
	Who            string            // whose defaults: "Kong 3.9"
	At             topology.Position // of the layer, and of the defaults where Defaults is zero
	Defaults       topology.Position
	Retries        topology.Value[int] // after the first try
	ReadTimeout    topology.Value[time.Duration]
	ConnectTimeout topology.Value[time.Duration]
	Several        bool // there are several targets to choose among
}

// Retries and limits of a service for which nobody has set any.
const (
	defaultRetries = 5
	defaultTimeout = time.Minute
)

// Layer returns how Kong tries the requests of a service.
func (s Service) Layer() topology.Layer {
	at := s.Defaults
	if at.IsZero() {
		at = s.At
	}
	tries := or(s.Retries, topology.DefaultOf(defaultRetries, s.Who, at))
	if !tries.IsUnknown() {
		tries.V++
	}
	l := topology.Layer{Kind: topology.Gateway, Product: s.Product, Version: s.Version, Name: s.Name, At: s.At,
		Choice:  s.Choice,
		PerTry:  or(s.ReadTimeout, topology.DefaultOf(defaultTimeout, s.Who, at)),
		Connect: or(s.ConnectTimeout, topology.DefaultOf(defaultTimeout, s.Who, at)),
		Overall: topology.DefaultOf(time.Duration(0), s.Who+", which has no limit of all tries", at),
		Backoff: topology.Backoff{First: topology.DefaultOf(time.Duration(0), s.Who+", which has no back-off", at)},
		Cancels: topology.DefaultOf(true, s.Who, at),
		Answers: []topology.Answer{{After: topology.Refused, Gives: topology.S502},
			{After: topology.ResetUnsent, Gives: topology.S502}, {After: topology.ResetSent, Gives: topology.S502},
			{After: topology.Hang, Gives: topology.S504}},
	}
	repeat := func(m topology.Methods, on ...topology.Outcome) {
		l.Repeats = append(l.Repeats, topology.Repeat{On: on, Methods: m, Tries: tries, Word: "retries", At: tries.At,
			Elsewhere: s.Several})
	}
	repeat(topology.AllMethods, topology.Refused, topology.ResetUnsent)
	repeat(topology.Safe, topology.ResetSent, topology.Hang)
	return l
}

func or[T topology.Scalar](v, other topology.Value[T]) topology.Value[T] {
	if v.IsZero() {
		return other
	}
	return v
}
