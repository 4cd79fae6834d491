package abateadmin

import (
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/abate-go/abate/core"
)

// patience is how long a reader may take for one event before it is dropped.
const patience = 5 * time.Second

// state is GET /state.
func (p *Page) state(w http.ResponseWriter, r *http.Request) error {
	now := core.Now()
	s := p.head(now, r)
	s.Full = true
	s.Rows, _ = p.rows(now)
	writeJSON(w, http.StatusOK, s)
	return nil
}

// events is GET /events. It is one loop on the goroutine of the request: nobody has to end it but whoever reads.
func (p *Page) events(w http.ResponseWriter, r *http.Request) error {
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	default:
		w.Header().Set("Retry-After", "10")
		return refuse(http.StatusServiceUnavailable, "%d look at this page already: close some tabs", maxReaders)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := stream{w: w, control: http.NewResponseController(w)}
	now := core.Now()
	last := p.head(now, r)
	rows, all := p.rows(now)
	last.Full, last.Rows, last.Sparks = true, rows, sparks(all, now)
	if out.send(&last) != nil {
		return nil // the reader has left, or is too slow
	}
	t := time.NewTicker(p.tick)
	defer t.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-p.closed:
			return nil
		case <-t.C:
		}
		if !p.sees(r) {
			return nil // no longer: the token was taken away
		}
		now := core.Now()
		s := p.head(now, r)
		next, all := p.rows(now)
		var event any = &s
		if s.run == last.run {
			s.Rows, s.Gone = changes(rows, next)
			event = s.since(&last)
		} else { // nothing of the run before is of this one
			s.Full, s.Rows, s.Sparks = true, next, sparks(all, now)
		}
		rows = next
		if out.send(event) != nil {
			return nil
		}
		last = s
	}
}

// delta is an event of a stream behind its first: what is as it was before is left out.
type delta struct {
	At   int64  `json:"at"`
	Rows []Row  `json:"rows,omitempty"`
	Gone []Name `json:"gone,omitempty"`
	// Head is there if anything in it has changed.
	Head *Snapshot `json:"head,omitempty"`
}

// since leaves out of s what was in last already.
func (s *Snapshot) since(last *Snapshot) *delta {
	d := &delta{At: s.At, Rows: s.Rows, Gone: s.Gone}
	bare := func(s Snapshot) Snapshot {
		s.At, s.Full, s.Rows, s.Gone, s.Sparks = 0, false, nil, nil, nil
		return s
	}
	if head := bare(*s); !reflect.DeepEqual(head, bare(*last)) {
		d.Head = &head
	}
	return d
}

// stream writes events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *stream) send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	// instead of the server's, which is for answers that have an end
	_ = s.control.SetWriteDeadline(time.Now().Add(patience))
	if _, err := s.w.Write(append(append([]byte("data: "), data...), "\n\n"...)); err != nil {
		return err
	}
	return s.control.Flush()
}
