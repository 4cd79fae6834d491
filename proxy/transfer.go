package proxy

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/proxy/calltree"
)

// transfer is the passing on of a service's answer to the client, to whoever keeps it, and to those who wait for its
// end.
type transfer struct {
	req   *request
	call  *guardedCall
	reply *reply

	from *answer
	key  *keyed        // that the request holds
	good lastGood      // which may keep the answer too
	over time.Duration // when all of the answer had come; 0 before
}

// forget lets go of the answer that was passed on. Its connection may be idle for minutes, and a kept answer is large.
func (t *transfer) forget() { t.from, t.key = nil, nil }

func (t *transfer) pass(a *answer, extra []byte) {
	client := t.req.client
	t.from, t.key = a, t.req.keyInUse()
	a.span.over = 0
	t.takeHead()
	if t.switches() {
		return
	}
	if t.req.rpc {
		extra = t.addTail(append(extra, t.closing()...))
	}
	length := a.resp.Length
	if length == 0 {
		length = a.resp.Announced // to HEAD, and of 304: what would have come, if the service says so
	}
	a.keeping = t.good.begin(&a.resp) || t.key != nil
	if a.resp.Length == 0 && (client.multiplexed() || a.h2.s != nil) { // the head is all: who has that may ask again
		t.good.commit()
		t.whole()
	}
	h := head{status: a.resp.Status, reason: a.resp.Reason, fields: a.resp.Fields, length: length, extra: extra}
	if t.key == nil {
		t.reply.respond(h)
	} else if !t.beginKeyed(h) {
		t.good.drop()
		return
	}
	// an event may be long in coming, and a client that sends and receives waits for the head
	if length != 0 && !a.pending() {
		client.flush()
	}
	for !client.broken() || t.key != nil {
		data, err := t.more()
		if err == io.EOF {
			t.good.commit()
			t.close()
			return
		}
		if err != nil {
			t.good.drop()
			t.breakOff(err)
			return
		}
		t.reply.bytes += int64(len(data))
		t.good.write(data)
		t.key.write(data)
		if a.ended || a.h2.passed(data) {
			t.good.commit() // before the client has all of it, and may ask again
			t.whole()
		}
		if client.write(data); !a.pending() {
			client.flush()
		}
	}
	t.good.drop()
	if t.reply.reason == "" {
		t.reply.reason = "the client left before the end of the answer"
	}
}

// blames reports whether the service is to blame for an answer that broke off with err.
func (t *transfer) blames(err error) bool {
	return !t.req.rpc && !errors.Is(err, errGone) && !errors.Is(err, errStalls) && !t.req.client.broken() &&
		!t.req.client.gone() && t.reply.body.failed() == nil
}

// close ends the answer, which has come to its end.
func (t *transfer) close() {
	a := t.from
	t.conclude()
	t.whole()
	if t.endKeyed() {
		return
	}
	trailer := t.ending()
	if a.conn != nil && len(trailer) == 0 && t.req.client.multiplexed() {
		a.disconnect(core.Now(), false) // the client's next request, which may come at once, can have the connection
	}
	t.req.client.end(trailer)
}

// takeHead looks at the head of the answer, and takes off what was for the proxy.
func (t *transfer) takeHead() {
	a := t.from
	switch {
	case t.req.in != nil:
		t.settle()
	case t.req.owner:
		a.resp.Fields = calltree.WithoutMade(a.resp.Fields)
	}
}

// more returns the next piece of the content, none if it has gone to the client already.
func (t *transfer) more() ([]byte, error) {
	a := t.from
	if t.reply.bytes >= widenFrom && a.conn != nil {
		a.conn.in.widen()
	}
	if moved, err := t.splice(); moved || err != nil {
		return nil, err
	}
	return a.next()
}

// settle looks at the head of the answer. A protocol that is switched to, and a stream of events, last as long as
// they like: they hold no slot from here on.
func (t *transfer) settle() {
	a, in := t.from, t.req.in
	if a.resp.Status == http.StatusSwitchingProtocols || stays(a.resp.Fields) {
		in.served(abate.Ignored)
	}
	if t.key != nil {
		t.key.head(&a.resp)
	}
	a.resp.Fields = in.outgoing(a.resp.Fields)
}

// whole tells those who wait for it that all of the answer has come from the service: the guard, the endpoint, the
// limits, and whoever keeps it for the repeats of the request. How long a long answer took is its client's affair.
func (t *transfer) whole() {
	a := t.from
	if t.over == 0 {
		t.over = core.Now()
	}
	t.call.answerEnded(t.over)
	class := hops.ServedClass(a.resp.Status)
	if t.req.rpc {
		class = hops.ServedCode(a.verdict.code)
	}
	if class == abate.Success && t.reply.bytes > widenFrom {
		class = abate.Ignored
	}
	t.req.in.served(class) // before the store is asked, which may take its time
	switch {
	case t.req.rpc:
		t.key.completeRPC(a.verdict.code, a.trailer())
	case t.key != nil:
		t.key.complete(a.trailer())
	}
}
