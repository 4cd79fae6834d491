package topology

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Found is one name in a file that means a service, and the rule by which it was found.
type Found struct {
	Name    string
	Service string
	Rule    Rule
	At      Position
}

// Join returns the form with each policy added as a layer to the calls that it is for, and how each name was found.
//
//   - A policy that names its callers makes a call from each of them, if there is none: whoever sets retries for a
//     dependency calls it. If it names several, and such calls would go in a circle, they say who may call, not who
//     calls: the callee is taken to be called from outside.
//   - A policy for every caller is added to all calls of its callee. If there is none, the callee is taken to be
//     called from outside; but not for what nobody wrote (of a DestinationRule, the retries that Istio adds), if a
//     gateway calls it.
//   - A policy for "*" or "*.shop" is added to calls between services of that namespace that have no layer of its
//     product and kind, but not to those of a database. It makes no call.
//   - A policy for such names of a mesh of Kubernetes is not added to calls by, or in front of, what only compose files
//     run.
//   - A sidecar's policy for a database of which nobody wrote how it tries only opens connections.
//   - A sidecar's policy is not added to the calls of a gateway, which is a proxy itself.
//   - Callees and callers that no file describes become services. A service without a namespace is the one with a
//     namespace that has its name, if there is one such. A callee without one is looked for in its caller's first.
//   - Proxies of Envoy's kind answer the calls of a gRPC client with UNAVAILABLE where they would say 503.
//   - Layers stand in the order of their kinds, outermost first, and within a kind in the order of the files.
//   - A service all of whose calls pass a gateway first, but those of which only a variable tells, is that gateway: a
//     proxy, which passes failures on as they are unless its files say another answer.
//   - A gateway that has the name of its file, and calls what has that name, has the name of its product.
//   - Calls of a name that leads to other services are calls of these.
//   - A call of a gateway that leads to its caller too, of which only a variable tells, is left out with a remark F701.
//   - A service of which nothing says that it speaks gRPC is taken to speak HTTP, unless there are files of protobuf.
//
// A name that means several services joins nothing, and becomes a remark F701. The form given is not changed.
func (f Form) Join() (Form, []Found) {
	f = apart(f)
	j := &joining{led: map[string]string{}, out: Form{Remarks: slices.Clone(f.Remarks), Protos: f.Protos}}
	j.out.Services = short(unite(f.Services))
	j.names, j.placed = NewNames(j.out.Services), allPlaced(j.out.Services)
	for _, c := range f.Calls {
		j.call(c)
	}
	j.implied(f.Policies)
	for i := range f.Policies {
		j.policy(&f.Policies[i])
	}
	for i := range f.Policies {
		j.everywhere(&f.Policies[i])
	}
	for i := range j.out.Calls {
		slices.SortStableFunc(j.out.Calls[i].Layers, func(a, b Layer) int { return int(a.Kind) - int(b.Kind) })
		j.out.Calls[i].speakGRPC()
	}
	j.proxies()
	j.follow(f.Leads)
	j.goBack()
	j.speak()
	return j.out, j.found
}

// answersInCodes are the products whose proxies answer a call of gRPC with a code of gRPC: Envoy, and what is built on
// it.
var answersInCodes = []string{"envoy", "istio", "envoy-gateway", "contour", "kuma"}

// speakGRPC turns the 503 that proxies of Envoy's kind give into UNAVAILABLE where a client of gRPC makes the call.
// That is what the layers around them see, and repeat by other rules.
func (c *Call) speakGRPC() {
	if !slices.ContainsFunc(c.Layers, func(l Layer) bool { return l.Product == "grpc" }) {
		return
	}
	for i := range c.Layers {
		l := &c.Layers[i]
		if !slices.Contains(answersInCodes, l.Product) {
			continue
		}
		l.Answers = slices.Clone(l.Answers)
		for k := range l.Answers {
			if l.Answers[k].Gives == S503 {
				l.Answers[k].Gives = Unavailable
			}
		}
	}
}

