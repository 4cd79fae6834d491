package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// implicit is rule F107: retries that nobody wrote.
func (r *run) implicit(e *edge, l *topology.Layer) {
	by, n := mostTries(l, topology.AllMethods, anything)
	if by == nil || by.Tries.Origin != topology.Default || l.Kind == topology.Connection || n == topology.Unbounded {
		return // without a count it is F108
	}
	one := Finding{Rule: "F107", At: where(by, l), Subject: subject(e, l, "default tries"), Effect: float64(n),
		Message: fmt.Sprintf("%s tries calls of %s %s although nobody wrote it: the default of %s", name(l), e.call.To,
			triesText(n), by.Tries.Why),
		Fix:         fixAt("write the number down, or write that there are no retries", l, e.call.To),
		Assumptions: assumptions(l, by.Tries)}
	one.cause = l.Kind.String() + by.Tries.Why + triesText(n) // one default, however many calls it is for
	total, loud := r.loud[l]
	switch {
	case loud:
		one.cause = ""
		one.Severity, one.Effect = Warning, total
		one.Message += fmt.Sprintf("; it is part of a path that comes to %s", number(total))
	case idle(e):
		return
	}
	r.report(one)
}

// endless is rule F108: retries without a count.
func (r *run) endless(e *edge, l *topology.Layer) {
	by, n := mostTries(l, topology.AllMethods, anything)
	if by == nil || n != topology.Unbounded {
		return
	}
	end := "and nothing ends them"
	if d := l.Overall.Or(0); d > 0 {
		end = fmt.Sprintf("until %v are over (%s)", d, l.Overall.Source())
	} else if l.Overall.IsUnknown() {
		end = "until a limit that could not be read"
	}
	r.report(Finding{Rule: "F108", At: where(by, l), Subject: subject(e, l, "tries"), Effect: float64(n),
		Message:     fmt.Sprintf("%s retries calls of %s without a count, %s", name(l), e.call.To, end) + untilBreaker(l, n),
		Fix:         fixAt("set a number of tries, 3 for example", l, e.call.To),
		Assumptions: assumptions(l, by.Tries)})
}

// times is rules F201, F202, F205 and F206: limits of time that contradict the retries of one layer.
func (r *run) times(e *edge, l *topology.Layer) {
	by, n := mostTries(l, topology.AllMethods, is(topology.Hang))
	perTry, overall := l.PerTry.Or(0), l.Overall.Or(0)
	known := !l.PerTry.IsUnknown() && !l.Overall.IsUnknown()
	switch c := l.Tries(topology.Hang, r.methods(e)); {
	case by == nil || !known || perTry == 0 || overall == 0:
	case perTry >= overall:
		r.report(Finding{Rule: "F201", At: place(l.PerTry, l), Subject: subject(e, l, "perTry"), Effect: float64(n),
			Message: fmt.Sprintf("%s gives a try %v and the whole call %v, so a call that hangs is never tried again, "+
				"although %d tries are set", name(l), perTry, overall, n),
			Fix: fmt.Sprintf("give a try at most %v, or the call at least %v", share(overall, n), need(l, n)),
			Related: []Place{{place(l.Overall, l), "the limit of the whole call"},
				{where(by, l), fmt.Sprint(n, " tries")}},
			Assumptions: assumptions(l, l.PerTry, l.Overall, by.Tries)})
	case c.Cut && n < topology.Unbounded:
		r.report(Finding{Rule: "F202", At: where(by, l), Subject: subject(e, l, "tries in time"),
			Effect: float64(n) / float64(c.N),
			Message: fmt.Sprintf("%s sets %d tries of %v each and %v for all, so only %d of them can begin when calls hang",
				name(l), n, perTry, overall, c.N),
			Fix: fmt.Sprintf("set %d tries, or give a try at most %v, or the call at least %v", c.N, share(overall, n), need(l,
				n)),
			Related: []Place{{place(l.PerTry, l), "the limit of a try"},
				{place(l.Overall, l), "the limit of the whole call"}},
			Assumptions: assumptions(l, l.PerTry, l.Overall, by.Tries)})
	}
	// A limit of a try helps only where what it ends is tried again.
	if by != nil && perTry == 0 && !l.PerTry.IsUnknown() && l.Kind != topology.Connection {
		r.report(Finding{Rule: "F205", At: where(by, l), Subject: subject(e, l, "perTry"), Effect: float64(n),
			Message: fmt.Sprintf("%s tries calls of %s %s, but no try has a limit of its own, so a call that hangs is not "+
				"tried again",
				name(l), e.call.To, triesText(n)),
			Fix: "set a limit for one try, above the 99th percentile of good answers", Assumptions: assumptions(l, l.PerTry)})
	}
	r.slow(e, l)
}

