package hops_test

import (
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/hops"
)

func TestWhatAStatusSays(t *testing.T) {
	for status, want := range map[int]struct {
		class  abate.Class
		passes bool
		served abate.Class
	}{
		100: {}, 200: {}, 304: {}, 400: {}, 404: {}, 409: {}, 422: {},
		408: {abate.Failure, true, abate.Success},
		429: {abate.Overload, true, abate.Overload},
		500: {abate.Failure, true, abate.Failure},
		501: {abate.Failure, false, abate.Failure},
		502: {abate.Failure, true, abate.Failure},
		503: {abate.Overload, true, abate.Overload},
		504: {abate.Failure, true, abate.Failure},
		599: {abate.Failure, false, abate.Failure},
		999: {abate.Failure, false, abate.Failure},
	} {
		class, passes := hops.JudgeStatus(status)
		if class != want.class || passes != want.passes || hops.ServedClass(status) != want.served {
			t.Errorf("%d: %v, passes %v; to a gate %v", status, class, passes, hops.ServedClass(status))
		}
		if failed := hops.StatusFailed(status); failed != (want.class != abate.Success) {
			t.Errorf("%d: failed %v", status, failed)
		}
	}
}

func TestAPatternCoversTheMethodsOfItsService(t *testing.T) {
	for _, c := range []struct {
		pattern, method string
		want            bool
	}{
		{"/shop.Payment/Get", "/shop.Payment/Get", true},
		{"/shop.Payment/Get", "/shop.Payment/GetAll", false},
		{"/shop.Payment/*", "/shop.Payment/Get", true},
		{"/shop.Payment/*", "/shop.PaymentPlan/Get", false},
		{"/shop.Payment/*", "/shop.Payment/", false},
		{"/*", "/shop.Payment/Get", false},
		{"*", "/shop.Payment/Get", false},
		{"", "/shop.Payment/Get", false},
	} {
		if got := hops.Covers(c.pattern, c.method); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.method, got)
		}
	}
}
