package proxy

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
)

// upload sends a stream beside the attempt, which waits for the answer meanwhile: the service may answer before it
// has all of the request, and both directions may flow at once.
type upload struct {
	body    *content
	to      *upstreamConn
	permit  chan struct{} // closed when the service wants the body (100 Continue), or says nothing for a while
	began   time.Duration
	ended   chan struct{}
	done    atomic.Bool  // sent to its end
	asking  atomic.Bool  // it waits for the client
	moved   atomic.Int64 // when the service was handed something last, or there was something to hand over
	halt    atomic.Bool  // nobody wants the rest
	err     atomic.Pointer[error]
	granted bool
}

// continueWait is how long a service may think about Expect: 100-continue at most, before the body is sent anyway: it
// may not know the word (RFC 9110 §10.1.1).
const continueWait = time.Second

func (b *content) send(to *upstreamConn) *upload {
	u := &upload{body: b, to: to, began: core.Now(), permit: make(chan struct{}), ended: make(chan struct{})}
	b.taken, b.upload, to.hurried = true, u, true
	if !b.req.Expect {
		u.grant()
	}
	go u.run()
	return u
}

// grant lets the body go. From here on there is something to hand over.
func (u *upload) grant() {
	if !u.granted {
		u.granted = true
		u.moved.Store(int64(core.Now()))
		close(u.permit)
	}
}

func (u *upload) run() {
	defer close(u.ended)
	<-u.permit
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	frame := make([]byte, 0, 32)
	for {
		u.moved.Store(int64(core.Now()))
		u.asking.Store(true)
		n, err := u.body.Read(*buf)
		u.moved.Store(int64(core.Now()))
		u.asking.Store(false)
		if n > 0 && !u.write(frame, (*buf)[:n]) {
			return
		}
		if err == io.EOF {
			if u.body.chunked && !u.put(h1.AppendLastChunk(frame, u.body.req.trailer())) {
				return
			}
			u.moved.Store(int64(core.Now()))
			u.done.Store(true)
			return
		}
		if err != nil {
			if !errors.Is(err, errStopped) {
				u.err.Store(&err)
			}
			u.to.nc.Close() // the service must not take a part for the whole
			return
		}
	}
}

func (u *upload) write(frame, p []byte) bool {
	if !u.body.chunked {
		return u.put(p)
	}
	return u.put(h1.AppendChunkSize(frame, len(p))) && u.put(p) && u.put(crlf)
}

// put writes to the service. One that takes nothing for StallTimeout has failed; what became of it, the attempt finds
// out.
func (u *upload) put(p []byte) bool {
	with := u.body.req.plane
	u.to.nc.SetWriteDeadline(with.clock.time(later(core.Now(), with.config.StallTimeout)))
	if u.halt.Load() { // looked at after the deadline is set: stop sets one after it
		return false
	}
	_, err := u.to.nc.Write(p)
	return err == nil
}

// late tells, at the end of an attempt's time, whether it was the client who was waited for, and notes that.
func (u *upload) late() bool {
	if u == nil || !u.granted || !u.asking.Load() {
		return false
	}
	var err error = errSlowBody
	u.err.CompareAndSwap(nil, &err)
	return true
}

// failed is why the client's part failed, nil if it did not.
func (u *upload) failed() error {
	if err := u.err.Load(); err != nil {
		return *err
	}
	return nil
}

// stop ends the upload and waits for it. A connection whose request was cut off is of no more use.
func (u *upload) stop() {
	if !u.done.Load() {
		u.grant()
		u.body.req.client.stop()
		u.halt.Store(true)
		u.to.nc.SetWriteDeadline(time.Unix(1, 0))
	}
	<-u.ended
}
