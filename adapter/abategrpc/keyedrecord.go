package abategrpc

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/policy/idempotency"
)

// A stored answer is an idempotency.Response of status 200. Its first field is grpc-status, its second the type of
// the message in the body; those of the header and the trailers follow. The body of an error is its
// google.rpc.Status.
const (
	statusField   = "grpc-status"
	typeField     = "message-type"
	headerPrefix  = "h:"
	trailerPrefix = "t:"
)

// record keeps the header and the trailers that a handler sets, for the repeats of its call. It is a
// grpc.ServerTransportStream itself.
type record struct {
	out    grpc.ServerTransportStream // nil without a server around us
	client context.Context
	method string

	mu      sync.Mutex // guards what follows
	header  metadata.MD
	trailer metadata.MD
}

// Method is the call's.
func (r *record) Method() string { return r.method }

// SetHeader notes the fields and passes them on.
func (r *record) SetHeader(md metadata.MD) error {
	r.note(&r.header, md)
	return r.passed(func() error { return r.out.SetHeader(md) })
}

// SendHeader notes the fields and passes them on.
func (r *record) SendHeader(md metadata.MD) error {
	r.note(&r.header, md)
	return r.passed(func() error { return r.out.SendHeader(md) })
}

// SetTrailer notes the fields. They are part of the answer: see release.
func (r *record) SetTrailer(md metadata.MD) error {
	r.note(&r.trailer, md)
	return nil
}

// release passes the trailers on. An answer that is not recorded goes out without them.
func (r *record) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out != nil {
		_ = r.out.SetTrailer(r.trailer) // fails for a client that has left
	}
}

func (r *record) note(to *metadata.MD, md metadata.MD) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*to = metadata.Join(*to, md)
}

// passed does what is left to do for the client. One that has left does not end the work: its next try gets the answer.
func (r *record) passed(do func() error) error {
	if r.out == nil {
		return nil
	}
	if err := do(); err != nil && r.client.Err() == nil {
		return err
	}
	return nil
}

// response is the answer as it is stored. What is larger than max, and what is not protobuf, can be reported and not
// replayed.
func (r *record) response(resp any, err error, max int) idempotency.Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	cut := idempotency.Response{Status: http.StatusOK, Truncated: true}
	var message proto.Message
	if err != nil {
		message = statusOf(err).Proto()
	} else if m, ok := resp.(proto.Message); ok {
		message = m
	} else {
		return cut
	}
	body, failed := proto.Marshal(message)
	if failed != nil {
		return cut
	}
	fields := []idempotency.Field{
		{Name: statusField, Value: codeOf(err).String()},
		{Name: typeField, Value: string(message.ProtoReflect().Descriptor().FullName())},
	}
	fields = appendFields(appendFields(fields, headerPrefix, r.header), trailerPrefix, r.trailer)
	size := len(body)
	for _, f := range fields[2:] {
		size += len(f.Name) + len(f.Value)
	}
	if size > max {
		return cut
	}
	return idempotency.Response{Status: http.StatusOK, Header: fields, Body: body}
}

func appendFields(fields []idempotency.Field, prefix string, md metadata.MD) []idempotency.Field {
	for _, name := range slices.Sorted(maps.Keys(md)) {
		if name == reasonName || !serving.Replayed(name) {
			continue
		}
		for _, value := range md[name] {
			fields = append(fields, idempotency.Field{Name: prefix + name, Value: value})
		}
	}
	return fields
}

// replay gives a stored answer. Not ok: it is none of ours.
func (x *exchange) replay(r *idempotency.Response) (resp any, err error, ok bool) {
	if len(r.Header) < 2 || r.Header[0].Name != statusField || r.Header[1].Name != typeField {
		return nil, nil, false
	}
	if r.Header[0].Value == hops.OK.String() {
		resp, ok = messageOf(protoreflect.FullName(r.Header[1].Value), r.Body)
	} else {
		s := new(rpcstatus.Status)
		ok = proto.Unmarshal(r.Body, s) == nil && s.Code != 0
		err = status.ErrorProto(s)
	}
	if !ok {
		return nil, nil, false
	}
	header, trailer := metadata.MD{}, metadata.MD{replayedName: yes}
	for _, f := range r.Header[2:] {
		if name, is := strings.CutPrefix(f.Name, headerPrefix); is {
			header[name] = append(header[name], f.Value)
		} else if name, is := strings.CutPrefix(f.Name, trailerPrefix); is {
			trailer[name] = append(trailer[name], f.Value)
		}
	}
	_ = grpc.SetHeader(x.client, header)
	if x.asked {
		trailer[madeName] = noneMade[madeName]
	}
	x.trail(trailer)
	return resp, err, true
}

// messageOf makes the message. One whose type this program does not know by name becomes an Empty that has everything
// as unknown fields: the client gets the same bytes.
func messageOf(name protoreflect.FullName, body []byte) (proto.Message, bool) {
	var m proto.Message = new(emptypb.Empty)
	if t, err := protoregistry.GlobalTypes.FindMessageByName(name); err == nil {
		m = t.New().Interface()
	}
	return m, proto.Unmarshal(body, m) == nil
}
