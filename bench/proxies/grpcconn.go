package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// messageHead is what gRPC puts before a message: not compressed, and its length.
	messageHead = 5
	// streamWindow is what the peer may send ahead on a stream of ours, connWindow on all of them together.
	streamWindow = 1 * mib
	connWindow   = 16 * mib
)

// grpcConn is a client's connection that speaks HTTP/2 as far as gRPC needs it, and nothing else: a load generator that
// costs as much as what it measures measures itself. One goroutine reads, any may write.
type grpcConn struct {
	nc        net.Conn
	in        *bufio.Reader
	authority string

	mu       sync.Mutex // guards all below, and writing frames
	frames   *http2.Framer
	out      *bufio.Writer
	heads    *hpack.Encoder
	head     bytes.Buffer
	last     uint32           // stream
	streams  uint32           // that may be open at once
	initial  int64            // window of a new stream
	window   int64            // what may be sent on all streams together
	credit   map[uint32]int64 // what may be sent on each
	waiting  []outgoing       // for a window, in order
	received uint32           // since the last update of our window
}

// outgoing is a message, or the end of a stream, that waits for a window.
type outgoing struct {
	id   uint32
	data []byte
	end  bool
}

// event is what a frame said about a stream.
type event struct {
	id    uint32
	data  []byte // valid until the next call
	ended bool
	// status is what the head or the trailer said: a gRPC code, empty when it was in neither.
	status string
	// broken says why the stream is worth nothing.
	broken error
}

// dialGRPC opens a connection and waits for the peer's settings.
func dialGRPC(ctx context.Context, addr string) (*grpcConn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &grpcConn{
		nc: nc, in: bufio.NewReaderSize(nc, 32*kib), out: bufio.NewWriterSize(nc, 32*kib), authority: addr,
		streams: math.MaxUint32, initial: 65535, window: 65535, credit: make(map[uint32]int64),
	}
	c.heads = hpack.NewEncoder(&c.head)
	c.frames = http2.NewFramer(c.out, c.in)
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.frames.SetReuseFrames()
	if err := c.shakeHands(); err != nil {
		nc.Close()
		return nil, fmt.Errorf("%s does not speak HTTP/2: %w", addr, err)
	}
	return c, nil
}

func (c *grpcConn) shakeHands() error {
	c.bound(exchangeLimit)
	_, err := c.out.WriteString(http2.ClientPreface)
	err = errors.Join(err,
		c.frames.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}, http2.Setting{
			ID: http2.SettingInitialWindowSize, Val: streamWindow,
		}),
		c.frames.WriteWindowUpdate(0, connWindow-65535), c.out.Flush())
	if err != nil {
		return err
	}
	f, err := c.frames.ReadFrame()
	if err != nil {
		return err
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok || settings.IsAck() {
		return fmt.Errorf("its first frame is %v, not its settings", f.Header())
	}
	return c.control(f)
}

// bound limits how long reading and writing may take from now on.
func (c *grpcConn) bound(d time.Duration) { _ = c.nc.SetDeadline(time.Now().Add(d)) } // it fails when reading will, too

// open begins a call and returns its stream. The caller holds c.mu.
func (c *grpcConn) open(method, timeout string) (uint32, error) {
	c.head.Reset()
	field := func(name, value string) { _ = c.heads.WriteField(hpack.HeaderField{Name: name, Value: value}) } // to memory
	field(":method", "POST")
	field(":scheme", "http")
	field(":path", method)
	field(":authority", c.authority)
	field("content-type", "application/grpc")
	field("user-agent", "grpc-go/1.80.0")
	field("te", "trailers")
	if timeout != "" {
		field("grpc-timeout", timeout)
	}
	if c.last == 0 {
		c.last = 1
	} else {
		c.last += 2
	}
	c.credit[c.last] = c.initial
	return c.last, c.frames.WriteHeaders(http2.HeadersFrameParam{
		StreamID: c.last, BlockFragment: c.head.Bytes(), EndHeaders: true,
	})
}

// send sends a message, or as much later as the peer's windows want. What is for a stream that the peer has ended goes
// nowhere. The caller holds c.mu.
func (c *grpcConn) send(id uint32, data []byte, end bool) error {
	if _, open := c.credit[id]; !open {
		return nil
	}
	if len(c.waiting) > 0 || !c.fits(id, data) {
		c.waiting = append(c.waiting, outgoing{id, bytes.Clone(data), end})
		return nil
	}
	return c.put(id, data, end)
}

func (c *grpcConn) fits(id uint32, data []byte) bool {
	n := int64(len(data))
	return n == 0 || n <= c.window && n <= c.credit[id]
}

