package hops_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
)

func TestLongOwnersAreCut(t *testing.T) {
	text := string(hops.AppendAllowance(nil, core.Allowance{Left: 1, Owner: strings.Repeat(`"`, 5000)}))
	if a, ok := hops.ParseAllowance(text); !ok || len(text) > 300 || a.Owner != strings.Repeat(`"`, 128) {
		t.Errorf("%q", text)
	}
}

func TestOneValueIsOneItem(t *testing.T) {
	if a, ok := hops.ParseAllowance("2, 1"); ok {
		t.Errorf("%+v", a)
	}
	if b, ok := hops.ParseMade("2, 1"); ok {
		t.Errorf("%+v", b)
	}
	if b, ok := hops.ParseMade("2;final"); !ok || b != (core.Below{Said: true, Made: 2, Final: true}) {
		t.Errorf("%+v, %v", b, ok)
	}
}

func TestParsingAndWritingAllocateNothing(t *testing.T) {
	values, made, pushed := []string{`2;owner="payment-service"`, `1;owner="x";call="y"`}, []string{"2;final"},
		[]string{"250"}
	room := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		a, _ := hops.LeastAllowance(values)
		room = hops.AppendAllowance(room[:0], a)
		room = hops.AppendMade(room[:0], hops.MostMade(made))
		room = hops.AppendPushback(room[:0], hops.ParsePushback(pushed))
		d, _ := hops.TimeLimitOf("grpc-timeout", "1500m")
		room = hops.AppendGRPCTimeout(room[:0], d)
		hops.AttemptOf("grpc-previous-rpc-attempts", "1")
		hops.ParseStatus("14")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTimeLimitsOfEnvoy(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0": 0, "1": time.Millisecond, "1500": 1500 * time.Millisecond, "999999999999999999": 24 * time.Hour,
		"": -1, "1.5": -1, "-1": -1, "+1": -1, "9999999999999999999": -1, "1s": -1, " 1": -1,
	} {
		got, ok := hops.TimeLimitOf("X-ENVOY-Expected-Rq-Timeout-Ms", value)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v, %v", value, got, ok)
		}
	}
	if _, ok := hops.TimeLimitOf("X-Timeout", "1"); ok {
		t.Error("another header is a time limit")
	}
}

