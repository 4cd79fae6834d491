package abategrpc

import (
	"context"
	"hash/maphash"
	"reflect"
	"slices"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

// numberNames are the metadata by which a retrier above says which attempt of its call this is.
var numberNames = [...]string{attemptsName, attemptCountName, "x-retry-attempty", "x-goog-api-client"}

// numberOf returns how many attempts were made before, as the caller's metadata says, and whether it says anything.
// What a server has got and only passes on was written by somebody else, and does not count.
func numberOf(ctx context.Context, md metadata.MD) (earlier int, said bool) {
	for _, name := range numberNames {
		values := md[name]
		if values == nil {
			continue
		}
		if arrived := metadata.ValueFromIncomingContext(ctx, name); slices.Equal(arrived, values) {
			continue
		}
		for _, v := range values {
			if n, ok := hops.NumberOf(name, v); ok {
				earlier, said = max(earlier, n-1), true
			}
		}
	}
	return earlier, said
}

// sign is by what a failed call is known again that somebody above makes once more: the same request value, with the
// same content, under the same context. One who passes a request value that everybody shares has a context of his own.
type sign struct {
	guard   *abate.Guard
	method  string
	ctx     context.Context
	request any
	content uint64
}

var signSeed = maphash.MakeSeed()

// digest hashes a message. Of a long one it takes the length.
func digest(message any) (uint64, bool) {
	m, ok := message.(proto.Message)
	if !ok {
		return 0, false
	}
	if n := proto.Size(m); n > longestDigest {
		return uint64(n), true
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return maphash.Bytes(signSeed, bytes), err == nil
}

// longestDigest is the size up to which a message is hashed.
const longestDigest = 64 << 10

// signOf returns the sign of a call; false if it has none that could be compared, or its context may last as long as
// the program.
func signOf(ctx context.Context, g *abate.Guard, method string, request any) (sign, bool) {
	if !isPointer(request) || !isPointer(ctx) {
		return sign{}, false
	}
	if _, ends := ctx.Deadline(); !ends && core.CallTreeOf(ctx) == nil {
		if _, arrived := metadata.FromIncomingContext(ctx); !arrived {
			return sign{}, false
		}
	}
	content, ok := digest(request)
	return sign{g, method, ctx, request, content}, ok
}

func isPointer(v any) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Pointer
}

// lookBack finds out whether somebody above has made this call before.
func (u *unary) lookBack() {
	s, ok := signOf(u.ctx, u.guard, u.method.name, u.request)
	if !ok {
		return
	}
	if u.sent, ok = u.client.failed.Take(core.Now(), []sign{s}); ok {
		u.out.earlier = 1
	}
}

// Repeated tells core.Run whether somebody above has made this call before.
func (u *unary) Repeated() bool { return u.out.earlier > 0 }

// remember notes a call that has failed: who made it may make it again. What the caller has broken off is no such
// failure.
func (u *unary) remember(err error) {
	took := u.out.earlier > 0
	if u.out.numbered || !took && (!u.begun || err == nil) {
		return
	}
	s, ok := signOf(u.ctx, u.guard, u.method.name, u.request)
	if !ok {
		return
	}
	if u.begun {
		u.sent = core.Now()
	}
	// if not the answer that was hoped for
	answered := err == nil || hops.ServedCode(hops.Code(status.Code(err))) == abate.Success
	if !answered && u.ctx.Err() != context.Canceled {
		u.client.failed.Add(u.sent, []sign{s}, took, nil)
	} else if took {
		u.client.failed.Done([]sign{s})
	}
}
