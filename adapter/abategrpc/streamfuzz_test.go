package abategrpc_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/bulkhead"
)

// play is a stream as grpc-go would bring it, without a network: its server fails after so many messages, or answers.
type play struct {
	ctx      context.Context
	heard    []string
	closed   bool
	patience int  // messages that it takes before it fails; negative: it answers
	header   bool // it has sent one before that
	answers  int
}

func (p *play) failed() bool { return p.patience >= 0 && len(p.heard) >= p.patience }

func (p *play) Header() (metadata.MD, error) {
	if p.header || !p.failed() {
		return metadata.MD{}, nil
	}
	return nil, nil
}
func (p *play) Trailer() metadata.MD     { return nil }
func (p *play) Context() context.Context { return p.ctx }
func (p *play) CloseSend() error         { p.closed = true; return nil }

func (p *play) SendMsg(m any) error {
	if p.failed() {
		return io.EOF
	}
	p.heard = append(p.heard, m.(*text).Value)
	return nil
}

func (p *play) RecvMsg(m any) error {
	if p.patience < 0 && p.answers == 0 {
		return io.EOF // also when it has been cancelled since
	}
	if p.ctx.Err() != nil {
		return status.FromContextError(p.ctx.Err()).Err()
	}
	if p.failed() || p.patience >= 0 {
		p.patience = 0 // it was not going to answer
		return status.Error(codes.Unavailable, "no")
	}
	p.answers--
	m.(*text).Value = "answer"
	return nil
}

// FuzzStream has a caller do what the bytes say on a stream whose tries fail as the others say. Whatever happens, the
// try that answers has been sent what the caller sent, in order and once; no try follows an answer; and all permits
// come back.
func FuzzStream(f *testing.F) {
	f.Add([]byte("ssscr"), []byte{0, 1, 255}, false)
	f.Add([]byte("ssssssssssssssssr"), []byte{2, 5, 7}, false)
	f.Add([]byte("shscrr"), []byte{128, 3}, true)
	f.Add([]byte("sbsbsbcr"), []byte{1, 1, 1, 1}, false)
	f.Add([]byte("rx"), []byte{9, 9}, true)
	f.Add([]byte("sosr"), []byte{1}, false)
	f.Add([]byte("sxr"), []byte{1, 255}, false)
	f.Fuzz(func(t *testing.T, does, fails []byte, one bool) {
		p := eager()
		p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}
		g := guard(t, p)
		client := abategrpc.NewClient(g)
		client.MaxBuffered = 400
		var tries []*play
		open := func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (
			grpc.ClientStream, error) {
			s := &play{ctx: ctx, patience: -1, answers: 2}
			if n := len(tries); n < len(fails) && fails[n] != 255 {
				s.patience, s.header = int(fails[n]&15), fails[n]&128 != 0
			}
			if one {
				s.answers = 1
			}
			tries = append(tries, s)
			return s, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: !one}
		ss, err := client.Stream(ctx, desc, nil, "/shop.Payment/Talk", open)
		if err != nil {
			t.Fatal(err)
		}
		d := &dialogue{t: t, ss: ss, cancel: cancel, tries: &tries}
		for _, c := range does[:min(len(does), 60)] {
			d.do(c)
		}
		d.finish()
		if n := g.State().Bulkhead.InFlight; d.ended && n != 0 {
			t.Errorf("%d places are still taken", n)
		}
		cancel()
		eventually(t, func() bool { return g.State().Bulkhead.InFlight == 0 })
		if len(tries) > 4 {
			t.Errorf("%d tries", len(tries))
		}
	})
}

// dialogue is a caller, and what it may expect.
type dialogue struct {
	t        *testing.T
	ss       grpc.ClientStream
	cancel   func()
	tries    *[]*play
	sent     []string
	closed   bool
	left     bool
	ended    bool // by an error, or all was read
	answered int  // tries there were when something came back
}

func (d *dialogue) do(c byte) {
	if d.ended || d.closed && (c == 's' || c == 'b') {
		return
	}
	word := string('a' + rune(len(d.sent)%26))
	switch c {
	case 'b': // much
		word = strings.Repeat(word, 150)
		fallthrough
	case 's':
		switch err := d.ss.SendMsg(wrapperspb.String(word)); err {
		case nil:
			d.sent = append(d.sent, word)
		case io.EOF: // then nothing may be repeated any more: the caller stops here
			d.closed = true
			d.answered = len(*d.tries)
		default:
			d.t.Errorf("sending: %v", err)
		}
	case 'c':
		d.closed = true
		_ = d.ss.CloseSend()
	case 'h':
		if md, err := d.ss.Header(); md != nil && d.answered == 0 {
			d.answered = len(*d.tries)
		} else if err != nil {
			d.t.Errorf("header: %v", err)
		}
	case 'o':
		_ = d.ss.Context()
		d.answered = max(d.answered, len(*d.tries))
	case 'x':
		d.left = true
		d.cancel()
	case 'r':
		d.read()
	}
}

func (d *dialogue) read() {
	before := len(*d.tries)
	err := d.ss.RecvMsg(new(text))
	last := (*d.tries)[len(*d.tries)-1]
	if d.answered > 0 && len(*d.tries) != before {
		d.t.Errorf("try %d after something had come back", len(*d.tries))
	}
	switch err {
	case nil:
		d.answered = len(*d.tries)
		if !slices.Equal(last.heard, d.sent) {
			d.t.Errorf("the server heard %q, and was sent %q", last.heard, d.sent)
		}
		if last.closed != d.closed {
			d.t.Errorf("closed %v, not %v", last.closed, d.closed)
		}
	case io.EOF:
		d.ended = true
	default:
		d.ended = true
		if c := status.Code(err); c != codes.Unavailable && !d.left {
			d.t.Errorf("the stream ends with %v", err)
		}
		if again := d.ss.RecvMsg(new(text)); again == nil {
			d.t.Errorf("after %v comes a message", err)
		}
	}
}

// finish reads to the end, as callers have to, unless it has left.
func (d *dialogue) finish() {
	for range 5 {
		if !d.left && !d.ended {
			d.read()
		}
	}
	if !d.left && !d.ended {
		d.t.Error("the stream does not end")
	}
}
