package abatekafka

import (
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

// whole makes sure that a message is delivered with its value, also if that was too large to be forwarded and only its place was. If the value is gone
// the message is a dead letter; if it cannot be read now the message waits. over tells that it is not delivered now.
func (p *partition) whole(d *delivery) (end ending, over bool) {
	if !d.message.Letter.Pointer {
		return ending{}, false
	}
	err := p.way.forward.restore(&d.context, d.message)
	switch {
	case err == nil:
		return ending{}, false
	case errors.Is(err, letter.ErrGone):
		d.outcome = abate.Outcome{Class: abate.Failure, NoRetry: true, Err: err}
		return p.failed(d, abate.Now(), err), true
	}
	const again = time.Second
	p.log.Warn("message came as a pointer to its value, which cannot be read now; it waits", "offset", d.slot.rec.Offset, "again_in", again, "error", err)
	return ending{action: hold, delay: again, refused: true}, true
}
