package abatekafka

import (
	"context"
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fetchAgain is the pause after a fetch that brought nothing but errors. The client would bring the same ones again at once.
const fetchAgain = 100 * time.Millisecond

// failed reports whether a fetch brought nothing but errors of the broker.
func failed(fetches kgo.Fetches) bool {
	if fetches.NumRecords() > 0 {
		return false
	}
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.Canceled) { // who was nudged
			return true
		}
	}
	return false
}

// failing is what was told of a partition that cannot be fetched.
type failing struct {
	err  string
	told time.Duration
}

// notFetched says that a partition cannot be fetched: at once, and while it stays so once a minute. The client brings the error with every fetch.
func (s *session) notFetched(at place, err error) {
	now := abate.Now()
	s.mu.Lock()
	last, known := s.failing[at]
	tell := !known || last.err != err.Error() || now-last.told >= stuckAgain
	if tell {
		s.failing[at] = failing{err.Error(), now}
	}
	s.mu.Unlock()
	switch {
	case !tell:
	case errors.Is(err, kerr.UnknownTopicID):
		s.r.log.Error("topic was deleted, and perhaps made anew: nothing of it is delivered until this consumer is restarted", "topic", at.topic, "partition", at.partition, "error", err)
	default:
		s.r.log.Warn("fetch failed; the client goes on trying", "topic", at.topic, "partition", at.partition, "error", err)
	}
}
