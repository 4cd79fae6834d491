package haproxy

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// layer is one backend.
func (in *instance) layer(s *section, p *pool, entrances []*section) topology.Layer {
	l := topology.Layer{Kind: topology.Gateway, Product: "haproxy", Version: in.version,
		Name: strings.TrimSpace(s.kind + " " + s.name), At: s.at, Choice: "haproxy " + in.service,
		PerTry:    value(in, s, duration, 0, "timeout", "server"),
		Connect:   value(in, s, duration, 0, "timeout", "connect"),
		Overall:   topology.DefaultOf(time.Duration(0), in.product()+", which has no limit of all tries", s.at),
		Endpoints: p.count(),
		Backoff: topology.Backoff{First: topology.DefaultOf(time.Duration(0), in.product()+", which has no back-off",
			s.at)},
		Cancels: in.cancels(s, entrances),
	}
	web := value(in, s, source.Text, "tcp", "mode").Or("tcp") == "http"
	l.Answers = []topology.Answer{{After: topology.Refused, Gives: topology.S503}, {After: topology.ResetUnsent,
		Gives: topology.S503},
		{After: topology.ResetSent, Gives: topology.S502}, {After: topology.Hang, Gives: topology.S504}}
	if !web {
		l.StartsOnly = true // "timeout server" is how long a connection may be silent, which is none for a request
		l.Answers = []topology.Answer{{After: topology.Refused, Gives: topology.ResetSent},
			{After: topology.ResetUnsent, Gives: topology.ResetSent}, {After: topology.Hang, Gives: topology.ResetSent}}
	}
	l.Repeats = in.repeats(s, p, l.Connect, web, entrances)
	if p.limited {
		l.Limits.Requests = topology.Write(p.maxConns, p.limitAt)
	}
	l.Ejection = in.ejection(p)
	if p.h2 { // which is what gRPC needs
		l.Speaks = topology.Write(topology.SpeaksGRPC, p.at)
	}
	return l
}

// cancels returns whether HAProxy stops when its client leaves: only where the option is on for the backend and for the
// frontend that the client came through, which usually means in their defaults. In the backend alone it does nothing.
func (in *instance) cancels(s *section, entrances []*section) topology.Value[bool] {
	own := in.option(s, "abortonclose")
	if !own.Or(false) {
		return own
	}
	for _, e := range entrances {
		if off := in.option(e, "abortonclose"); !off.Or(true) {
			if own.Origin == topology.Written {
				in.remark("F602", own.At, s.kind+" "+s.name+" abortonclose",
					"option abortonclose has no effect here alone: the frontend "+
						e.name+" does not have it", "write it in the defaults section of both")
			}
			return off
		}
	}
	return own
}

// ejection is what "observe" does to a server that fails for the requests that it gets.
func (in *instance) ejection(p *pool) topology.Ejection {
	if p.observed == nil {
		return topology.Ejection{}
	}
	e := topology.Ejection{Consecutive: topology.DefaultOf(10, in.product(), p.at), MaxShare: topology.DefaultOf(1.0,
		in.product(), p.at)}
	for i, w := range p.observed {
		if v, ok := p.observed.arg(i + 1); ok && w.text == "error-limit" {
			e.Consecutive, _ = source.Word(v.text, v.at, source.Int)
		}
	}
	return e
}

// onConnection are the outcomes at which nothing was sent.
var onConnection = []topology.Outcome{topology.Refused, topology.ResetUnsent}

// retryWords are the words of retry-on. Some have no outcome of their own: a broken answer, refused early data, 501.
var retryWords = map[string][]topology.Outcome{"none": nil, "conn-failure": onConnection,
	"empty-response": {topology.ResetSent},
	"junk-response":  nil, "response-timeout": {topology.Hang}, "0rtt-rejected": nil, "401": {topology.S4xx},
	"403": {topology.S4xx},
	"404": {topology.S4xx}, "408": {topology.S408}, "421": nil, "425": {topology.S4xx}, "429": {topology.S429},
	"500": {topology.S500},
	"501": nil, "502": {topology.S502}, "503": {topology.S503}, "504": {topology.S504},
	"all-retryable-errors": {topology.ResetSent, topology.Hang, topology.S500, topology.S502, topology.S503,
		topology.S504}}

var retryOrder = []string{"all-retryable-errors", "conn-failure", "empty-response", "response-timeout",
	"junk-response", "0rtt-rejected",
	"none", "401", "403", "404", "408", "421", "425", "429", "500", "501", "502", "503", "504"}

