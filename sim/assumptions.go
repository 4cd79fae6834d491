package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// Assumptions lists every choice that a scenario's results rest on, whether somebody made it or it is a default.
func Assumptions(s *scenario.Scenario, v *scenario.Variant) []Assumption {
	l := &assumptions{}
	if s.IsPopulation() {
		l.population(s, v)
		return l.list
	}
	l.model(s)
	for i := range s.Clients {
		l.fleet(&s.Clients[i])
		l.consumer(&s.Clients[i], v)
		l.calls("clients."+s.Clients[i].Name, s.Clients[i].Name, s.Clients[i].Calls, v)
	}
	services := s.ServicesOf(v)
	for i := range services {
		l.service(&services[i])
		l.gate(&services[i], v)
		l.reacts(&services[i])
		l.calls("services."+services[i].Name, services[i].Name, services[i].Calls, v)
	}
	l.trees(services, v)
	l.fixed()
	l.add("series", engine.BinOf(s.Duration).String()+" bins",
		true, "the resolution of recovery, and of when a window begins and ends")
	return l.list
}

// population is what holds for a very large fleet.
func (l *assumptions) population(s *scenario.Scenario, v *scenario.Variant) {
	m := &s.Model
	f, x := &s.Clients[0], &s.ServicesOf(v)[0]
	l.add("scale", strconv.Itoa(max(s.Scale, 1)), s.Scale <= 1, "rates and capacities are divided by it")
	l.add("duration", s.Duration.String(), false,
		"the run begins with the first request, without a warm-up, and is not drained")
	l.choice("clients."+f.Name+".method", f.Method, scenario.Exact, "whether every client runs by itself, or "+
		"cohorts of them are counted; cohorts are checked against clients that run one by one")
	l.add("clients."+f.Name, "retries only", true, "a client has no budget, breaker or bulkhead of its own: there is no "+
		"room for its state")
	l.add("services."+x.Name, number(x.Capacity()*float64(max(s.Scale, 1)))+" requests/s", false,
		"one line and one capacity for all replicas; an outage stops the work on those who wait, too")
	l.add("work for clients that have left", "is done", true, "and costs capacity")
	l.add("goodput", "by the time of the answer", true,
		"a very large fleet does not know which answer belongs to which moment of asking")
	l.add("model.recovered", percent(m.Recovered), m.Recovered == 0.95,
		"share of the goodput before the trouble that counts as recovered, from then on")
	l.add("model.collapsed", percent(m.Collapsed), m.Collapsed == 0.9, "below this share over the last quarter of the "+
		"time after the trouble, a run has collapsed; where nothing is offered then, of all requests")
}

type assumptions struct{ list []Assumption }

func (l *assumptions) add(setting, value string, usual bool, why string) {
	l.list = append(l.list, Assumption{Setting: setting, Value: value, Default: usual, Why: why})
}

// choice adds a setting that is a word, where none means the usual one.
func (l *assumptions) choice(setting, value, usual string, why string) {
	if value == "" {
		value = usual
	}
	l.add(setting, value, value == usual, why)
}

func (l *assumptions) model(s *scenario.Scenario) {
	m := &s.Model
	scale := max(s.Scale, 1)
	l.add("scale", strconv.Itoa(scale), scale == 1, "rates, instances and capacities are divided by it; chance weighs "+
		"more in a smaller system")
	l.add("duration", s.Duration.String(), false, "near the cliff the answer depends on how long one waits: recovery is "+
		"looked for up to the end")
	l.add("warmUp", s.WarmUp.String(), s.WarmUp == 5*time.Second, "run before, not measured")
	l.choice("model.cancellation", m.Cancellation, scenario.CancellationIgnored,
		"whether a request whose caller has left is still worked on")
	l.choice("model.serviceTimeDrawn", m.ServiceTimeDrawn, scenario.DrawnAtStart, "when a request's service time is drawn")
	l.choice("model.ties", m.Ties, scenario.AnswerFirst,
		"what comes first at the same nanosecond, an answer or its timeout")
	l.add("model.drain", m.Drain.String(), m.Drain == 30*time.Second,
		"how long requests under way at the end may take; then they count as unanswered")
	l.add("model.recovered", percent(m.Recovered), m.Recovered == 0.95,
		"share of the goodput before the trouble that counts as recovered, from then on")
	l.add("model.hold", m.Hold.String(), m.Hold == time.Second, "how long it has to last")
	l.add("model.collapsed", percent(m.Collapsed), m.Collapsed == 0.9,
		"below this share of the goodput before, over the last quarter of the time after the trouble, a fleet has "+
			"collapsed, and with any fleet the run")
	if len(s.Clients) > 1 {
		l.add("fleets with few requests", "get the benefit of the doubt", true, fmt.Sprintf("of several fleets, one of "+
			"which fewer than %d requests show how it ends has collapsed only if the 95 %% interval of its goodput says so, "+
			"and is back when 20 requests, or a quarter of the time after the trouble, say so", engine.LeastRequests))
	}
}