// proxies marks the services that are gateways themselves.
func (j *joining) proxies() {
	calls, gateways := map[string]int{}, map[string]int{}
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		if c.PerRequest.Origin == Assumed && len(c.Layers) == 0 {
			continue // an address in a variable, such as that of its database
		}
		calls[c.From]++
		if len(c.Layers) > 0 && c.Layers[0].Kind == Gateway {
			gateways[c.From]++
		}
	}
	for i := range j.out.Services {
		s := &j.out.Services[i]
		if n := gateways[s.Name]; n > 0 && n == calls[s.Name] {
			s.Proxy = true
			keep(&s.AnswersWith, DefaultOf("same", "a proxy", s.At))
		}
	}
}

type joining struct {
	out   Form
	names *Names
	found []Found
	// unclear are callees of policies of which is not known which of the callers that the policies name call them.
	unclear map[string]bool
	led     map[string]string // services that are others, whose names they became
	placed  bool              // files say the namespace of all that Kubernetes runs
}

// service returns the service that a name means, which is a new one if no file describes it.
func (j *joining) service(name, namespace string, at Position) (string, bool) {
	if name == "" {
		return "", true
	}
	s, rule := j.names.Find(name, namespace)
	switch rule {
	case Ambiguous:
		j.out.Remarks = append(j.out.Remarks, Remark{Rule: "F701", At: at, Subject: "name " + name,
			Text: fmt.Sprintf("%q is the name of several services, so nothing was joined by it", name),
			Fix:  "write the name with its namespace, such as " + Strip(name) + ".NAMESPACE"})
		return "", false
	case NotFound:
		s = Strip(name)
		if namespace != "" && !strings.Contains(s, ".") {
			s += "." + strings.ToLower(namespace)
		}
		j.out.Services = append(j.out.Services, Service{Name: s, At: at, Aliases: []string{name}})
		j.names.Add(j.out.Services[len(j.out.Services)-1])
	}
	j.found = append(j.found, Found{name, s, rule, at})
	return s, true
}

func (j *joining) call(c Call) {
	from, ok := j.service(c.From, "", c.At)
	to, known := j.service(c.To, j.namespaceFor(c.To, from), c.At)
	if !ok || !known || from == to && from != "" && c.PerRequest.Origin == Assumed {
		return // a service is told its own address so that it can pass it on
	}
	c.From, c.To, c.Layers = from, to, slices.Clone(c.Layers)
	for i := range j.out.Calls {
		if d := &j.out.Calls[i]; d.From == from && d.To == to && d.Detached == c.Detached {
			d.merge(c)
			return
		}
	}
	j.out.Calls = append(j.out.Calls, c)
}

// namespaceFor returns the namespace of a caller if a short name means a service there, as it does for the programs of
// that namespace.
func (j *joining) namespaceFor(to, from string) string {
	_, namespace, _ := strings.Cut(from, ".")
	if _, rule := j.names.Find(to, namespace); rule != ByNamespace {
		return ""
	}
	return namespace
}

// merge adds what another file says of the same call. What is already known stays.
func (c *Call) merge(other Call) {
	c.Layers = append(c.Layers, other.Layers...)
	keep(&c.PerRequest, other.PerRequest)
	keep(&c.Unsafe, other.Unsafe)
	keep(&c.Keyed, other.Keyed)
	keep(&c.Order, other.Order)
}

// callee returns the service that a policy is about: the first of its names that a file describes, else its first.
func (j *joining) callee(p *Policy) (string, bool) {
	for _, name := range p.Callees {
		if s, rule := j.names.Find(name, p.Namespace); rule != NotFound && rule != Ambiguous {
			j.found = append(j.found, Found{name, s, rule, p.Layer.At})
			return s, true
		}
	}
	if len(p.Callees) == 0 {
		return "", false
	}
	return j.service(p.Callees[0], p.Namespace, p.Layer.At)
}

func (j *joining) policy(p *Policy) {
	if patterns(p.Callees) {
		return
	}
	to, ok := j.callee(p)
	layer := p.Layer
	databases := ok && layer.Kind == SidecarOut && layer.implicit() && j.stores(to)
	if !ok || layer.idle() && databases {
		return
	}
	if databases {
		none := Value[time.Duration]{}
		layer.Kind, layer.Repeats, layer.Overall, layer.PerTry = Connection, nil, none, none
	}
	from := j.callers(p)
	joined := false
	for i := range j.out.Calls {
		c := &j.out.Calls[i]
		if c.To != to || p.Layer.Kind == SidecarOut && c.ofGateway() && !slices.Contains(from, c.From) {
			continue
		}
		if len(p.Callers) == 0 || slices.Contains(from, c.From) || j.covered(p.Callers, c.From) {
			c.Layers = append(c.Layers, layer)
			joined = true
		}
	}
	if !joined && (len(p.Callers) == 0 || patterns(p.Callers) || j.unclear[to]) && !(p.Layer.implicit() && j.called(to)) {
		j.out.Calls = append(j.out.Calls, Call{To: to, At: p.Layer.At, Layers: []Layer{layer}})
	}
}