func TestCodesAndWhatTheySay(t *testing.T) {
	for value, want := range map[string]hops.Code{
		"0": hops.OK, "14": hops.Unavailable, "08": hops.ResourceExhausted, "99": 99,
		"": hops.Unknown, "-1": hops.Unknown, "+1": hops.Unknown, "UNAVAILABLE": hops.Unknown, "4294967296": hops.Unknown,
		"1 ": hops.Unknown,
	} {
		if got := hops.ParseStatus(value); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	for code, want := range map[hops.Code]abate.Class{
		hops.OK:                abate.Success,
		3:                      abate.Success,
		5:                      abate.Success,
		6:                      abate.Success,
		hops.PermissionDenied:  abate.Success,
		9:                      abate.Success,
		10:                     abate.Success,
		11:                     abate.Success,
		hops.Unimplemented:     abate.Success,
		hops.Unauthenticated:   abate.Success,
		hops.Canceled:          abate.Failure,
		hops.Unknown:           abate.Failure,
		hops.DeadlineExceeded:  abate.Failure,
		hops.Internal:          abate.Failure,
		hops.Unavailable:       abate.Failure,
		hops.DataLoss:          abate.Failure,
		hops.ResourceExhausted: abate.Overload,
		17:                     abate.Failure,
		math.MaxUint32:         abate.Failure,
	} {
		if got := hops.ServedCode(code); got != want {
			t.Errorf("%v: %v", code, got)
		}
	}
	if hops.Unavailable.String() != "UNAVAILABLE" || hops.OK.String() != "OK" || hops.Code(99).String() != "CODE(99)" {
		t.Errorf("%v, %v, %v", hops.Unavailable, hops.OK, hops.Code(99))
	}
	for status, want := range map[int]hops.Code{
		400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14, 500: 2, 200: 2, 418: 2,
	} {
		if got := hops.CodeOfHTTP(status); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
	for status, want := range map[int]abate.Class{
		200: abate.Success, 404: abate.Success, 408: abate.Success, 429: abate.Overload, 500: abate.Failure,
		503: abate.Overload, 504: abate.Failure, 599: abate.Failure,
	} {
		if got := hops.ServedClass(status); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}

func policyOf(t *testing.T, p abate.Policy) *abate.Guard {
	t.Helper()
	g, err := abate.New("a", p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestWhatACodeIsToACall(t *testing.T) {
	g := policyOf(t, abate.Policy{})
	listed := policyOf(t, abate.Policy{RetryOn: []string{"ABORTED"}})
	final := core.Below{Said: true, Made: 1, Final: true}
	for name, c := range map[string]struct {
		guard *abate.Guard
		code  hops.Code
		again bool
		push  hops.Pushback
		below core.Below
		want  abate.Outcome
	}{
		"good": {g, hops.OK, true, hops.Pushback{}, core.Below{Said: true, Made: 2}, abate.Outcome{
			Below: core.Below{Said: true, Made: 2},
		}},
		"good, pushed back": {
			g, hops.OK, true, hops.Pushback{Never: true}, final, abate.Outcome{Below: core.Below{Said: true, Made: 1}},
		},
		"business": {
			g, 5, true, hops.Pushback{Never: true}, final, abate.Outcome{Below: core.Below{Said: true, Made: 1}},
		},
		"may pass": {
			g, hops.Unavailable, true, hops.Pushback{}, core.Below{}, abate.Outcome{Class: abate.Failure},
		},
		"may not be sent again": {
			g, hops.Unavailable, false, hops.Pushback{}, core.Below{}, abate.Outcome{Class: abate.Failure, NoRetry: true},
		},
		"does not pass": {
			g, hops.Internal, true, hops.Pushback{}, core.Below{}, abate.Outcome{Class: abate.Failure, NoRetry: true},
		},
		"overload": {
			g, hops.ResourceExhausted, true, hops.Pushback{}, core.Below{}, abate.Outcome{Class: abate.Overload},
		},
		"pushed back": {g, hops.Unavailable, true, hops.Pushback{Wait: time.Second}, core.Below{},
			abate.Outcome{Class: abate.Overload, RetryAfter: time.Second}},
		"never again, for all": {g, hops.Unavailable, true, hops.Pushback{Never: true}, core.Below{}, abate.Outcome{
			Class: abate.Failure, NoRetry: true, Below: core.Below{Final: true},
		}},
		"final": {
			g, hops.Unavailable, true, hops.Pushback{}, final, abate.Outcome{Class: abate.Failure, NoRetry: true, Below: final},
		},
		"listed": {
			listed, 10, true, hops.Pushback{}, core.Below{}, abate.Outcome{Class: abate.Failure},
		},
		"not listed any more": {
			listed, hops.Unavailable, true, hops.Pushback{}, core.Below{}, abate.Outcome{Class: abate.Failure, NoRetry: true},
		},
		"a code that nobody has made": {
			g, 77, true, hops.Pushback{}, core.Below{}, abate.Outcome{Class: abate.Failure, NoRetry: true},
		},
	} {
		if got := hops.ClassifyCode(c.guard, c.code, c.again, c.push, c.below, nil); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestWhichCallsMayBeRepeated(t *testing.T) {
	listed := abate.Policy{RetryMethods: []string{"GET", "/shop.Payment/Get", "/shop.Stock/*", "/*"}}
	for name, c := range map[string]struct {
		policy abate.Policy
		method string
		keyed  bool
		want   bool
	}{
		"by default":           {abate.Policy{}, "/shop.Payment/Charge", false, false},
		"with a key":           {abate.Policy{}, "/shop.Payment/Charge", true, true},
		"codes are consent":    {abate.Policy{RetryOn: []string{"UNAVAILABLE"}}, "/shop.Payment/Charge", false, true},
		"statuses are not":     {abate.Policy{RetryOn: []string{"503", "OK"}}, "/shop.Payment/Charge", false, false},
		"listed":               {listed, "/shop.Payment/Get", false, true},
		"another of its kind":  {listed, "/shop.Payment/GetAll", false, false},
		"a service":            {listed, "/shop.Stock/Get", false, true},
		"a name like it":       {listed, "/shop.Stocks/Get", false, false},
		"a service, no method": {listed, "/shop.Stock/", false, false},
	} {
		if got := hops.RepeatableCall(&c.policy, c.method, c.keyed); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