func (l *assumptions) fleet(f *scenario.Fleet) {
	name := "clients." + f.Name + "."
	if f.Open() {
		l.choice(name+"arrivals", f.Arrivals, scenario.Poisson, "how the requests follow each other")
	} else {
		l.choice(name+"method", f.Method, scenario.Exact,
			"whether every client runs by itself or cohorts of them are counted")
	}
	l.add(name+"instances", strconv.Itoa(max(f.Instances, 1)), f.Instances == 0,
		"each has guards, budgets and breakers of its own")
	if f.Consumes() {
		return
	}
	l.sessions(f)
	patience := "for ever"
	if f.Patience > 0 {
		patience = f.Patience.String()
	}
	l.add(name+"patience", patience, f.Patience == 0, "how long the caller of the fleet cares for an answer")
}

// consumer adds how a fleet that consumes does it.
func (l *assumptions) consumer(f *scenario.Fleet, v *scenario.Variant) {
	if !f.Consumes() {
		return
	}
	name := "clients." + f.Name + ".topic"
	l.add(name, strconv.Itoa(f.Topic.Partitions)+" partitions", false,
		"dealt to the instances in turn, the retry topics' too; none changes hands")
	c := v.PolicyOf(f.Name, f.Calls[0].To).Kafka.WithDefaults()
	if !c.Enabled() {
		l.add(name+".pause", f.Topic.Again().String(), f.Topic.Pause == 0,
			"without kafka in the policy of "+f.Calls[0].To+" a message that fails is tried in place, again and again, and "+
				"what is behind it in its partition waits")
		return
	}
	var delays []string
	for _, h := range redelivery.NewPlan(c).Hops() {
		delays = append(delays, h.Delay.String())
	}
	l.add(name+".retries", "after "+strings.Join(delays, ", "), false,
		"package redelivery of production decides what becomes of a message, which is next, and how fast a backlog goes")
	l.add(name+".concurrency", strconv.Itoa(c.Concurrency), c.Concurrency == 1,
		"messages of one partition that are handled at once, in each topic")
	l.add(name+".broker", "in no time", true, "a message can be read the moment it was written; a retry topic "+
		"acknowledges at once, and nothing is delivered twice")
}

func (l *assumptions) service(x *scenario.Service) {
	name := "services." + x.Name + "."
	workers := "no limit"
	if x.Workers > 0 {
		workers = strconv.Itoa(x.Workers)
	}
	l.add(name+"replicas", strconv.Itoa(max(x.Replicas, 1)), x.Replicas == 0, "equal instances, each with its own queue")
	l.add(name+"workers", workers, x.Workers == 0, "requests that a replica works on at once; a worker waits for the "+
		"calls its request makes")
	l.add(name+"serviceTime", x.ServiceTime.String(), x.ServiceTime.IsZero(), "the service's own work on one request")
	if x.Replicas > 1 {
		why := "how an attempt gets its replica; nobody takes a bad one out"
		if x.Balancing == scenario.LeastRequest {
			why = "package balance of production chooses, in each instance that calls; a second attempt goes elsewhere, and " +
				"outlierDetection of the call's policy takes bad ones out"
		}
		l.choice(name+"balancing", x.Balancing, scenario.RandomReplica, why)
	}
	if x.Workers > 0 {
		bound, usual := "no bound", true
		switch q := &x.Queue; {
		case q.None:
			bound, usual = "nobody waits", false
		case q.Limit > 0:
			bound, usual = strconv.Itoa(q.Limit)+" per replica", false
		case q.Work > 0:
			bound, usual = q.Work.String()+" of work", false
		}
		l.add(name+"queue", bound, usual, "how many requests may wait")
		l.choice(name+"queue.whenFull", x.Queue.WhenFull, scenario.ErrorWhenFull,
			"an error is retried now, silence after the timeout")
		l.choice(name+"queue.order", x.Queue.Order, scenario.FIFO, "in which order they are taken")
		l.add(name+"queue.dropExpired", strconv.FormatBool(x.Queue.DropExpired), !x.Queue.DropExpired,
			"whether requests whose caller has given up are dropped when their turn comes")
	}
}

// gate adds what the gates of a service take for granted.
func (l *assumptions) gate(x *scenario.Service, v *scenario.Variant) {
	p, ok := v.ProtectionOf(x.Name)
	if !ok {
		return
	}
	name := "services." + x.Name + "."
	l.add(name+"gate", "one per replica", true, "it stands before the replica's queue; callers tell it deadline, "+
		"attempt number and priority unless they are naive, and heed what it answers")
	l.add(name+"refusalCost", x.RefusalCost.String(), x.RefusalCost == 0,
		"what a refusal costs the workers while all of them are busy")
	if p.RateLimit.Enabled() && p.RateLimit.Fleet {
		l.add(name+"rateLimit.fleet", "batches, as production takes them", true, "what a replica takes, brings back and "+
			"does without Redis is decided by its lease; Redis answers after its latency, never restarts, and what is under "+
			"way when a fault cuts the way is lost")
	}
	if p.Shed.CPU > 0 {
		l.add(name+"shed.cpu", "busy workers", true, "the share of the replica's workers that were busy, looked at every "+
			"250 ms, stands for the processor")
	}
}