// called reports whether something calls a service.
func (j *joining) called(to string) bool {
	return slices.ContainsFunc(j.out.Calls, func(c Call) bool { return c.To == to })
}

// stores reports whether a service is a database. Sidecars see no requests of what is said to one.
func (j *joining) stores(name string) bool {
	return slices.ContainsFunc(j.out.Services, func(s Service) bool { return s.Name == name && s.Database })
}

// idle reports that a layer is a sidecar's, and that all it would do is what nobody wrote.
func (l *Layer) idle() bool {
	written := func(o Origin) bool { return o == Written || o == Inherited }
	return l.Kind == SidecarOut && l.implicit() && !written(l.Connect.Origin) && l.Ejection == (Ejection{}) &&
		!written(l.Limits.Requests.Origin) && !written(l.Limits.Pending.Origin) && !written(l.Limits.Connections.Origin)
}

// implicit reports that nobody wrote how the layer tries, nor for how long.
func (l *Layer) implicit() bool {
	written := func(o Origin) bool { return o == Written || o == Inherited }
	return !written(l.PerTry.Origin) && !written(l.Overall.Origin) &&
		!slices.ContainsFunc(l.Repeats, func(r Repeat) bool { return written(r.Tries.Origin) })
}

// callers returns the services that a policy names as callers, without those of its patterns.
func (j *joining) callers(p *Policy) []string {
	var from []string
	for _, caller := range p.Callers {
		if pattern(caller) {
			continue
		}
		if s, rule := j.names.Find(caller, p.Namespace); rule != NotFound && rule != Ambiguous {
			from = append(from, s)
		}
	}
	return from
}

// unite puts what several files say of one service together. What the first says stays.
func unite(services []Service) []Service {
	var out []Service
	at := map[string]int{}
	for _, s := range services {
		key := Strip(s.Name)
		i, seen := at[key]
		if !seen {
			at[key] = len(out)
			s.Aliases = slices.Clone(s.Aliases)
			out = append(out, s)
			continue
		}
		out[i].merge(s)
	}
	return out
}

// short takes a service without a namespace, as applications call themselves, for the one service with a namespace that
// has its name.
func short(services []Service) []Service {
	full := map[string][]int{} // by first label
	for i, s := range services {
		if label, rest, ok := strings.Cut(Strip(s.Name), "."); ok && !strings.Contains(rest, ".") {
			full[label] = append(full[label], i)
		}
	}
	out := services[:0:0]
	merged := map[int]bool{}
	for i, s := range services {
		if at := full[Strip(s.Name)]; len(at) == 1 {
			s.Aliases = append(slices.Clone(s.Aliases), s.Name)
			services[at[0]].merge(s)
			merged[i] = true
		}
	}
	for i, s := range services {
		if !merged[i] {
			out = append(out, s)
		}
	}
	return out
}

func (s *Service) merge(other Service) {
	for _, a := range other.Aliases {
		if !slices.Contains(s.Aliases, a) {
			s.Aliases = append(s.Aliases, a)
		}
	}
	keep(&s.Replicas, other.Replicas)
	keep(&s.Rate, other.Rate)
	keep(&s.OwnTime, other.OwnTime)
	keep(&s.OwnTime99, other.OwnTime99)
	keep(&s.Capacity, other.Capacity)
	keep(&s.Workers, other.Workers)
	keep(&s.AnswersWith, other.AnswersWith)
	keep(&s.Cancels, other.Cancels)
	keep(&s.CallTree, other.CallTree)
	s.speak(other.Speaks)
	if other.Runs == RunsKubernetes || s.Runs == "" {
		s.Runs = other.Runs
	}
	s.Database = s.Database || other.Database
	s.Proxy = s.Proxy || other.Proxy
}

func keep[T Scalar](v *Value[T], other Value[T]) {
	if v.IsZero() {
		*v = other
	}
}
