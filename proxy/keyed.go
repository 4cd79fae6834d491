package proxy

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/hops"
	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/proxy/h1"
)

// keyed is a request that holds an idempotency key: the first try, whose answer is kept for its repeats. A nil keyed,
// of a request without one, does nothing.
type keyed struct {
	*holding.Hold               // it may outlive the try, and must not keep the answer
	until         time.Duration // the end of the request's time
	answer        idempotency.Response
	size          int  // of the answer, so far
	kept          bool // it is for good
	over          bool // it is larger than what is kept
	settled       bool // the store is told how it ended
	unrecorded    bool // and has not confirmed that: the answer must not go out
}

// replayedField marks an answer that was kept.
const replayedField = "Idempotency-Replayed"

// head begins to keep an answer, of which the head has come.
func (k *keyed) head(resp *h1.Response) {
	k.answer = idempotency.Response{Status: resp.Status}
	reason := ""
	for _, f := range resp.Fields {
		if f.Is("abate-reason") {
			reason = text(f.Value)
		}
	}
	if k.kept = holding.Keeps(k.Config, resp.Status, reason); !k.kept {
		return
	}
	size := 0
	for _, f := range resp.Fields {
		if !holding.Replayed(text(f.Name)) {
			continue
		}
		k.answer.Header = append(k.answer.Header, idempotency.Field{Name: string(f.Name), Value: string(f.Value)})
		size += len(f.Name) + len(f.Value)
	}
	k.size = size
	k.over = size > k.Config.MaxAnswer || resp.Length > int64(k.Config.MaxAnswer-size)
}

func (k *keyed) write(data []byte) {
	if k == nil || k.over || !k.kept {
		return
	}
	if k.over = k.size+len(data) > k.Config.MaxAnswer || !k.Grow(k.size, k.size+len(data)); !k.over {
		k.size += len(data)
		k.answer.Body = append(k.answer.Body, data...)
	}
}

// keepTrailer keeps the fields behind the content.
func (k *keyed) keepTrailer(trailer []h1.Field) {
	for _, f := range trailer {
		if holding.Replayed(text(f.Name)) {
			mark := idempotency.TrailerMark + string(f.Name)
			k.answer.Header = append(k.answer.Header, idempotency.Field{Name: mark, Value: string(f.Value)})
			k.size += len(f.Name) + len(f.Value)
		}
	}
	k.over = k.over || k.size > k.Config.MaxAnswer
}

// complete tells the store that the answer has come: one that is kept, or one that says that the request may be tried
// again.
func (k *keyed) complete(trailer []h1.Field) {
	if k == nil || k.settled {
		return
	}
	if k.keepTrailer(trailer); k.over {
		k.answer = idempotency.Response{Status: k.answer.Status, Truncated: true}
	}
	if k.settled = true; !k.kept {
		k.Fail()
	} else {
		k.unrecorded = !k.Complete(k.answer, k.until)
	}
}

// completeRPC is complete for a gRPC answer: whether it is kept, its own status says, which stands in its trailer.
func (k *keyed) completeRPC(code hops.Code, trailer []h1.Field) {
	if k == nil || k.settled {
		return
	}
	if !k.Config.KeepsCode(uint32(code)) || code != hops.OK && k.asksAgain(trailer) {
		k.settled = true
		k.Fail()
		return
	}
	k.complete(trailer)
}

// asksAgain reports whether a gate behind this proxy has refused for the moment. Its reason stands in the head if there
// is no content.
func (k *keyed) asksAgain(trailer []h1.Field) bool {
	for _, f := range k.answer.Header {
		if strings.EqualFold(f.Name, "abate-reason") && holding.AskAgain(f.Value) {
			return true
		}
	}
	return slices.ContainsFunc(trailer, func(f h1.Field) bool {
		return f.Is("abate-reason") && holding.AskAgain(text(f.Value))
	})
}

// unanswered is for a try that brought no answer. If it has not reached the service the next one may run at once;
// else the service may still be doing it, or have done it: the key is held until its lease is over, or for good if no
// try may run where there may be an effect.
func (k *keyed) unanswered(reached bool) {
	if k == nil || k.settled {
		return
	}
	k.settled = true
	switch {
	case !reached:
		k.Fail()
	case k.Config.KeepServerErrors:
		k.Complete(idempotency.Unknown(), k.Soon())
	default:
		k.Leave()
	}
}

// end is for a try that is over. An answer that broke off in its middle has been done, but cannot be repeated.
func (k *keyed) end() {
	if k == nil {
		return
	}
	if k.answer.Status == 0 { // whatever came of it, nobody has looked
		k.unanswered(true)
	}
	if !k.settled {
		k.over, k.until = true, k.Soon()
		k.complete(nil)
	}
	k.Shrink()
}

// panicked is for a try of which nobody knows how far it came.
func (k *keyed) panicked() {
	if k != nil {
		k.unanswered(true)
		k.Shrink()
	}
}
