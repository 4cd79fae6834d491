package proxy_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// Whether a call is hedged does not depend on how its client cuts it into segments: the message may come behind the
// head.
func TestAGRPCCallWhoseMessageComesBehindItsHeadIsHedged(t *testing.T) {
	came, cancelled := make(chan struct{}), make(chan struct{}, 1)
	s := serveGRPC(t, func(c *rpc) error {
		if c.first("grpc-previous-rpc-attempts") == "" {
			close(came)
			<-c.Context().Done()
			cancelled <- struct{}{}
			return nil
		}
		hold(t, came) // else it could win before the other has set out
		return repeatAll(c)
	})
	r := start(t, single([]string{s.url}, "hedge: {delay: 20ms}", "attemptTimeout: 20s"))
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(nc, http2.ClientPreface)
	f := http2.NewFramer(nc, nc)
	_ = f.WriteSettings()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "s.test"},
		{":path", "/a.B/C"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {keyed[0], keyed[1]}} {
		_ = enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = f.WritePing(false, [8]byte{1})
	awaitFrame(t, f, "the head has been read", func(f http2.Frame) bool {
		p, ok := f.(*http2.PingFrame)
		return ok && p.IsAck()
	})
	_ = f.WriteData(1, true, []byte("\x00\x00\x00\x00\x05hello"))
	d := awaitFrame(t, f, "an answer", func(f http2.Frame) bool {
		return f.Header().Type == http2.FrameData
	}).(*http2.DataFrame)
	if got := string(d.Data()); got != "\x00\x00\x00\x00\x05hello" {
		t.Errorf("the answer is %q", got)
	}
	wait(t, "the slow one hears that it has lost", cancelled)
}

func awaitFrame(t *testing.T, f *http2.Framer, what string, wanted func(http2.Frame) bool) http2.Frame {
	t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
		if wanted(frame) {
			return frame
		}
	}
}

// The client of a stream may wait for the service to speak first, and may say as much as it likes.
func TestAStreamThatMightBeHedgedNeedNotSpeakFirst(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	s := serveGRPC(t, func(c *rpc) error {
		_ = c.SendHeader(metadata.Pairs("x-first", "1"))
		_ = c.send("welcome")
		return repeatAll(c)
	})
	r := start(t, single([]string{s.url}, "hedge: {delay: 20ms}", "retryMethods: [/a.B/*]", "attemptTimeout: 20s"))
	cc := dialGRPC(t, r.addr)
	c := converse(t, cc, "/a.B/Chat").hear("welcome").say("1").hear("1")
	_ = c.CloseSend()
	c.ends(codes.OK)
	c = converse(t, cc, "/a.B/Chat").say("early").hear("welcome").hear("early").say("late").hear("late")
	_ = c.CloseSend()
	c.ends(codes.OK)
	if n := len(s.seen()); n != 2 {
		t.Errorf("the service got %d calls", n)
	}
}

// A client may leave while its message is waited for: nobody has failed, and the next call finds everything as it was.
func TestAClientThatLeavesBeforeItsMessageHarmsNobody(t *testing.T) {
	s := serveGRPC(t, repeatAll)
	r := start(t, single([]string{s.url}, "hedge: {delay: 20ms}", "retryMethods: [/a.B/*]", counting))
	cc := dialGRPC(t, r.addr)
	for range 20 {
		ctx, leave := context.WithCancel(t.Context())
		converseIn(ctx, t, cc, "/a.B/Chat")
		leave()
	}
	if c := call(t, cc, "/a.B/C", "hello"); c.code != codes.OK || c.reply != "hello" {
		t.Errorf("%+v", c)
	}
	unharmed(t, r)
}

// A copy that is still on its way when its client's time is over asks nothing of the client: its memory may be
// another's by then.
func TestACopyThatOutlivesItsCallLeavesTheClientAlone(t *testing.T) {
	s := serveGRPC(t, func(c *rpc) error {
		<-c.Context().Done()
		return c.Context().Err()
	})
	r := start(t, single([]string{s.url}, "hedge: {delay: 1ms}", "retryMethods: [/a.B/*]", "retryBudget: {disabled: true}",
		"circuitBreaker: {disabled: true}"))
	cc := dialGRPC(t, r.addr)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 40 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				callIn(ctx, cc, "/a.B/C", "hello")
				cancel()
			}
		})
	}
	wg.Wait()
	g, _ := r.proxy.Policies().Lookup("s")
	if n := g.State().Panics; n != 0 {
		t.Errorf("%d panics", n)
	}
}
