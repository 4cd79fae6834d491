package abatekafka

import (
	"log/slog"
	"time"

	"github.com/abate-go/abate/policy/redelivery"
)

// For tests of Once without a consumer.

func (d *Deduper) Wrap(group string, c redelivery.Config, log *slog.Logger, deliver Handler,
	duplicate func(*Message)) Handler {
	return d.wrap(group, c, log, deliver, duplicate)
}

func (d *Deduper) Kept(c redelivery.Config) (required, retention, lease time.Duration) {
	return d.required(c), d.retention(c), d.lease(c)
}

func (d *Deduper) EventOf(m *Message) (key, text string, compared bool, problem error) {
	id := d.eventOf(m)
	return id.key, id.text, id.fingerprint != [32]byte{}, id.problem
}

func RefusedFor(err error) (time.Duration, bool) { return refusedFor(err) }

func Reused(err error) bool { return reused(err) }