// slow is F206 and F208: limits that are far too long, or too short.
func (r *run) slow(e *edge, l *topology.Layer) {
	if d, ends := l.Longest(topology.Hang, r.methods(e)); ends && d > time.Minute && !l.PerTry.IsUnknown() &&
		!l.Overall.IsUnknown() && !staysOpen(l) && !connects(l) {
		limit := l.PerTry
		if limit.Or(0) == 0 {
			limit = l.Overall
		}
		_, n := mostTries(l, topology.AllMethods, is(topology.Hang))
		r.report(Finding{Rule: "F206", At: place(limit, l), Subject: subject(e, l, "longest time"),
			Effect: d.Seconds(),
			Message: fmt.Sprintf("%s keeps a caller waiting for up to %v while %s hangs", name(l), d, e.call.To) +
				untilBreaker(l, n),
			Fix:         "lower the limit of a try, or the number of tries, until the whole takes less than its callers wait",
			Assumptions: assumptions(l, l.PerTry, l.Overall)})
	}
	p99, known := r.g.services[e.to].OwnTime99.Get()
	limit := l.PerTry
	if limit.Or(0) == 0 {
		limit = l.Overall
	}
	if d := limit.Or(0); known && d > 0 && d < p99 && !l.StartsOnly {
		r.report(Finding{Rule: "F208", At: place(limit, l), Subject: subject(e, l, "limit below the usual time"),
			Effect: float64(p99) / float64(d),
			Message: fmt.Sprintf("%s ends calls of %s after %v, but one in a hundred good answers takes %v or longer", name(l),
				e.call.To, d, p99),
			Fix:     fmt.Sprintf("give a try more than %v, or make the service quicker", p99),
			Related: []Place{{r.g.services[e.to].OwnTime99.At, "the time that answers take"}}})
	}
}

// methods is the kind of requests of a call: what it says, else the kind that is repeated most.
func (r *run) methods(e *edge) topology.Methods {
	if e.call.Unsafe.Or(false) {
		return topology.Unsafe
	}
	return topology.Safe
}

// share is how long each of n tries may take within a limit.
func share(overall time.Duration, n int) time.Duration {
	d := overall / time.Duration(n)
	if d > 10*time.Millisecond {
		d = d.Truncate(time.Millisecond)
	}
	return d
}

// need is how long n tries and the waits between them take.
func need(l *topology.Layer, n int) time.Duration {
	total := time.Duration(0)
	for i := 1; i <= n && i <= maxPlayed; i++ {
		_, wait := l.Backoff.Wait(i)
		if total = later(total, l.PerTry.Or(0)); i < n {
			total = later(total, wait)
		}
	}
	return total
}

// awsSDK is the product of layers that are SDKs of AWS.
const awsSDK = "aws-sdk"

