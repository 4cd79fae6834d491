package istio

import (
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// implicitRetries is what a sidecar repeats where nobody says anything.
const implicitRetries = 2

// implicitWords are the conditions of Istio's default; up to 1.23 with 503.
var implicitWords = []string{"connect-failure", "refused-stream", "unavailable", "cancelled"}

var retryKeys = []string{"attempts", "perTryTimeout", "retryOn", "retryRemoteLocalities", "retryIgnorePreviousHosts",
	"backoff"}

// retries adds to a layer what is repeated: by a block of its route, else by the mesh's default, else by Istio's.
func (r *reader) retries(l *topology.Layer, block source.Node, elsewhere bool) {
	switch {
	case block.Written():
		r.block(l, block, elsewhere)
	case r.mesh.retries.Written():
		name := l.Name
		l.Name = "meshConfig"
		r.block(l, r.mesh.retries, elsewhere)
		l.Name = name
		inherit(l, "meshConfig.defaultHttpRetryPolicy")
	default:
		l.Repeats = r.defaults(topology.DefaultOf(1+implicitRetries, r.who, l.At), l.At, elsewhere)
		l.Backoff = r.backoff(topology.Value[time.Duration]{}, l.At)
	}
}

func inherit(l *topology.Layer, from string) {
	for i := range l.Repeats {
		if v := &l.Repeats[i].Tries; v.Origin == topology.Written {
			v.Origin, v.Why = topology.Inherited, from
		}
	}
	for _, v := range []*value[time.Duration]{&l.PerTry, &l.Backoff.First} {
		if v.Origin == topology.Written {
			v.Origin, v.Why = topology.Inherited, from
		}
	}
}

// defaults returns the rules of Istio's own conditions.
func (r *reader) defaults(tries value[int], at topology.Position, elsewhere bool) []topology.Repeat {
	p := envoywords.Policy{Product: "Istio", Tries: tries, Elsewhere: elsewhere}
	for _, w := range implicitWords {
		p.Words = append(p.Words, source.Part{Text: w, At: at})
	}
	if r.mesh.repeats503.Written() {
		at = r.mesh.repeats503.At()
	}
	if r.mesh.repeats503.Written() || source.Before(r.version.V, "1.24") {
		p.Words = append(p.Words, source.Part{Text: "retriable-status-codes", At: at})
		p.Codes = []source.Part{{Text: "503", At: at}}
	}
	repeats, _ := p.Repeats()
	return repeats
}

// block reads a retries block. Its attempts are those after the first, and none is off.
func (r *reader) block(l *topology.Layer, block source.Node, elsewhere bool) {
	subject := l.Name + " retries"
	r.form.Remarks = append(r.form.Remarks, block.Unknown("Istio", subject, retryKeys...)...)
	attempts := read(r, block.Get("attempts"), source.Int)
	if n, known := attempts.Get(); attempts.IsZero() || known && n == 0 {
		off := topology.DefaultOf(1, r.who+" (retries without attempts are off)", block.At())
		if known {
			off = topology.Write(1, attempts.At)
		}
		l.Repeats = []topology.Repeat{envoywords.Off(off, "attempts: 0", off.At)}
		if block.Get("retryOn").Exists() || block.Get("perTryTimeout").Exists() {
			r.remark("F602", block.At(), subject,
				"nothing is repeated, because attempts is missing or 0, and Istio's validation refuses other keys beside that",
				"write attempts, the number of tries after the first, or remove the other keys")
		}
		return
	}
	l.PerTry = read(r, block.Get("perTryTimeout"), source.Duration)
	if ignore := block.Get("retryIgnorePreviousHosts"); ignore.Exists() {
		elsewhere = ignore.Text() != "false"
	}
	tries := envoywords.PlusOne(attempts)
	l.Repeats = r.defaults(tries, block.At(), elsewhere)
	if on := block.Get("retryOn"); on.Text() != "" {
		p := conditions(on)
		p.Product, p.Subject, p.Tries, p.Elsewhere = "Istio", subject, tries, elsewhere
		repeats, more := p.Repeats()
		l.Repeats = repeats
		r.form.Remarks = append(r.form.Remarks, more...)
	}
	first := block.Get("backoff")
	if first.Exists() && source.Before(r.version.V, "1.26") {
		r.remark("F601", first.At(), subject+" backoff",
			"Istio "+r.version.V+" has no backoff: it came with 1.26, so it does nothing",
			"remove it, or update Istio")
		first = source.Node{}
	}
	l.Backoff = r.backoff(read(r, first, source.Duration), block.At())
}

// conditions splits retryOn: words are Envoy's, numbers are status codes.
func conditions(on source.Node) (p envoywords.Policy) {
	const byCode = "retriable-status-codes"
	named := false
	for _, part := range on.Parts(",") {
		if n, err := strconv.Atoi(part.Text); err == nil && http.StatusText(n) != "" {
			p.Codes = append(p.Codes, part)
			continue
		}
		named = named || part.Text == byCode
		p.Words = append(p.Words, part)
	}
	if len(p.Codes) > 0 && !named {
		p.Words = append(p.Words, source.Part{Text: byCode, At: p.Codes[0].At})
	}
	return p
}

func (r *reader) backoff(first value[time.Duration], at topology.Position) topology.Backoff {
	return envoywords.Backoff(first, topology.Value[time.Duration]{}, r.who, at)
}
