package grpcconfig

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// mostAttempts is what a greater maxAttempts counts as.
const mostAttempts = 5

// outcomes are those that a client of gRPC sees as a code. What a proxy answers without a code becomes one by gRPC's
// table.
var outcomes = map[string][]topology.Outcome{
	"UNAVAILABLE": {topology.Unavailable, topology.Refused, topology.ResetUnsent, topology.ResetSent, topology.S429,
		topology.S502,
		topology.S503, topology.S504},
	"UNKNOWN":            {topology.UnknownCode, topology.S500},
	"INTERNAL":           {topology.Internal},
	"RESOURCE_EXHAUSTED": {topology.ResourceExhausted},
	"DEADLINE_EXCEEDED":  {topology.DeadlineExceeded},
	"CANCELLED":          {topology.CancelledCode},
	"ABORTED":            {topology.Aborted},
}

// codes are gRPC's status codes, by their numbers.
var codes = []string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
	"ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL",
	"UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}

// code reads a status code as a config writes it: its name or its number.
func code(word string) (string, error) {
	if n, err := strconv.Atoi(word); err == nil && n >= 0 && n < len(codes) {
		return codes[n], nil
	}
	if !slices.Contains(codes, word) {
		return "", fmt.Errorf("gRPC has no status code %q; %s", word, source.Meant(word, codes))
	}
	return word, nil
}

// duration reads a duration as JSON of protobuf writes it: seconds, with an s.
func duration(word string) (time.Duration, error) {
	number, isSeconds := strings.CutSuffix(word, "s")
	n, err := strconv.ParseFloat(number, 64)
	if !isSeconds || err != nil || !(n >= 0) || n > 1e9 || strings.ContainsAny(number, "eExX_+pP") {
		return 0, fmt.Errorf("%q is no duration here; gRPC reads seconds only, such as 0.1s", word)
	}
	return time.Duration(math.Round(n * float64(time.Second))), nil
}

var retryKeys = []string{"maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes"}

// retry reads a retryPolicy. Without maxAttempts, and with a timeout, it is the dialect of Google's generated clients.
func (c *config) retry(n source.Node, l *topology.Layer) {
	c.form.Remarks = append(c.form.Remarks, unknown(n, "retryPolicy", append([]string{"perAttemptRecvTimeout"},
		retryKeys...)...)...)
	l.Backoff = topology.Backoff{First: scalar(c, n.Get(key("initialBackoff")), duration),
		Max:        scalar(c, n.Get(key("maxBackoff")), duration),
		Multiplier: scalar(c, n.Get(key("backoffMultiplier")), source.Float),
		Jitter:     topology.DefaultOf("±20%", c.product(), n.At()),
		RetryAfter: topology.DefaultOf(true, c.product()+", which obeys the server's pushback", n.At())}
	tries := scalar(c, n.Get(key("maxAttempts")), source.Int)
	if tries.IsZero() && !l.Overall.IsZero() {
		c.generated(n, l)
		tries = topology.DefaultOf(topology.Unbounded, "Google's generated clients, which try until the deadline", n.At())
	} else {
		tries = c.attempts(n, tries)
	}
	positive(c, n, "initialBackoff", l.Backoff.First)
	positive(c, n, "maxBackoff", l.Backoff.Max)
	positive(c, n, "backoffMultiplier", l.Backoff.Multiplier)
	list := n.Get(key("retryableStatusCodes"))
	if len(list.Items()) == 0 {
		c.refuse(n, "retryPolicy retryableStatusCodes", "retryableStatusCodes is missing or empty",
			`write for example ["UNAVAILABLE"]`)
	}
	for _, item := range list.Items() {
		name := scalar(c, item, code)
		if name.IsUnknown() {
			continue
		}
		l.Repeats = append(l.Repeats, topology.Repeat{On: outcomes[name.V], Tries: tries, Word: name.V, At: item.At()})
	}
}

// attempts checks maxAttempts.
func (c *config) attempts(n source.Node, tries topology.Value[int]) topology.Value[int] {
	most, ok := tries.Get()
	switch {
	case tries.IsUnknown():
	case !ok:
		c.refuse(n, "retryPolicy maxAttempts", "maxAttempts is missing",
			"write how many tries a call may make in all, 2 to 5")
	case most < 2:
		c.refuse(n.Get(key("maxAttempts")), "retryPolicy maxAttempts",
			fmt.Sprintf("maxAttempts is %d, and counts the first try", most),
			"write 2 to 5, or remove the retryPolicy")
	case most > mostAttempts:
		c.remark("F602", n.Get(key("maxAttempts")), "retryPolicy maxAttempts",
			fmt.Sprintf("maxAttempts %d counts as %d", most, mostAttempts),
			fmt.Sprintf("write %d, or raise the limit in the client's code", mostAttempts))
		tries.V = mostAttempts
	}
	return tries
}

func positive[T float64 | time.Duration](c *config, n source.Node, key string, v topology.Value[T]) {
	if got, ok := v.Get(); !v.IsUnknown() && (!ok || got <= 0) {
		c.refuse(n, "retryPolicy "+key, key+" is missing or not above 0", "write one")
	}
}

// generated turns a layer into one of Google's generated clients, which do not read maxAttempts and draw each wait from
// nothing to the whole.
func (c *config) generated(n source.Node, l *topology.Layer) {
	l.Product = "gapic"
	l.Backoff.Jitter = topology.DefaultOf("full", "Google's generated clients", n.At())
	l.Backoff.RetryAfter = topology.Value[bool]{}
}

// hedge reads a hedgingPolicy.
func (c *config) hedge(n source.Node) topology.Hedge {
	c.form.Remarks = append(c.form.Remarks, unknown(n, "hedgingPolicy", "maxAttempts", "hedgingDelay",
		"nonFatalStatusCodes")...)
	copies := scalar(c, n.Get(key("maxAttempts")), source.Int)
	switch most, ok := copies.Get(); {
	case copies.IsUnknown():
	case !ok || most < 2:
		c.refuse(n, "hedgingPolicy maxAttempts", "maxAttempts must be 2 or more", "write 2 to 5, or remove the hedgingPolicy")
	default:
		copies.V = min(most, mostAttempts) - 1
	}
	delay := scalar(c, n.Get(key("hedgingDelay")), duration)
	if delay.IsZero() {
		delay = topology.DefaultOf(time.Duration(0), c.product()+", which sends all copies at once", n.At())
	}
	return topology.Hedge{Copies: copies, Delay: delay}
}