// repeated is F301 to F305: what is tried again.
func (r *run) repeated(e *edge, l *topology.Layer) {
	list := func(id, key string, m topology.Methods, about func(topology.Outcome) bool, message, fix string) {
		by, n := mostTries(l, m, about)
		if by == nil || ofProgram(l, by) {
			return
		}
		one := Finding{Rule: id, At: listed(by, l), Subject: subject(e, l, key), Effect: float64(n),
			Message: fmt.Sprintf(message, name(l), word(by, about)), Fix: fix, Assumptions: assumptions(l, by.Tries)}
		if id == "F304" && onlyCode(e, l) {
			one.Severity, one.Fix = Note, "take it out of the list" // nor is there a reason to read it again
			one.Message = strings.Replace(one.Message, " writes again ", " again ", 1)
		}
		r.report(one)
	}
	svc := &r.g.services[e.to]
	other := svc.Speaks.Or("") == topology.SpeaksOther // which answers neither statuses nor codes
	unsafe := !(e.call.Unsafe.Origin != topology.Absent && !e.call.Unsafe.Or(true)) && !e.call.Keyed.Or(false) &&
		!onlySafe(l.Match.Methods) && !keyed(l.Match)
	unsafe = unsafe && l.Kind != topology.Connection && (e.call.Unsafe.Or(false) || !other && !svc.Database)
	if unsafe {
		r.twice(e, l, other)
	}
	if other {
		return
	}
	if unsafe {
		list("F304", "conflicts", topology.Unsafe, is(topology.S409, topology.S4xx), "%s tries writes again after %s, "+
			"which the service has judged already", "take it out of the list for POST and PATCH")
	}
	if l.Product != awsSDK { // which has no list, and whose services answer 500 when they are busy
		list("F302", "500", topology.AllMethods, is(topology.S500), "%s tries again after %s, which most often is a bug "+
			"that the next try finds too", "retry 502, 503 and 504 only; with Abate, neverRetryOn: [\"500\"]")
	}
	if l.Backoff.RetryAfter.IsZero() || !l.Backoff.RetryAfter.Or(true) {
		if l.Backoff.First.Or(0) == 0 && !l.Backoff.First.IsUnknown() {
			list("F303", "overload", topology.AllMethods, is(topology.S429, topology.ResourceExhausted), "%s tries again at "+
				"once after %s, by which the service asks for less", "obey Retry-After, or wait before the next try, or take it "+
				"out of the list")
		}
	}
	if !anyProtocol(l) && svc.Codes() {
		list("F305", "codes", topology.AllMethods, is(topology.Internal, topology.UnknownCode, topology.DeadlineExceeded),
			"%s tries again after %s, which says nothing of whether the next try helps", "retry UNAVAILABLE only")
	}
}

// overridden is F307: callers may change what a layer does.
func (r *run) overridden(e *edge, l *topology.Layer) {
	if l.Overridable.Or(false) {
		r.report(Finding{Rule: "F307", At: place(l.Overridable, l), Subject: subject(e, l, "overridable"),
			Message: fmt.Sprintf("callers of %s may change its tries and limits by request headers, so every bound on them "+
				"is theirs to raise", name(l)),
			Fix: "take the permission away, or strip the headers at the edge"})
	}
}

// anyProtocol reports that a layer repeats every failure, statuses of HTTP and codes of gRPC alike: nobody chose codes,
// and whether the calls have any is not known. F302 says what is wrong with such a list.
func anyProtocol(l *topology.Layer) bool {
	return slices.ContainsFunc(l.Repeats, func(r topology.Repeat) bool {
		return slices.Contains(r.On, topology.S500) && slices.Contains(r.On, topology.Internal)
	})
}

// executed reports that a request may have been carried out by the time its caller sees the outcome. UNAVAILABLE and
// CANCELLED are not counted: they nearly always mean that it was not, and meshes retry them by default.
func executed(o topology.Outcome) bool {
	return o.MayHaveRun() && !is(topology.Unavailable, topology.CancelledCode, topology.ResourceExhausted,
		topology.Aborted,
		topology.S409, topology.S4xx)(o)
}

// onlyCode reports that nobody says of a call whether it writes, and that the layer is a library around some function
// of a program: it knows no methods of HTTP, so only code could say it. A mesh or a gateway sees all that comes.
func onlyCode(e *edge, l *topology.Layer) bool {
	return l.Kind == topology.Client && e.call.Unsafe.IsZero() && (l.Product == "resilience4j" || l.Product == "polly")
}

// ofProgram reports that a rule of resilience4j is for an exception of a program's own, of which only code says what it
// is thrown for. It counts as thrown for anything, but nobody chose to repeat bugs with it.
func ofProgram(l *topology.Layer, by *topology.Repeat) bool {
	last := by.Word[strings.LastIndexAny(by.Word, ".$")+1:]
	return l.Product == "resilience4j" && last != by.Word && slices.Contains(by.On, topology.S500) &&
		slices.Contains(by.On, topology.Internal) && !slices.Contains([]string{"Exception", "RuntimeException", "Throwable"},
		last)
}