// repeats returns what a backend repeats.
func (in *instance) repeats(s *section, p *pool, connect topology.Value[time.Duration], web bool, entrances []*section,
) []topology.Repeat {
	tries := value(in, s, source.Int, 3, "retries")
	if tries.V++; tries.IsUnknown() {
		tries.V = 0
	}
	spread, atOnce := in.redispatches(s, p)
	wait := time.Second // between two connections to one server, or the limit of one if that is less
	if c := connect.Or(0); c > 0 && c < wait {
		wait = c
	}
	onConnect := topology.Repeat{On: onConnection, Methods: topology.AllMethods, Tries: tries, Word: "retries",
		At:   tries.At,
		Wait: topology.DefaultOf(wait, in.product(), s.at), Elsewhere: spread}
	if atOnce {
		onConnect.Wait = topology.DefaultOf(time.Duration(0), in.product()+", which redispatches at once", s.at)
	}
	list, _ := s.find("retry-on")
	if list == nil {
		return []topology.Repeat{onConnect}
	}
	if !web {
		in.remark("F602", list[0].at, s.kind+" "+s.name+" retry-on",
			"retry-on has no effect in mode tcp, where only connections "+
				"are tried again", "set mode http, or remove the line")
		return []topology.Repeat{onConnect}
	}
	methods, listed := in.sent(s, entrances), s.listed(entrances)
	var out []topology.Repeat
	for _, w := range list[1:] {
		on, known := retryWords[w.text]
		if !known && source.Template(w.text) == "" {
			in.remark("F601", w.at, s.kind+" "+s.name+" retry-on "+w.text,
				"HAProxy knows no "+w.text+" here, and does not start with it",
				source.Meant(w.text, retryOrder))
			continue
		}
		if w.text == "conn-failure" || w.text == "all-retryable-errors" {
			c := onConnect
			c.Word, c.At = w.text, w.at
			out = append(out, c)
		}
		if w.text != "conn-failure" && len(on) > 0 && methods != 0 {
			out = append(out, topology.Repeat{On: on, Methods: methods, Listed: listed, Tries: tries,
				Word: w.text, At: w.at, Elsewhere: spread})
		}
	}
	return out
}

// redispatches reports whether a further try may go to another server, and whether it does so at once, without the wait
// before a connection to the same one. By turns or by load another server is chosen each time, whatever the interval of
// the option says. By a hash the same one is chosen again, and the interval says at which retries there is no wait: of
// one that is not 1 the longest waits count.
func (in *instance) redispatches(s *section, p *pool) (elsewhere, atOnce bool) {
	if !in.option(s, "redispatch").Or(false) || p.servers < 2 {
		return false, false
	}
	kind, _, _ := strings.Cut(value(in, s, source.Text, "roundrobin", "balance").Or(""), "(")
	if slices.Contains([]string{"roundrobin", "static-rr", "random", "leastconn", "first"}, kind) {
		return true, true
	}
	l, _ := s.find("option", "redispatch")
	interval, _ := l.arg(2)
	return false, interval.text == "1"
}

// sent returns which requests are repeated after they were sent: all, but those that disable-l7-retry takes out, in the
// backend or in every frontend that leads to it.
func (in *instance) sent(s *section, entrances []*section) topology.Methods {
	everywhere := topology.Methods(0)
	for i, e := range entrances {
		if off := e.disabled(); i == 0 {
			everywhere = off
		} else {
			everywhere &= off
		}
	}
	return topology.AllMethods &^ (s.disabled() | everywhere)
}

// disabled returns for which requests a section's own rules switch retries off.
func (s *section) disabled() topology.Methods {
	if s.off == nil {
		off := topology.Methods(0)
		for _, l := range s.lines {
			if l.is("http-request", "disable-l7-retry") {
				off |= s.forMethods(l[2:])
			}
		}
		s.off = &off
	}
	return *s.off
}

// listed returns the methods that are repeated, where one rule of the backend, and nothing else, takes out all others.
func (s *section) listed(entrances []*section) []string {
	isRule := func(l line) bool { return l.is("http-request", "disable-l7-retry") }
	for _, e := range entrances {
		if slices.ContainsFunc(e.lines, isRule) {
			return nil
		}
	}
	at := slices.IndexFunc(s.lines, isRule)
	if at < 0 || slices.ContainsFunc(s.lines[at+1:], isRule) || len(s.lines[at]) < 4 || s.lines[at][2].text != "unless" {
		return nil
	}
	condition := s.lines[at][3:].String()
	if strings.ContainsAny(strings.TrimSuffix(condition, "}"), "|}") { // several conditions
		return nil
	}
	return s.methodsOf(condition)
}

// forMethods returns for which kinds of methods a condition holds for certain. Of the unsafe ones POST counts.
func (s *section) forMethods(condition line) topology.Methods {
	if len(condition) < 2 {
		return topology.AllMethods
	}
	negated := condition[0].text == "unless"
	terms := strings.Split(strings.ReplaceAll(condition[1:].String(), " or ", " || "), "||")
	for _, term := range terms {
		term = strings.TrimSpace(term)
		if term == "TRUE" && !negated {
			return topology.AllMethods
		}
		inverted := strings.HasPrefix(term, "!") != negated
		holds := s.methodsOf(strings.TrimSpace(strings.TrimPrefix(term, "!")))
		if negated && len(terms) > 1 {
			return 0
		}
		if !inverted && slices.Contains(holds, "POST") || inverted && len(holds) > 0 && !slices.Contains(holds, "POST") {
			return topology.Unsafe
		}
	}
	return 0
}

// methodsOf returns the methods that a condition is about: METH_POST, { method POST PUT }, or an acl of these.
func (s *section) methodsOf(term string) []string {
	if m, ok := strings.CutPrefix(term, "METH_"); ok && !strings.Contains(m, " ") {
		return []string{m}
	}
	if inner, ok := strings.CutPrefix(term, "{"); ok && strings.HasSuffix(inner, "}") {
		words := strings.Fields(strings.TrimSuffix(inner, "}"))
		if len(words) > 1 && words[0] == "method" && !strings.HasPrefix(words[1], "-") {
			return words[1:]
		}
	}
	for _, l := range s.lines {
		if l.is("acl", term, "method") && len(l) > 3 {
			return strings.Fields(l[3:].String())
		}
	}
	return nil
}
