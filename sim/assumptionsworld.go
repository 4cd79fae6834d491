package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/abate-go/abate/sim/scenario"
)

// reacts adds what a service does by itself while it runs.
func (l *assumptions) reacts(x *scenario.Service) {
	l.cache(x)
	if !x.Lives() {
		return
	}
	name := "services." + x.Name + "."
	l.add(name+"start", startOf(&x.Start), x.Start.Takes.IsZero(),
		"how a replica comes up; what it had is lost at once when it dies, without a grace period")
	if x.Crash.Above > 0 {
		l.add(name+"crash", "above "+strconv.Itoa(x.Crash.Above)+" requests", false,
			"waiting and being worked on, in one replica: they stand for its memory")
	}
	for i, p := range []scenario.Probe{x.Probes.Liveness, x.Probes.Readiness} {
		if p.Period == 0 {
			continue
		}
		p = p.WithDefaults()
		l.add(name+"probes."+[...]string{"liveness", "readiness"}[i],
			fmt.Sprintf("every %v, %v, %d failures", p.Period, p.Timeout, p.FailureThreshold), false,
			"a probe stands in the replica's queue like a request and takes no work; it does not ask what the service calls; "+
				"balancers know at once")
	}
	if a := x.Autoscale.WithDefaults(x.Replicas); a.Max > 0 {
		l.add(name+"autoscale", fmt.Sprintf("%d to %d, target %s", a.Min, a.Max, percent(a.Target)), false,
			"the share of workers that are busy, once a second, stands for the processor; a worker that waits for a call is "+
				"busy; capacity and utilization are those of the replicas at the begin")
	}
}

// cache adds how a cache is used.
func (l *assumptions) cache(x *scenario.Service) {
	if !x.IsCache() {
		return
	}
	c := &x.Cache
	how := []string{fmt.Sprintf("%d keys, 1/k^%v", c.Keys, c.Skew)}
	if c.Capacity > 0 {
		how = append(how, fmt.Sprintf("room for %d in a replica", c.Capacity))
	}
	if !c.TTL.IsZero() {
		how = append(how, "for "+c.TTL.String())
	}
	l.add("services."+x.Name+".cache", strings.Join(how, ", "), false,
		"each request asks for one key, independent of others; the caller fetches what is missing and puts it there in no "+
			"time; all replicas are asked for as much")
	fetch := "by every caller that misses it"
	if c.Coalesce {
		fetch = "by one caller"
	}
	l.add("services."+x.Name+".cache.coalesce", fetch, !c.Coalesce, "who fetches a key while it is not there")
}

// startOf is how a replica comes up, in words.
func startOf(s *scenario.Start) string {
	words := []string{"takes " + s.Takes.String()}
	if s.WarmUp > 0 {
		words = append(words, fmt.Sprintf("%v times slower, less and less for %v", s.Slower, s.WarmUp))
	}
	if s.Backoff > 0 {
		words = append(words, fmt.Sprintf("restarts in a row wait from %v on", s.Backoff))
	}
	return strings.Join(words, ", ")
}

// sessions adds how users hold theirs.
func (l *assumptions) sessions(f *scenario.Fleet) {
	if !f.HoldsSessions() {
		return
	}
	lasts := "until it is cut"
	if !f.Session.Lasts.IsZero() {
		lasts = f.Session.Lasts.String()
	}
	l.add("clients."+f.Name+".session", lasts+", back after "+f.Session.Returns.String(), false,
		"all users hold one when the run begins, spread evenly over the replicas; a restart, or connections that are "+
			"refused, cuts those of a replica at once, and no other trouble does; what is sent over a session is not modelled")
}