func (c *grpcConn) put(id uint32, data []byte, end bool) error {
	c.window -= int64(len(data))
	c.credit[id] -= int64(len(data))
	return c.frames.WriteData(id, end, data)
}

// sendWaiting sends what the windows now let through.
func (c *grpcConn) sendWaiting() error {
	for len(c.waiting) > 0 {
		w := c.waiting[0]
		if _, open := c.credit[w.id]; open {
			if !c.fits(w.id, w.data) {
				return nil
			}
			if err := c.put(w.id, w.data, w.end); err != nil {
				return err
			}
		}
		c.waiting = c.waiting[1:]
	}
	return nil
}

// next reads frames until one says something about a stream of ours. It sends all that has been written before it
// waits.
func (c *grpcConn) next() (event, error) {
	for {
		if c.in.Buffered() == 0 {
			c.mu.Lock()
			err := c.out.Flush()
			c.mu.Unlock()
			if err != nil {
				return event{}, err
			}
		}
		f, err := c.frames.ReadFrame()
		if err != nil {
			return event{}, err
		}
		e := event{id: f.Header().StreamID}
		switch f := f.(type) {
		case *http2.DataFrame:
			e.data, e.ended = f.Data(), f.StreamEnded()
			err = c.took(f.Length)
		case *http2.MetaHeadersFrame:
			e.ended = f.StreamEnded()
			e.status, e.broken = statusOf(f)
		case *http2.RSTStreamFrame:
			if !c.isOpen(e.id) { // whoever answers early may say so
				continue
			}
			e.ended, e.broken = true, fmt.Errorf("the stream was reset: %v", f.ErrCode)
		default:
			if err := c.control(f); err != nil {
				return event{}, err
			}
			continue
		}
		if e.ended {
			c.mu.Lock()
			delete(c.credit, e.id)
			c.mu.Unlock()
		}
		return e, err
	}
}

func (c *grpcConn) isOpen(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.credit[id]
	return open
}

// statusOf reads a head or a trailer.
func statusOf(f *http2.MetaHeadersFrame) (status string, broken error) {
	if http := f.PseudoValue("status"); http != "" && http != "200" {
		return "", fmt.Errorf("the answer has the HTTP status %s, not 200", http)
	}
	var message string
	for _, field := range f.RegularFields() {
		switch field.Name {
		case "grpc-status":
			status = field.Value
		case "grpc-message":
			message = field.Value
		}
	}
	switch {
	case f.StreamEnded() && status == "":
		broken = errors.New("the answer ends without a grpc-status")
	case status != "" && status != "0":
		broken = fmt.Errorf("the answer has the grpc-status %s: %s", status, message)
	}
	return status, broken
}

// took gives the peer back what it sent, in large pieces. The window of a stream is far more than one here ever gets.
func (c *grpcConn) took(n uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.received += n; c.received < connWindow/4 {
		return nil
	}
	n, c.received = c.received, 0
	return c.frames.WriteWindowUpdate(0, n)
}

// control handles a frame that concerns the connection.
func (c *grpcConn) control(f http2.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if err := f.ForeachSetting(c.set); err != nil {
			return err
		}
		return errors.Join(c.frames.WriteSettingsAck(), c.sendWaiting(), c.out.Flush())
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		return errors.Join(c.frames.WritePing(true, f.Data), c.out.Flush())
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int64(f.Increment)
		} else if _, open := c.credit[f.StreamID]; open {
			c.credit[f.StreamID] += int64(f.Increment)
		}
		return c.sendWaiting()
	case *http2.GoAwayFrame:
		return fmt.Errorf("the peer closes the connection: %v %s", f.ErrCode, f.DebugData())
	}
	return nil
}

func (c *grpcConn) set(s http2.Setting) error {
	switch s.ID {
	case http2.SettingMaxConcurrentStreams:
		c.streams = s.Val
	case http2.SettingInitialWindowSize:
		for id := range c.credit {
			c.credit[id] += int64(s.Val) - c.initial
		}
		c.initial = int64(s.Val)
	case http2.SettingHeaderTableSize:
		c.heads.SetMaxDynamicTableSizeLimit(min(s.Val, 4096))
	}
	return nil
}

// fillMessage makes data a gRPC message.
func fillMessage(data []byte) {
	data[0] = 0
	binary.BigEndian.PutUint32(data[1:messageHead], uint32(len(data)-messageHead))
}

// isMessage reports whether data, from its start, is one message of this length.
func isMessage(data []byte) bool {
	return data[0] == 0 && binary.BigEndian.Uint32(data[1:messageHead]) == uint32(len(data)-messageHead)
}