// twice is F301: an unsafe request is sent again that may have been carried out.
func (r *run) twice(e *edge, l *topology.Layer, other bool) {
	codes := r.g.services[e.to].Codes()
	waits := l.PerTry.Or(0) == 0 && !l.PerTry.IsUnknown() // so a call that hangs is not tried again: F205
	mayHaveRun := func(o topology.Outcome) bool {
		return executed(o) && (codes || !o.GRPC()) && (o != topology.Hang || !waits)
	}
	by, n := mostTries(l, topology.Unsafe, mayHaveRun)
	if by == nil {
		return
	}
	what := "POST and PATCH"
	if other {
		what = "writes"
	}
	sends := "sends"
	if e.call.Unsafe.IsZero() { // nobody says that there are some
		sends = "would send"
	}
	one := Finding{Rule: "F301", At: listed(by, l), Subject: subject(e, l, "unsafe methods"), Effect: float64(n),
		Message: fmt.Sprintf("%s %s %s to %s again (%s) after %s, by when the request may have been carried out",
			name(l), sends, what, e.call.To, triesText(n)+untilBreaker(l, n), word(by, mayHaveRun)),
		Fix:         "retry safe methods only, or give the requests an idempotency key and say so (keyed: true)",
		Assumptions: assumptions(l, by.Tries)}
	if e.call.Unsafe.IsZero() {
		if one.Severity = Warning; onlyCode(e, l) {
			one.Severity = Note
			one.Message = "if what it guards writes, " + one.Message
		}
		one.Assumptions = append(one.Assumptions, "some of the calls of "+e.call.To+" are POST or PATCH and have no "+
			"idempotency key")
	}
	r.report(one)
}

// keyed reports that a route takes only requests that have an idempotency key.
func keyed(m topology.Match) bool {
	for part := range strings.SplitSeq(strings.ToLower(m.Other), ", ") {
		kind, header, _ := strings.Cut(part, " ")
		if (kind == "headers" || kind == "header") && strings.Contains(strings.ReplaceAll(header, "-", ""),
			"idempotencykey") {
			return true
		}
	}
	return false
}

func onlySafe(methods []string) bool {
	for _, m := range methods {
		switch m {
		case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		default:
			return false
		}
	}
	return len(methods) > 0
}

// word is what a list of outcomes says in its format, or the first outcomes that a rule is about.
func word(by *topology.Repeat, about func(topology.Outcome) bool) string {
	var these []topology.Outcome
	for _, o := range by.On {
		if about(o) {
			these = append(these, o)
		}
	}
	text := outcomes(these)
	if by.Word == "" || by.Word == text {
		return text
	}
	return text + " (" + by.Word + ")"
}

// pace is F401, F402 and F407: the waits between tries.
func (r *run) pace(e *edge, l *topology.Layer) {
	b := &l.Backoff
	first, _ := b.First.Get()
	by, n := mostTries(l, topology.AllMethods, status)
	switch {
	case b.First.IsUnknown():
	case first == 0 && by != nil && n > 2:
		r.report(Finding{Rule: "F401", At: where(by, l), Subject: subject(e, l, "backoff"), Effect: float64(n),
			Message: fmt.Sprintf("%s tries calls of %s %s without a wait between the tries", name(l), e.call.To,
				triesText(n)),
			Fix:         "wait before a retry, from 100 ms on, longer each time, with full jitter; or try twice at most",
			Assumptions: assumptions(l, by.Tries, b.First)})
	case first > 0:
		if any, n := mostTries(l, topology.AllMethods, anything); any != nil && !b.Jitter.IsUnknown() &&
			(b.Jitter.IsZero() || b.Jitter.V == "none") {
			at := place(b.First, l)
			if b.Jitter.Origin == topology.Written {
				at = b.Jitter.At
			}
			r.report(Finding{Rule: "F402", At: at, Subject: subject(e, l, "jitter"), Effect: float64(n),
				Message: fmt.Sprintf("%s waits exactly %v before the first retry, so clients that failed together come back "+
					"together",
					name(l), first),
				Fix: "draw the wait at random (full jitter)", Assumptions: assumptions(l, b.First, b.Jitter)})
		}
	}
	if most, known := b.Max.Get(); known && most > 0 && first > most {
		r.report(Finding{Rule: "F407", At: place(b.Max, l), Subject: subject(e, l, "max below first"),
			Effect:  float64(first) / float64(most),
			Message: fmt.Sprintf("%s waits at most %v and at first %v, so every wait is %v", name(l), most, first, most),
			Fix:     fmt.Sprintf("raise the longest wait above %v, or lower the first", first),
			Related: []Place{{place(b.First, l), "the first wait"}}, Assumptions: assumptions(l, b.First, b.Max)})
	}
}
