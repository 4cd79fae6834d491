package abategrpc

import (
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/abate-go/abate"
)

// errTooLate is what becomes of a hedge that is sent when its call has just ended. Nobody sees it.
var errTooLate = abate.Ignore(errors.New("abategrpc: no hedge: the call has ended"))

// copies returns a message of its own for the request and the reply of one more copy: the caller may have his back, and
// use them, while a copy that has lost is still on its way out. A nil request means that he has them back already.
func (u *unary) copies() (req, reply any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.finished {
		return nil, nil
	}
	return cloned(u.request), u.kind.fresh()
}

// isMessage reports whether v is a protobuf message, of which copies can be made.
func isMessage(v any) bool {
	m, _ := protoOf(v)
	return m != nil && m.ProtoReflect().IsValid()
}

// protoOf returns v as a message; old tells that it is one of the first version of the Go API, as grpc-go's own codec
// still takes.
func protoOf(v any) (m proto.Message, old bool) {
	switch m := v.(type) {
	case proto.Message:
		return m, false
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m), true
	}
	return nil, false
}

// as returns m in the form that its original had.
func as(m proto.Message, old bool) any {
	if old {
		return protoadapt.MessageV1Of(m)
	}
	return m
}

func cloned(v any) any {
	m, old := protoOf(v)
	return as(proto.Clone(m), old)
}

// kind is what kind of message a reply is. It is asked before the first copy is sent: the codec that reads an answer
// into a message resets all of it, so that from then on the message cannot even tell that.
type kind struct {
	of  protoreflect.MessageType
	old bool
}

func kindOf(v any) kind {
	m, old := protoOf(v)
	return kind{m.ProtoReflect().Type(), old}
}

// fresh is an empty message of that kind.
func (k kind) fresh() any { return as(k.of.New().Interface(), k.old) }

// replace makes to what from is.
func replace(to, from any) {
	t, _ := protoOf(to)
	f, _ := protoOf(from)
	proto.Reset(t)
	proto.Merge(t, f)
}
