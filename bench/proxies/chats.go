package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// chatEvery is how often a message goes out on each stream.
	chatEvery = time.Second
	// chatTicks is how often in that time a connection sends, each time on another part of its streams.
	chatTicks = 50
	// chatMessage is the length of a message: the number of its stream, and its own.
	chatMessage = messageHead + 16
)

// chat is one gRPC stream in both directions, on which every message must come back, once and in order.
type chat struct {
	number    uint64
	id        uint32 // on its connection, 0 before it begins
	sent      uint64
	back      uint64
	sentAt    time.Time // the last one
	partial   [chatMessage]byte
	have      int
	finished  bool // by this side
	over      bool // on both
	broken    error
	latencies []time.Duration
}

// next is the message to send now.
func (c *chat) next(message []byte) {
	fillMessage(message)
	binary.BigEndian.PutUint64(message[messageHead:], c.number)
	binary.BigEndian.PutUint64(message[messageHead+8:], c.sent)
	c.sent++
	c.sentAt = time.Now()
}

// take reads what came back: whole messages or parts of them.
func (c *chat) take(data []byte) {
	for len(data) > 0 && c.broken == nil {
		n := copy(c.partial[c.have:], data)
		data = data[n:]
		if c.have += n; c.have < chatMessage {
			return
		}
		c.have = 0
		stream, message := binary.BigEndian.Uint64(c.partial[messageHead:]),
			binary.BigEndian.Uint64(c.partial[messageHead+8:])
		if !isMessage(c.partial[:]) || stream != c.number || message != c.back {
			c.broken = fmt.Errorf("stream %d: got message %d of stream %d where its own message %d was due", c.number, message,
				stream, c.back)
			return
		}
		if c.back++; c.back == c.sent {
			c.latencies = append(c.latencies, time.Since(c.sentAt))
		}
	}
}

// hear notes what came. A stream ends well only when this side has ended it.
func (c *chat) hear(e event) {
	c.over = e.ended
	if c.broken == nil && e.broken != nil {
		c.broken = fmt.Errorf("stream %d: %w", c.number, e.broken)
	}
	switch c.take(e.data); {
	case !e.ended || c.broken != nil:
	case !c.finished:
		c.broken = fmt.Errorf("stream %d was ended before this side did", c.number)
	case e.status != "0":
		c.broken = fmt.Errorf("stream %d ended without a grpc-status", c.number)
	}
}

// talk is one connection with its streams.
type talk struct {
	conn  *grpcConn
	mu    sync.Mutex
	chats []chat
	byID  map[uint32]*chat
	err   error
}

// talkResult is what happened on all streams.
type talkResult struct {
	sent, back uint64
	broken     int // streams that ended otherwise than they should
	why        error
	p50, p99   time.Duration
}

// runTalks keeps n streams open for a while. Each begins within the first chatEvery, sends a message every chatEvery,
// and is ended from this side.
func runTalks(ctx context.Context, addr string, n int, duration time.Duration) (talkResult, error) {
	var r talkResult
	talks := make([]*talk, (n+streamsEach-1)/streamsEach)
	defer func() {
		for _, t := range talks {
			if t != nil {
				t.conn.nc.Close()
			}
		}
	}()
	for i := range talks {
		conn, err := dialGRPC(ctx, addr)
		if err != nil {
			return r, err
		}
		t := &talk{conn: conn, chats: make([]chat, min(n-i*streamsEach, streamsEach)), byID: make(map[uint32]*chat)}
		if talks[i] = t; len(t.chats) > int(conn.streams) {
			return r, fmt.Errorf("%s allows %d streams on a connection, not %d", addr, conn.streams, len(t.chats))
		}
		for k := range t.chats {
			t.chats[k].number = uint64(i*streamsEach + k)
		}
		conn.bound(duration + chatEvery + 2*exchangeLimit)
	}
	var all sync.WaitGroup
	for _, t := range talks {
		all.Go(func() { t.run(ctx, duration) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	return sumUp(talks), nil
}

func sumUp(talks []*talk) (r talkResult) {
	var latencies []time.Duration
	for _, t := range talks {
		for k := range t.chats {
			c := &t.chats[k]
			r.sent, r.back = r.sent+c.sent, r.back+c.back
			latencies = append(latencies, c.latencies...)
			if c.broken == nil && !c.over {
				c.broken = fmt.Errorf("stream %d did not end: %w", c.number, t.err)
			}
			if c.broken != nil {
				if r.broken++; r.why == nil {
					r.why = c.broken
				}
			}
		}
	}
	if len(latencies) > 0 {
		slices.Sort(latencies)
		r.p50, r.p99 = quantile(latencies, 0.50), quantile(latencies, 0.99)
	}
	return r
}

// run talks on one connection until its streams have ended.
func (t *talk) run(ctx context.Context, duration time.Duration) {
	defer context.AfterFunc(ctx, func() { t.conn.nc.Close() })()
	sending, stop := context.WithTimeout(ctx, duration+chatEvery)
	var writer sync.WaitGroup
	writer.Go(func() { t.write(sending) })
	err := t.read()
	stop()
	writer.Wait()
	t.err = errors.Join(err, t.err)
}

// write sends until ctx ends, then ends all streams. On a slow machine a turn may come late, but it comes. When the
// connection breaks the reader sees it, too.
func (t *talk) write(ctx context.Context) {
	tick := time.NewTicker(chatEvery / chatTicks)
	defer tick.Stop()
	start := time.Now()
	for turn := 0; ; {
		select {
		case <-ctx.Done():
			t.err = t.each(0, 1, t.finish)
			return
		case <-tick.C:
		}
		for due := int(time.Since(start) / (chatEvery / chatTicks)); turn < due; turn++ {
			if t.err = t.each(turn%chatTicks, chatTicks, t.say); t.err != nil {
				return
			}
		}
	}
}

// each does something for every step-th stream, and sends it.
func (t *talk) each(first, step int, do func(*chat) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	for k := first; k < len(t.chats); k += step {
		if c := &t.chats[k]; !c.over {
			if err := do(c); err != nil {
				return err
			}
		}
	}
	return t.conn.out.Flush()
}

// begin opens a stream that is not open yet.
func (t *talk) begin(c *chat) (err error) {
	if c.id == 0 {
		c.id, err = t.conn.open(chatMethod, "")
		t.byID[c.id] = c
	}
	return err
}

func (t *talk) say(c *chat) error {
	if err := t.begin(c); err != nil {
		return err
	}
	var message [chatMessage]byte
	c.next(message[:])
	return t.conn.send(c.id, message[:], false)
}

func (t *talk) finish(c *chat) error {
	if err := t.begin(c); err != nil { // on a machine so slow that its turn never came
		return err
	}
	c.finished = true
	return t.conn.send(c.id, nil, true)
}

// read takes what comes until all streams have ended.
func (t *talk) read() error {
	for ended := 0; ended < len(t.chats); {
		e, err := t.conn.next()
		if err != nil {
			return err
		}
		t.mu.Lock()
		if c := t.byID[e.id]; c == nil {
			err = fmt.Errorf("something came on stream %d, which is not open", e.id)
		} else if c.hear(e); e.ended {
			ended++
		}
		t.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
