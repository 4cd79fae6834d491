package proxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	check "github.com/abate-go/abate/policy/health"
	"github.com/abate-go/abate/proxy/h2"
)

// examine asks an endpoint how it is. why is what it came to, unless that is a yes.
func (e *endpoint) examine(ctx context.Context, t *transport, c *check.Config) (r check.Result, why string) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	until := later(core.Now(), c.Timeout)
	var err error
	switch c.Kind {
	case check.HTTP:
		r, why, err = e.askHTTP(ctx, t, c, until)
	case check.GRPC:
		r, why, err = e.askGRPC(ctx, t, c, until)
	default:
		err = e.askTCP(ctx, t)
	}
	switch {
	case err == nil:
		return r, why
	case ctx.Err() != nil || err == h2.ErrTimeUp:
		return check.Silent, "no answer within " + c.Timeout.String()
	}
	return check.Silent, err.Error()
}

func (e *endpoint) askTCP(ctx context.Context, t *transport) error {
	nc, err := t.dial(ctx, e, e.announced())
	if err != nil {
		return err
	}
	return nc.Close()
}

// askHTTP sends a GET on a connection of its own: one that calls have kept warm would not show that no more are taken.
func (e *endpoint) askHTTP(ctx context.Context, t *transport, c *check.Config, until time.Duration) (
	check.Result, string, error) {
	conn, err := e.connect(ctx, t, e.announced(), core.Now(), until)
	if err != nil {
		return 0, "", err
	}
	defer conn.nc.Close()
	defer context.AfterFunc(ctx, func() { conn.nc.Close() })()
	_ = conn.nc.SetDeadline(t.clock.time(until))
	if _, err := io.WriteString(conn.nc, "GET "+e.base+c.Path+" HTTP/1.1\r\nHost: "+e.host+
		"\r\nUser-Agent: abate-health-check\r\nConnection: close\r\n\r\n"); err != nil {
		return 0, "", err
	}
	in := bufio.NewReader(io.LimitReader(conn.nc, maxHead))
	for {
		answer, err := http.ReadResponse(in, nil)
		switch {
		case turnedAway(err):
			return 0, "", &handshakeError{e.addr, err}
		case err != nil:
			return 0, "", err
		case answer.StatusCode/100 == 1:
			continue
		case answer.StatusCode/100 != 2:
			return check.Refusing, "it answered " + answer.Status, nil
		}
		return check.Passing, "", nil
	}
}

// askGRPC calls grpc.health.v1.Health/Check on one of the connections that calls use.
func (e *endpoint) askGRPC(ctx context.Context, t *transport, c *check.Config, until time.Duration) (
	check.Result, string, error) {
	conn, err := e.http2.await(ctx, t)
	if err != nil {
		return 0, "", err
	}
	head := h2.Head{Method: []byte("POST"), Scheme: []byte(strings.Replace(e.scheme, "h2c", "http", 1)),
		Authority: e.authority, Path: []byte(e.base + "/grpc.health.v1.Health/Check"), Length: -1,
		Fields: []h2.Field{{Name: []byte("content-type"), Value: []byte("application/grpc")},
			{Name: []byte("te"), Value: []byte("trailers")}}}
	var message []byte
	if c.Service != "" { // field 1, a string
		message = append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(c.Service))), c.Service...)
	}
	body := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	s, n, err := conn.Open(&head, append(body, message...), true, until)
	if err != nil {
		return 0, "", err
	}
	defer s.Close()
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { s.Interrupt(); close(stopped) })
	defer func() {
		if !stop() {
			<-stopped // the stream may be closed from here on
		}
	}()
	if n < len(body)+len(message) {
		return 0, "", errors.New("the connection takes nothing")
	}
	answer, err := s.AwaitHead(until)
	for err == nil && answer.Status < 200 {
		answer, err = s.AwaitHead(until)
	}
	if err != nil {
		return 0, "", err
	}
	if answer.Status != http.StatusOK {
		return check.Refusing, fmt.Sprintf("it answered HTTP %d", answer.Status), nil
	}
	code := rpcStatus(answer.Fields, hops.Unknown)
	content, err := takeAll(s, until)
	if err != nil {
		return 0, "", err
	}
	return servingOf(rpcStatus(s.Trailer(), code), content)
}

// takeAll reads an answer to its end, of which there cannot be much.
func takeAll(s *h2.Stream, until time.Duration) (content []byte, err error) {
	for len(content) < 1024 {
		data, err := s.Next(until)
		if content = append(content, data...); err == io.EOF {
			return content, nil
		} else if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the answer is too long for one about health")
}

// rpcStatus is the status in the fields of a gRPC answer, or otherwise if there is none.
func rpcStatus(fields []h2.Field, otherwise hops.Code) hops.Code {
	for _, f := range fields {
		if f.Is("grpc-status") {
			return hops.ParseStatus(string(f.Value))
		}
	}
	return otherwise
}

// servingOf is what an answer of grpc.health.v1 means.
func servingOf(code hops.Code, content []byte) (check.Result, string, error) {
	switch {
	case code == hops.Unimplemented:
		return check.Refusing, "it does not know grpc.health.v1", nil
	case code != hops.OK:
		return check.Refusing, "it answered " + code.String(), nil
	case len(content) < 5 || content[0] != 0 || int(binary.BigEndian.Uint32(content[1:5])) != len(content)-5:
		return 0, "", errors.New("it answered with what is no message")
	}
	if message := content[5:]; len(message) == 2 && message[0] == 1<<3 && message[1] == 1 {
		return check.Passing, "", nil
	}
	return check.Refusing, "it answered that it does not serve", nil
}

// await returns a connection that has room for a stream, as far as can be known.
func (p *http2Pool) await(ctx context.Context, t *transport) (*h2.Conn, error) {
	for {
		c, d, err := p.get(t)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-d.done:
			if d.err != nil {
				return nil, d.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
