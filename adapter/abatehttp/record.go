package abatehttp

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/idempotency"
)

// record keeps an answer while it is written, so that it can be stored before its client has all of it. A body that fits
// is held back until then, or until the handler flushes; one that does not passes as it comes, and is not stored.
type record struct {
	out    http.ResponseWriter
	before http.Header // the header when the handler began
	max    int         // bytes of body

	status  int
	header  []idempotency.Field
	body    []byte
	sent    int  // bytes of body that have been passed on
	flushed bool // the body passes as it comes, and is kept
	partial bool // the answer cannot be stored
}

// notReplayed are fields that belong to one connection or to one time, in their canonical form. Those that an intermediary
// sets come from net/http again. Cookies are credentials of one session: they are not kept where answers are kept.
var notReplayed = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Date",
	"Set-Cookie", "Ratelimit", "Ratelimit-Policy", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	shouldRetryHeader, replayedHeader, hops.Made, hops.Ratelimited,
}

// head notes status and header of the answer: the fields that the handler has set. Those that stood there before are for
// whoever set them to set again.
func (r *record) head(status int, header http.Header) {
	r.status = status
	r.partial = r.partial || header["Trailer"] != nil // a replay could not bring it
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if slices.Contains(notReplayed, http.CanonicalHeaderKey(name)) || strings.HasPrefix(name, http.TrailerPrefix) || slices.Equal(header[name], r.before[name]) {
			continue
		}
		for _, value := range header[name] {
			r.header = append(r.header, idempotency.Field{Name: name, Value: value})
		}
	}
}

// write takes a part of the body.
func (r *record) write(p []byte) (int, error) {
	switch {
	case r.status < 200 || r.status == http.StatusNoContent || r.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case r.partial:
		return r.pass(p)
	case len(r.body)+len(p) > r.max:
		r.partial = true
		if err := r.flush(); err != nil {
			return 0, err
		}
		r.body = nil
		return r.out.Write(p)
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
	return r.out.Write(p)
}

// flush passes on what was held back.
func (r *record) flush() error {
	if r.sent >= len(r.body) {
		return nil
	}
	n, err := r.out.Write(r.body[r.sent:])
	r.sent += n
	return err
}

// release ends the holding back.
func (r *record) release() {
	r.flushed = true
	_ = r.flush() // the flush that follows says what is wrong
}

// response is the answer as it is stored.
func (r *record) response() idempotency.Response {
	for name := range r.out.Header() {
		r.partial = r.partial || strings.HasPrefix(name, http.TrailerPrefix)
	}
	if r.partial {
		return idempotency.Response{Status: r.status, Truncated: true}
	}
	return idempotency.Response{Status: r.status, Header: r.header, Body: r.body}
}

// replay writes a stored answer.
func replay(w http.ResponseWriter, r *idempotency.Response) {
	header := w.Header()
	for _, f := range r.Header {
		header.Del(f.Name)
	}
	for _, f := range r.Header {
		header.Add(f.Name, f.Value)
	}
	header[replayedHeader] = []string{"true"}
	w.WriteHeader(r.Status)
	if len(r.Body) > 0 {
		_, _ = w.Write(r.Body)
	}
}
