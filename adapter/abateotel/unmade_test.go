package abateotel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateotel"
)

func TestACallWithoutAGuardPasses(t *testing.T) {
	down := errors.New("down")
	for name, g := range map[string]*abate.Guard{"nil": nil, "zero": new(abate.Guard)} {
		tel, err := abateotel.New(abateotel.Config{})
		if err != nil {
			t.Fatal(err)
		}
		tel.Add(g)
		sent := 0
		v, err := abateotel.Do(t.Context(), tel, g, func(context.Context) (int, error) { sent++; return 7, down })
		if v != 7 || !errors.Is(err, down) || sent != 1 {
			t.Errorf("%s: %d, %v, sent %d times", name, v, err, sent)
		}
	}
}