// calls adds how a caller behaves towards gates, and towards services that count attempts.
func (l *assumptions) calls(path, caller string, calls []scenario.Call, v *scenario.Variant) {
	calls = scenario.Edges(calls)
	for i := range calls {
		if c := &calls[i]; c.Pool > 0 {
			how, _ := v.ConnectPolicy(c)
			value := "at once"
			if how.Pacing.Enabled() || how.CircuitBreaker.Enabled() || how.MaxRetries > 0 {
				value = "under " + c.Connect
			}
			l.add(path+".calls."+c.To+".connect", value, value == "at once", "how the pool opens a connection for an attempt "+
				"that finds none free; who waits for one does not take another that becomes free meanwhile")
		}
		if c := &calls[i]; v.SharesBudget(caller, c.To) {
			l.add(path+".calls."+c.To+".retryBudget.fleet", "exchanged every 200 ms", true, "what an instance offers and asks "+
				"for is decided by its budget; Redis answers after its latency, and what is under way when a fault cuts the way "+
				"is lost")
		}
		if c := &calls[i]; v.SharesFindings(caller, c.To) {
			l.add(path+".calls."+c.To+".circuitBreaker.fleet", "published every 250 ms", true, "what is worth telling, and "+
				"what an instance makes of it, is decided by its breaker; all others hear it at one moment, after the latency to "+
				"Redis and back, and one that could not be reached hears the next one")
		}
		if c := &calls[i]; v.NaiveCall(caller, c) {
			l.add(path+".calls."+c.To+".naive", "true", false, "no deadline, attempt number, priority or allowance is sent, "+
				"and what an answer says of Retry-After, of attempts behind it or of not coming again is ignored")
		}
	}
}

// trees adds who knows that there are other layers that try again.
func (l *assumptions) trees(services []scenario.Service, v *scenario.Variant) {
	var names []string
	for i := range services {
		x := &services[i]
		_, gated := v.ProtectionOf(x.Name)
		if gated || slices.ContainsFunc(x.Calls, func(c scenario.Call) bool { return !v.NaiveCall(x.Name, &c) }) {
			names = append(names, x.Name)
		}
	}
	if len(names) > 0 {
		l.add("call trees", "known to "+strings.Join(names, ", "), true,
			"who calls others or has a gate, and is not naive, shares the attempts that its caller leaves it, and answers how "+
				"many were made; retryOwner none switches that off")
	}
}

// fixed adds what cannot be set.
func (l *assumptions) fixed() {
	l.add("first attempts and retries", "counted apart", true,
		"3 retries are 4 attempts; amplification is attempts per request that needs the service")
	l.add("first back-off", "initialDelay", true, "the exponent of the first retry is 0; the guard of production "+
		"decides it")
	l.add("budget deposits", "per the policy's kind", true,
		"ratio: per call; tokens: per success; the guard of production decides it")
	l.add("an attempt given up", "closes its connection", true, "where there is a pool: the next one has to connect again")
	l.add("goodput", "by the time of asking", true,
		"of the requests offered in a window, how many were answered in time, ever")
	l.add("unlimited concurrency", "of services without workers", true, "they never queue")
}

// NotModelled says what the simulator leaves out, so that nobody takes it for granted.
func NotModelled(s *scenario.Scenario) []string {
	list := []string{}
	if !slices.ContainsFunc(s.Services, func(x scenario.Service) bool { return x.Lives() }) {
		list = append(list, "health checks and autoscaling: replicas stay as they are, unless a fault says otherwise; "+
			"balancing: least-request takes those out that fail")
	}
	list = append(list,
		"shared machines: services do not take processor time, memory or bandwidth from each other",
		"TCP and TLS: links delay or lose whole requests; connecting costs something only where a pool and connections are "+
			"given",
		"deadlines across hops: a service does not know how long its caller will wait, unless it stands behind a gate or "+
			"its queue has dropExpired",
		"idempotency, authentication, TLS and routes of a gate: every request is new, known and trusted")
	if slices.ContainsFunc(s.Clients, func(f scenario.Fleet) bool { return f.Consumes() }) {
		list = append(list, "rebalances, consumers and brokers that fail, fetches and commits: no partition changes hands, "+
			"and no message is lost or delivered twice on the way")
	}
	limitless := []string{}
	for i := range s.Services {
		if x := &s.Services[i]; x.Workers == 0 {
			limitless = append(limitless, x.Name)
		}
	}
	if len(limitless) > 0 {
		list = append(list, fmt.Sprintf("limits of %s: no workers are given, so any load is served",
			strings.Join(limitless, ", ")))
	}
	return list
}
