package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ask sends a Metadata request and returns the cluster's id and how many brokers take part. A port that is open says
// nothing: a broker that does not yet take part can make no topic.
func ask(addr string) (cluster string, brokers int, err error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", 0, err
	}
	// Metadata is request 3. Version 5 is the last whose reading needs no more than this: correlation, no client id, no
	// topics, none created.
	request := []byte{0, 3, 0, 5, 0, 0, 0, 7, 0xff, 0xff, 0, 0, 0, 0, 0}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return "", 0, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return "", 0, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 1<<20 {
		return "", 0, fmt.Errorf("an answer of %d bytes is none of Kafka's", n)
	}
	answer := make([]byte, n)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return "", 0, err
	}
	return metadata(answer)
}

// metadata reads the answer to the request: correlation, throttle time, brokers, cluster id.
func metadata(answer []byte) (cluster string, brokers int, err error) {
	r := reader{rest: answer}
	if correlation := r.int32(); correlation != 7 {
		return "", 0, fmt.Errorf("an answer to request %d, not to 7", correlation)
	}
	r.int32()
	count := r.int32()
	for i := int32(0); i < count && r.err == nil; i++ {
		r.int32()  // node
		r.string() // host
		r.int32()  // port
		r.string() // rack
	}
	return r.string(), int(count), r.err
}

// reader reads Kafka's old encoding. After an error it reads zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n > len(r.rest) {
		r.err = errors.Join(r.err, io.ErrUnexpectedEOF)
		return make([]byte, n)
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) int32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }

func (r *reader) string() string {
	n := int16(binary.BigEndian.Uint16(r.take(2)))
	if n < 0 {
		return ""
	}
	return string(r.take(int(n)))
}
