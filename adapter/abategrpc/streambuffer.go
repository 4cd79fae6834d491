package abategrpc

import (
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// replay holds what was sent on a stream, as bytes: callers use their messages, and the buffers in them, again.
type replay struct {
	limit    int // in bytes; negative for none
	lost     bool
	bytes    []byte
	messages []replayed
}

type replayed struct {
	end int // in bytes
	is  protoreflect.MessageType
	old bool
}

// perMessage is what a message costs besides its bytes: a million empty ones need memory too.
const perMessage = 32

// add keeps a message. If it cannot be kept, nothing is: the stream cannot be repeated any more.
func (r *replay) add(v any) {
	if r.lost {
		return
	}
	m, old := protoOf(v)
	if m == nil || !m.ProtoReflect().IsValid() || len(r.bytes)+(len(r.messages)+1)*perMessage+proto.Size(m) > r.limit {
		r.lose()
		return
	}
	bytes, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(r.bytes, m)
	if err != nil {
		r.lose()
		return
	}
	r.bytes = bytes
	r.messages = append(r.messages, replayed{len(bytes), m.ProtoReflect().Type(), old})
}

// lose lets everything go.
func (r *replay) lose() { r.lost, r.bytes, r.messages = true, nil, nil }

var errUnread = errors.New("abategrpc: a message that was sent cannot be read back")

// each has every message sent, in order, until send fails.
func (r *replay) each(send func(any) error) error {
	begin := 0
	for _, k := range r.messages {
		m := k.is.New().Interface()
		if proto.Unmarshal(r.bytes[begin:k.end], m) != nil {
			return errUnread
		}
		if err := send(as(m, k.old)); err != nil {
			return err
		}
		begin = k.end
	}
	return nil
}
