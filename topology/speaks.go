package topology

import (
	"slices"
	"strings"
)

// What a service can speak.
const (
	SpeaksGRPC  = "grpc"  // its answers may be codes of gRPC
	SpeaksHTTP  = "http"  // they are statuses of HTTP, and never codes of gRPC
	SpeaksOther = "other" // they are neither: a database, a queue
)

// Codes reports whether an answer of the service may be a code of gRPC.
func (s *Service) Codes() bool {
	what, known := s.Speaks.Get()
	return !known || what != SpeaksHTTP && what != SpeaksOther
}

// speak adds what another file says that the service speaks. One that speaks several things on its ports is a service
// of gRPC, whose answers may be anything.
func (s *Service) speak(v Value[string]) {
	rank := func(v Value[string]) int {
		return slices.Index([]string{SpeaksOther, SpeaksHTTP, SpeaksGRPC}, v.Or(""))
	}
	switch assumed := s.Speaks.Origin == Assumed; {
	case v.IsZero():
	case s.Speaks.IsZero(), assumed && v.Origin != Assumed, assumed == (v.Origin == Assumed) && rank(v) > rank(s.Speaks):
		s.Speaks = v
	}
}

// speak says what each service speaks of which no file says it.
func (j *joining) speak() {
	said, means := map[string]Service{}, map[string]Value[string]{}
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		for k := range c.Layers {
			l := &c.Layers[k]
			to := said[c.To]
			to.speak(l.Speaks)
			switch {
			case l.isGRPC():
				to.speak(Inherit(SpeaksGRPC, l.At, "what calls it"))
			case l.meansGRPC():
				means[c.To] = Inherit(SpeaksGRPC, l.At, "what is repeated of its calls")
			}
			said[c.To] = to
		}
	}
	for i := range j.out.Services {
		s := &j.out.Services[i]
		s.speak(said[s.Name].Speaks)
		if s.Speaks.IsZero() || s.Speaks.Origin == Assumed {
			s.speak(means[s.Name])
		}
		if j.out.Protos && s.Speaks.Origin == Assumed && !s.Codes() && !s.Database { // by an earlier audit without them
			s.Speaks = Value[string]{}
		}
		switch {
		case !s.Speaks.IsZero():
		case s.Database:
			s.Speaks = Assume(SpeaksOther, s.Name+" is a database")
		case !j.out.Protos:
			s.Speaks = Assume(SpeaksHTTP, "no file says that "+s.Name+" speaks gRPC")
		}
	}
}

// oneList are the products whose lists of failures have words for HTTP and for gRPC side by side, and by default some
// of both: that there is a word for a code does not say that a call ever ends with it.
var oneList = append([]string{"consul", "dapr", "gateway-api"}, answersInCodes...)

// isGRPC reports whether calls through the layer are of gRPC, whatever else is said of the service: it is a client of
// gRPC, or matches only such calls.
func (l *Layer) isGRPC() bool {
	return l.Product == "grpc" || slices.Contains(strings.Split(l.Match.Other, ", "), "gRPC")
}

// meansGRPC reports whether the layer shows that the calls are of gRPC where no file says what they are: it is told to
// repeat codes in a way that means nothing else.
func (l *Layer) meansGRPC() bool {
	codes, statuses, connections, chosen := false, false, false, false
	for i := range l.Repeats {
		on := l.Repeats[i].On
		if slices.Contains(on, S500) && slices.Contains(on, Internal) { // every failure
			statuses = true
			continue
		}
		for _, o := range on {
			codes = codes || o.GRPC()
			statuses = statuses || o > Hang && !o.GRPC()
			connections = connections || o <= Hang
			chosen = chosen || o.GRPC() && o != Unavailable && o != CancelledCode // which meshes have in their defaults
		}
	}
	if !slices.Contains(oneList, l.Product) {
		return codes
	}
	return codes && !statuses && (chosen || !connections)
}
