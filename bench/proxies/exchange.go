package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// bodySize is the length of the upstream's answer in bytes.
const bodySize = 1024

// exchangeLimit bounds one request made by this command itself.
const exchangeLimit = 10 * time.Second

// smallRequest is the request that wrk makes.
func smallRequest(addr string) []byte {
	return []byte("GET / HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
}

// exchange sends a request on an open connection and reads the answer, which must be a 200 with bodySize bytes. buf
// is scratch space. It reads no more than it has to and keeps nothing, so that ten thousand connections cost little.
func exchange(conn net.Conn, request, buf []byte) error {
	if err := conn.SetDeadline(time.Now().Add(exchangeLimit)); err != nil {
		return err
	}
	if _, err := conn.Write(request); err != nil {
		return err
	}
	read, want := 0, 0
	for want == 0 || read < want {
		if read == len(buf) {
			return fmt.Errorf("the answer has more than %d bytes", len(buf))
		}
		n, err := conn.Read(buf[read:])
		read += n
		if want == 0 {
			var bad error
			if want, bad = answerLength(buf[:read]); bad != nil {
				return bad
			}
		}
		if err == io.EOF && (want == 0 || read < want) {
			return errors.New("the connection was closed before the answer was complete")
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	if read > want {
		return fmt.Errorf("%d bytes after the end of the answer", read-want)
	}
	return nil
}

// answerLength returns how many bytes the whole answer has, 0 while its header is not complete.
func answerLength(text []byte) (int, error) {
	head, _, complete := bytes.Cut(text, []byte("\r\n\r\n"))
	if !complete {
		return 0, nil
	}
	lines := strings.Split(string(head), "\r\n")
	if !strings.HasPrefix(lines[0], "HTTP/1.1 200 ") {
		return 0, fmt.Errorf("the answer is %q, not 200", lines[0])
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(name, "Content-Length") {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err != nil || n != bodySize {
			return 0, fmt.Errorf("the answer has a Content-Length of%s, not %d", value, bodySize)
		}
		return len(head) + len("\r\n\r\n") + bodySize, nil
	}
	return 0, errors.New("the answer has no Content-Length")
}

// probe asks once, on a connection of its own.
func probe(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return exchange(conn, smallRequest(addr), make([]byte, 4*bodySize))
}
