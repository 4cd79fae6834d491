package dlq

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/letter"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Filter chooses dead letters. Zero fields choose all; but a zero Partition is partition 0: start from All.
type Filter struct {
	// Group is the ID of a Group, or a prefix of it.
	Group string `json:"group,omitempty"`
	// From (inclusive) and To (exclusive) bound when the dead letter was written.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
	// Partition is one of the dead-letter topic's, -1 for all.
	Partition int32 `json:"partition"`
	// FromOffset (inclusive) and ToOffset (exclusive, 0 for the end) bound the offsets in the dead-letter topic.
	FromOffset int64 `json:"fromOffset,omitempty"`
	ToOffset   int64 `json:"toOffset,omitempty"`
	// Where is an expression, see ParseExpression.
	Where string `json:"where,omitempty"`
	// State chooses by state. Empty: Waiting. Any: all.
	State State `json:"state,omitempty"`
	// Max is how many at most, the first ones. 0: all.
	Max int `json:"max,omitempty"`
}

// All is the Filter that chooses every dead letter that waits.
func All() Filter { return Filter{Partition: -1} }

// At is the Filter that chooses one dead letter, whatever its state.
func At(partition int32, offset int64) Filter {
	return Filter{Partition: partition, FromOffset: offset, ToOffset: offset + 1, State: Any}
}

// sieve is a Filter, checked.
type sieve struct {
	Filter
	where *Expression
	group string // of consumers; empty: all
	now   time.Time
}

// sieve checks the filter; the error tells everything that is wrong with it.
func (d *Desk) sieve(f Filter) (*sieve, error) {
	var wrong []error
	if f.State == "" {
		f.State = Waiting
	}
	if f.State != Any && !slices.Contains(States, f.State) {
		wrong = append(wrong, fmt.Errorf("dlq: there is no state %q: write waiting, replayed, deleted or any", f.State))
	}
	if f.Partition < -1 {
		wrong = append(wrong, fmt.Errorf("dlq: there is no partition %d: write its number, or -1 for all", f.Partition))
	}
	if f.FromOffset < 0 || f.ToOffset < 0 || f.ToOffset > 0 && f.ToOffset <= f.FromOffset {
		wrong = append(wrong, fmt.Errorf("dlq: offsets %d to %d choose nothing: the second is exclusive, and 0 for the end",
			f.FromOffset, f.ToOffset))
	}
	if !f.To.IsZero() && !f.From.Before(f.To) {
		wrong = append(wrong, fmt.Errorf("dlq: the time from %s to %s chooses nothing", f.From.Format(time.RFC3339),
			f.To.Format(time.RFC3339)))
	}
	if f.Max < 0 {
		wrong = append(wrong, fmt.Errorf("dlq: at most %d letters is out of range: 0 means all", f.Max))
	}
	s := &sieve{Filter: f, group: d.config.Group, now: time.Now()}
	if f.Where != "" {
		var err error
		if s.where, err = ParseExpression(f.Where); err != nil {
			wrong = append(wrong, fmt.Errorf("dlq: the expression: %w", err))
		}
	}
	return s, errors.Join(wrong...)
}

// early decides by the record alone, before its headers are read.
func (s *sieve) early(r *kgo.Record) bool {
	if !letter.Credible(r.Timestamp, s.now) {
		return true // nobody knows when it was written: passes asks the letter
	}
	return !r.Timestamp.Before(s.From) && (s.To.IsZero() || r.Timestamp.Before(s.To))
}

func (s *sieve) passes(e *Entry) bool {
	return !e.Written.Before(s.From) && (s.To.IsZero() || e.Written.Before(s.To)) &&
		(s.State == Any || e.State == s.State) && strings.HasPrefix(e.Group, s.Group) &&
		(s.group == "" || e.Letter.Group == "" || e.Letter.Group == s.group) &&
		(s.where == nil || s.where.Match(e, s.now))
}

// narrow cuts a partition's span to what the filter can choose.
func (s *sieve) narrow(p span) span {
	if s.Partition >= 0 && p.partition != s.Partition {
		return span{p.partition, p.to, p.to}
	}
	p.from = max(p.from, s.FromOffset)
	if s.ToOffset > 0 {
		p.to = min(p.to, s.ToOffset)
	}
	return p
}
