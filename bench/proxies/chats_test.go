package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/abate-go/abate/internal/needs"
)

// said is what a stream sent.
func said(c *chat, messages int) (all []byte) {
	for range messages {
		var m [chatMessage]byte
		c.next(m[:])
		all = append(all, m[:]...)
	}
	return all
}

func TestEchoesAreTakenWhateverThePiecesTheyComeIn(t *testing.T) {
	for size := 1; size <= 4*chatMessage; size++ {
		c := chat{number: 7}
		all := said(&c, 4)
		for len(all) > 0 {
			n := min(size, len(all))
			c.take(all[:n])
			all = all[n:]
		}
		if c.broken != nil || c.back != 4 || len(c.latencies) != 1 {
			t.Fatalf("pieces of %d bytes: %d came back, %d latencies, %v", size, c.back, len(c.latencies), c.broken)
		}
	}
}

func TestLostStrayAndRepeatedMessagesAreNoticed(t *testing.T) {
	ours := said(&chat{number: 7}, 3)
	others := said(&chat{number: 8}, 1)
	first, second := ours[:chatMessage], ours[chatMessage:2*chatMessage]
	for name, c := range map[string]struct {
		came []byte
		want string
	}{
		"lost": {second, "got message 1 of stream 7 where its own message 0 was due"},
		"repeated": {
			append(append([]byte(nil), first...), first...), "got message 0 of stream 7 where its own message 1",
		},
		"another's":    {others, "got message 0 of stream 8"},
		"no message":   {append([]byte{1}, first[1:]...), "got message 0"},
		"wrong length": {append([]byte{0, 0, 0, 0, 99}, first[messageHead:]...), "got message 0"},
	} {
		talker := chat{number: 7}
		said(&talker, 3)
		talker.take(c.came)
		if talker.broken == nil || !strings.Contains(talker.broken.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, talker.broken, c.want)
		}
	}
}

func TestStreamsTalkForAWhile(t *testing.T) {
	needs.Whole(t)
	server, proxy := echo(t)
	for name, addr := range map[string]string{"grpc-go": server, "ReverseProxy": proxy} {
		r, err := runTalks(t.Context(), addr, 260, time.Second) // on two connections
		if err != nil || r.broken > 0 || r.sent != r.back || r.sent < 260 || r.p50 <= 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestStreamsThatLoseMessagesOrBreakAreCounted(t *testing.T) {
	needs.Whole(t)
	for name, c := range map[string]struct {
		handler grpc.StreamHandler
		want    string
	}{
		"forgets": {func(_ any, s grpc.ServerStream) error {
			for {
				if err := s.RecvMsg(new([]byte)); err != nil {
					return nil
				}
			}
		}, ""},
		"fails":         {func(any, grpc.ServerStream) error { return errors.New("away") }, "grpc-status 2: away"},
		"ends too soon": {func(any, grpc.ServerStream) error { return nil }, "ended before"},
		"mixes up": {func(_ any, s grpc.ServerStream) error {
			var message []byte
			for {
				if err := s.RecvMsg(&message); err == io.EOF {
					return nil
				} else if err != nil {
					return err
				}
				message[len(message)-1]++
				if err := s.SendMsg(&message); err != nil {
					return err
				}
			}
		}, "where its own message 0 was due"},
	} {
		addr := serveGRPC(t, grpc.NewServer(grpc.ForceServerCodecV2(rawBytes{}), grpc.UnknownServiceHandler(c.handler)))
		r, err := runTalks(t.Context(), addr, 3, time.Second)
		if err != nil || r.sent == 0 || r.back != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if c.want == "" && (r.broken != 0 || r.why != nil) ||
			c.want != "" && (r.broken != 3 || !strings.Contains(r.why.Error(), c.want)) {
			t.Errorf("%s: %d streams broke: %v, want %q", name, r.broken, r.why, c.want)
		}
	}
}

func TestStreamsEndWhenInterrupted(t *testing.T) {
	server, _ := echo(t)
	ctx, interrupt := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer interrupt()
	if r, err := runTalks(ctx, server, 10, time.Hour); err == nil {
		t.Errorf("a result: %+v", r)
	}
}

func FuzzEchoes(f *testing.F) {
	f.Add(said(&chat{number: 7}, 3), uint8(5))
	f.Add([]byte{0, 0, 0, 0, 16}, uint8(1))
	f.Fuzz(func(t *testing.T, came []byte, size uint8) {
		c := chat{number: 7}
		sent := said(&c, 3)
		whole := strings.HasPrefix(string(sent), string(came))
		for left := came; len(left) > 0; {
			n := min(int(size)+1, len(left))
			c.take(left[:n])
			left = left[n:]
		}
		if c.back > c.sent || whole && (c.broken != nil || int(c.back) != len(came)/chatMessage) {
			t.Errorf("%d of %d messages came back in %x: %v", c.back, c.sent, came, c.broken)
		}
	})
}
