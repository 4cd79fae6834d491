package abategrpc_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/inbound"
)

// stalled is a stream whose client sends nothing and takes nothing until it is told to.
type stalled struct {
	grpc.ServerStream
	ctx context.Context
	on  chan struct{}
}

func (s stalled) Context() context.Context     { return s.ctx }
func (s stalled) RecvMsg(any) error            { <-s.on; return nil }
func (s stalled) SendMsg(any) error            { <-s.on; return nil }
func (s stalled) SendHeader(metadata.MD) error { <-s.on; return nil }
func (s stalled) SetTrailer(metadata.MD)       {}

// tick is longer than an operation may take before it counts as waiting for its client.
const tick = 30 * time.Millisecond

func TestClientsThatAreSlowHoldNoSlots(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} { // with the gate's own, messages are read beside the handler
		for name, handle := range map[string]func(grpc.ServerStream) error{
			"senders": func(ss grpc.ServerStream) error { return ss.RecvMsg(new(text)) },
			"readers": func(ss grpc.ServerStream) error { return ss.SendMsg(new(text)) },
			"readers of a header": func(ss grpc.ServerStream) error {
				return ss.SendHeader(metadata.MD{})
			},
		} {
			for _, n := range []int{25, 500} {
				t.Run(fmt.Sprint(n, name, timeout), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { holdNoSlots(t, timeout, handle, n) })
				})
			}
		}
	}
}

// holdNoSlots has n clients be slow, ten of them at a time, and one fast one behind them.
func holdNoSlots(t *testing.T, timeout time.Duration, handle func(grpc.ServerStream) error, n int) {
	p, log := inbound.DefaultProtection(), new(gateLog)
	p.Observer, p.Timeout = log, timeout
	g := newGate(t, p)
	server, on := abategrpc.NewServer(g), make(chan struct{})
	for i := range n {
		go server.Stream(nil, stalled{ctx: arriving(), on: on}, &grpc.StreamServerInfo{FullMethod: "/shop.Payment/Talk",
			IsClientStream: true, IsServerStream: true}, func(_ any, ss grpc.ServerStream) error { return handle(ss) })
		if i%10 == 9 {
			time.Sleep(tick)
		}
	}
	time.Sleep(tick)
	if st := g.State().Shed; st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("%d clients are slow, and %+v", n, st)
	}
	_, err := server.Unary(arriving(), new(text), &grpc.UnaryServerInfo{FullMethod: "/shop.Payment/Charge"},
		func(context.Context, any) (any, error) { return new(text), nil })
	if err != nil {
		t.Error("the fast one gets", err)
	}
	for _, e := range log.all(inbound.RequestAdmitted) {
		if e.Delay > 0 {
			t.Errorf("one had to wait for %v", e.Delay)
		}
	}
	close(on)
	synctest.Wait()
	refused, done := len(log.all(inbound.RequestRefused)), len(log.all(inbound.RequestDone))
	if refused > 0 || done != n+1 {
		t.Errorf("%d were refused, %d done", refused, done)
	}
	if st := g.State().Shed; st.InFlight != 0 {
		t.Errorf("in the end: %+v", st)
	}
}

// A service that works holds its slot, whatever its client does later, and the gate learns the time of the work alone.
func TestAServiceThatWorksOnAMessageHoldsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := places(1, 0), new(gateLog)
		p.Observer = log
		g := newGate(t, p)
		server, on := abategrpc.NewServer(g), make(chan struct{})
		go server.Stream(nil, stalled{ctx: arriving(), on: on}, &grpc.StreamServerInfo{FullMethod: "/shop.Payment/Upload",
			IsClientStream: true}, func(_ any, ss grpc.ServerStream) error {
			_ = ss.RecvMsg(new(text))
			time.Sleep(time.Second)
			return nil
		})
		time.Sleep(time.Minute)
		if st := g.State().Shed; st.InFlight != 0 {
			t.Errorf("while the client sends: %+v", st)
		}
		close(on)
		time.Sleep(time.Second / 2)
		if st := g.State().Shed; st.InFlight != 1 {
			t.Errorf("at work: %+v", st)
		}
		time.Sleep(time.Second)
		if done := log.all(inbound.RequestDone); len(done) != 1 || done[0].Latency > time.Second+tick ||
			g.State().Shed.InFlight != 0 {
			t.Errorf("%+v", done)
		}
	})
}
