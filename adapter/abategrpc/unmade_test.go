package abategrpc_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
)

func TestACallWithoutAGuardPasses(t *testing.T) {
	down := errors.New("down")
	for name, g := range map[string]*abate.Guard{"nil": nil, "zero": new(abate.Guard)} {
		sent := 0
		err := abategrpc.UnaryClientInterceptor(g)(t.Context(), "/shop.Payment/Get", nil, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				sent++
				return down
			})
		if sent != 1 || !errors.Is(err, down) {
			t.Errorf("%s: sent %d times, %v", name, sent, err)
		}
	}
}
