package abategrpc

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/metadata"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/shed"
)

const priorityName = "abate-priority"

// outgoing is the metadata that the attempts of one call send.
type outgoing struct {
	base     metadata.MD // the caller's, without what was about the hop before this one; nil if there is none
	changed  bool        // base is not what the caller's context says
	shared   bool        // several attempts are made of it at once
	told     bool        // the first attempt has written its allowance into base
	omit     bool
	earlier  int  // attempts that somebody above has made before, as far as is known
	numbered bool // somebody above says which attempt this is
	says     bool // the next hop should hear of the priority
	priority shed.Priority
}

// open reads what the caller sends. keyed reports whether an idempotency key is among it. It allocates only if there is
// something.
func (o *outgoing) open(ctx context.Context, c *Client, p *abate.Policy) (keyed bool) {
	o.omit = c.OmitHeaders || p.InternalHeaders == core.OmitInternal
	if !o.omit {
		o.priority, o.says = core.PriorityOf(ctx)
	}
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok || len(md) == 0 {
		return false
	}
	o.base = md
	o.earlier, o.numbered = numberOf(ctx, md)
	if md[allowanceName] != nil && !passesOn(ctx, p) {
		delete(md, allowanceName)
		o.changed = true
	}
	if o.omit {
		for name := range md {
			if strings.HasPrefix(name, "abate-") || strings.HasPrefix(name, "x-envoy-") {
				delete(md, name)
				o.changed = true
			}
		}
	}
	if !o.omit && md[attemptsName] != nil {
		delete(md, attemptsName)
		o.changed = true
	}
	return hasText(md[keyName]) || hasText(md[xKeyName])
}

func hasText(values []string) bool { return len(values) > 0 && values[0] != "" }

// passesOn reports whether an allowance that the caller has taken over from a call that arrived goes to the next hop as
// it is: only if nothing is repeated here and nobody has read it, so that this hop is not one of those that share it.
func passesOn(ctx context.Context, p *abate.Policy) bool {
	return p.MaxRetries == 0 && !p.Hedge.Enabled() && p.RetryOwner != core.OwnerNone && core.CallTreeOf(ctx) == nil
}

// carrying is an attempt's context with the metadata that it sends. It finds that in a holder, which first attempts
// share: one allocation less for each, and none if its memory is part of the call.
type carrying struct {
	context.Context
	holder context.Context // holds metadata, and nothing else
}

// Value looks for metadata in the holder, and for everything else in the attempt's context.
func (c *carrying) Value(key any) any {
	if v := c.holder.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// context returns ctx with what attempt s sends. memory is for that.
func (o *outgoing) context(ctx context.Context, m *method, s core.Sending, memory *carrying) context.Context {
	t := told{says: o.says, priority: o.priority}
	if s.Announce && !o.omit {
		t.tells, t.allowance = true, s.Allowance
	}
	n := s.Number + o.earlier
	numbered := n > 1 && !o.omit
	switch {
	case !numbered && !t.tells && !t.says && !o.changed:
		return ctx
	case !numbered && o.base == nil:
		memory.holder = m.told.find(t).holder
	default:
		memory.holder = metadata.NewOutgoingContext(context.Background(), o.write(m, t, s.Number, n))
	}
	memory.Context = ctx
	return memory
}

// write returns the metadata of attempt n, which is the one with that number if those are counted that were made above.
// The first may have base itself, unless a copy of it is made at the same time; from then on that is only read.
func (o *outgoing) write(m *method, t told, n, number int) metadata.MD {
	md := o.base
	if n == 1 && !o.shared && md != nil {
		o.told = t.tells
	} else {
		md = make(metadata.MD, len(o.base)+3)
		maps.Copy(md, o.base)
		if o.told {
			delete(md, allowanceName)
		}
	}
	if t.tells || t.says {
		maps.Copy(md, m.told.find(t).md) // the lists in it are only read
	}
	if number > 1 && !o.omit {
		md[attemptsName] = []string{strconv.Itoa(number - 1)}
	}
	return md
}

type told struct {
	tells     bool
	allowance core.Allowance
	says      bool
	priority  shed.Priority
}

// toldCache remembers what attempts have told last, as metadata: there is little of it, and it is the same again and
// again.
type toldCache struct {
	last [8]atomic.Pointer[toldMetadata]
}

type toldMetadata struct {
	told   told
	md     metadata.MD
	holder context.Context // with md
}

func (c *toldCache) find(t told) *toldMetadata {
	slot := &c.last[uint(t.allowance.Left+len(t.allowance.Owner)+int(t.priority))%uint(len(c.last))]
	last := slot.Load()
	if last != nil && last.told == t {
		return last
	}
	md := make(metadata.MD, 2)
	if t.tells {
		md[allowanceName] = []string{string(hops.AppendAllowance(nil, t.allowance))}
	}
	if t.says {
		md[priorityName] = []string{t.priority.String()}
	}
	last = &toldMetadata{t, md, metadata.NewOutgoingContext(context.Background(), md)}
	slot.Store(last)
	return last
}
