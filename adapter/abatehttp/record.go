package abatehttp

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// record keeps an answer while it is written, so that it can be stored before its client has any of it. Head and body
// are held back until then, or until the handler flushes, or the body does not fit: then it is recorded that the
// request was done, before the first byte goes out. A body that does not fit passes as it comes, and is not stored.
type record struct {
	out    http.ResponseWriter
	send   func([]byte) (int, error) // writes to out
	before http.Header               // the header when the handler began
	max    int                       // bytes of body
	mark   func(status int) bool     // records that the request was done; false if that was not confirmed
	grow   func(from, to int) bool   // whether there is memory for that much of it
	shrink func()                    // there is none of it in memory any more

	streams func()      // called when the body begins to pass as it comes; nil afterwards
	unwatch func() bool // ends what streams began
	gone    atomic.Bool // its client has left, a lease ago: nothing is written any more

	bodyless  bool // the request is one whose answers have no body
	status    int
	kept      bool  // the answer is for good
	length    int64 // of the body, as the head says; 0 if it does not
	header    []idempotency.Field
	body      []byte
	sent      int         // bytes of body that have been passed on
	announced []string    // what the Trailer header says
	flushed   bool        // the body passes as it comes, and is kept
	partial   bool        // the answer cannot be stored
	marked    bool        // what there is may go out
	refused   bool        // what there was could not be marked, so none of it goes out
	opened    bool        // the head has been passed on
	held      http.Header // the header when the head was written, if it is held back
}

// head notes status and header of the answer: the fields that the handler has set. Those that stood there before are
// for whoever set them to set again.
func (r *record) head(status int, c *idempotency.Config) {
	header := r.out.Header()
	r.status, r.kept = status, serving.Keeps(c, status, header.Get(reasonHeader))
	r.length, _ = strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	r.announced = slices.Clone(header["Trailer"])
	for _, name := range slices.Sorted(maps.Keys(header)) {
		trails := strings.HasPrefix(name, http.TrailerPrefix)
		if trails || !serving.Replayed(name) || slices.Equal(header[name], r.before[name]) {
			continue
		}
		for _, value := range header[name] {
			r.header = append(r.header, idempotency.Field{Name: name, Value: value})
		}
	}
}

// hold holds the head back: what happens to the header from now on must not reach the client.
func (r *record) hold() { r.held = r.out.Header().Clone() }

// errUnrecorded is what a handler gets that flushes, or writes more than is held back, while the store does not answer.
var errUnrecorded = errors.New("abatehttp: the answer is held back, because the store of idempotency keys has not " +
	"confirmed that the request was done")

// open passes the head on. That of an answer for good goes out only when it is recorded that there is one.
func (r *record) open() error {
	if r.opened {
		return nil
	}
	if !r.refused {
		r.marked = r.marked || !r.kept || r.mark(r.status)
		r.refused = !r.marked
	}
	if r.refused {
		return errUnrecorded
	}
	r.opened = true
	if r.held == nil {
		return nil
	}
	header := r.out.Header()
	now := maps.Clone(header)
	clear(header)
	maps.Copy(header, r.held)
	r.out.WriteHeader(r.status)
	clear(header)
	maps.Copy(header, now) // trailers are read later
	return nil
}

func (r *record) write(p []byte) (int, error) {
	switch {
	case r.gone.Load():
		r.partial = true
		return 0, context.Canceled
	case r.status < 200 || r.status == http.StatusNoContent || r.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case r.partial, len(r.body)+len(p) > r.max, !r.grow(len(r.body), len(r.body)+len(p)):
		r.partial = true
		return r.pass(p)
	}
	r.body = append(r.body, p...)
	if r.flushed {
		_ = r.flush() // a client that has left does not end the work: its next try gets what comes after, too
	}
	return len(p), nil
}

// pass writes a part of a body that is not kept, behind what was.
func (r *record) pass(p []byte) (int, error) {
	if err := r.flush(); err != nil {
		return 0, err
	}
	if r.body != nil {
		r.body = nil
		r.shrink()
	}
	return r.send(p)
}

// flush passes on what was held back.
func (r *record) flush() error {
	if err := r.open(); err != nil {
		return err
	}
	if r.sent >= len(r.body) {
		return nil
	}
	n, err := r.send(r.body[r.sent:])
	r.sent += n
	return err
}

// release ends the holding back.
func (r *record) release() error {
	if err := r.open(); err != nil {
		return err
	}
	if r.flushed = true; r.streams != nil {
		r.streams()
		r.streams = nil
	}
	if r.gone.Load() {
		r.partial = true
		return context.Canceled
	}
	_ = r.flush() // the flush that follows says what is wrong
	return nil
}

// response is the answer as it is stored.
func (r *record) response() idempotency.Response {
	fields := append(r.header, r.trailer()...)
	size := len(r.body)
	for _, f := range fields {
		size += len(f.Name) + len(f.Value)
	}
	if r.partial || size > r.max || r.short() {
		return idempotency.Response{Status: r.status, Truncated: true}
	}
	return idempotency.Response{Status: r.status, Header: fields, Body: r.body}
}

// short reports whether the body has fewer bytes than the head says, and the answer has one: its writer broke off.
func (r *record) short() bool {
	return !r.bodyless && r.status != http.StatusNotModified && r.length > int64(len(r.body))
}

// trailer is what the handler has set to come after the body: fields that it announced before, and fields with
// net/http's prefix.
func (r *record) trailer() (fields []idempotency.Field) {
	header := r.out.Header()
	add := func(name string, values []string) {
		for _, value := range values {
			fields = append(fields, idempotency.Field{Name: idempotency.TrailerMark + name, Value: value})
		}
	}
	for _, list := range r.announced {
		for name := range strings.SplitSeq(list, ",") {
			name = http.CanonicalHeaderKey(strings.Trim(name, " \t"))
			if serving.Replayed(name) {
				add(name, header[name])
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(header)) {
		if name, after := strings.CutPrefix(key, http.TrailerPrefix); after {
			add(name, header[key])
		}
	}
	return fields
}

func isTrailer(f idempotency.Field) bool { return strings.HasPrefix(f.Name, idempotency.TrailerMark) }

func replay(w http.ResponseWriter, r *idempotency.Response) {
	header := w.Header()
	fields := slices.DeleteFunc(slices.Clone(r.Header), isTrailer)
	for _, f := range fields {
		header.Del(f.Name)
	}
	for _, f := range fields {
		header.Add(f.Name, f.Value)
	}
	header[replayedHeader] = []string{"true"}
	trailer := http.Header{}
	for _, f := range r.Header {
		if name, after := strings.CutPrefix(f.Name, idempotency.TrailerMark); after {
			if trailer[name] == nil {
				header.Add("Trailer", name)
			}
			trailer[name] = append(trailer[name], f.Value)
		}
	}
	w.WriteHeader(r.Status)
	if len(r.Body) > 0 {
		_, _ = w.Write(r.Body)
	}
	maps.Copy(header, trailer)
}
