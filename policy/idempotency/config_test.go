package idempotency_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

func TestDefaults(t *testing.T) {
	if (idempotency.Config{}).WithDefaults().Enabled() {
		t.Error("the zero Config is on")
	}
	got := idempotency.Config{Methods: []string{"POST"}}.WithDefaults()
	want := idempotency.Config{
		Methods:      []string{"POST"},
		Retention:    24 * time.Hour,
		Lease:        30 * time.Second,
		MaxBody:      65536,
		MaxAnswer:    4 << 20,
		MaxMemory:    64 << 20,
		MaxFile:      1 << 30,
		WhenFull:     "shorten",
		MinRetention: 15 * time.Minute,
		WhenAway:     "closed",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(got.WithDefaults()) != fmt.Sprint(want) {
		t.Errorf("defaults = %+v, want %+v", got, want)
	}
	set := idempotency.Config{Methods: []string{"PUT"}, Retention: 1, Lease: 2, MaxBody: 3, MaxAnswer: 5, MaxMemory: 4,
		WhenAway: "open", Fleet: true, Required: true,
		Scope: "everybody", KeepServerErrors: true, File: "f", MaxFile: 6, WhenFull: "refuse", MinRetention: 7}
	if fmt.Sprint(set.WithDefaults()) != fmt.Sprint(set) {
		t.Errorf("what was set changed to %+v", set.WithDefaults())
	}
}

func TestEnabledNeedsMethods(t *testing.T) {
	post := []string{"POST"}
	for _, tt := range []struct {
		config idempotency.Config
		want   bool
	}{
		{idempotency.Config{}, false},
		{idempotency.Config{Required: true}, false},
		{idempotency.Config{Methods: post}, true},
		{idempotency.Config{Methods: post, Disabled: true}, false},
	} {
		if got := tt.config.Enabled(); got != tt.want {
			t.Errorf("%+v: enabled = %v, want %v", tt.config, got, tt.want)
		}
	}
}

func TestAnswersThatAreForGoodAreKept(t *testing.T) {
	for status, want := range map[int]bool{
		200: true,
		201: true,
		204: true,
		303: true,
		400: true,
		402: true,
		404: true,
		409: true,
		422: true,
		499: true,
		401: false,
		407: false,
		408: false,
		425: false,
		429: false,
		500: false,
		502: false,
		503: false,
		504: false,
		599: false,
		0:   false,
		-1:  false,
		100: false,
		101: false,
		199: false,
		600: false,
		999: false,
	} {
		if got := idempotency.Keeps(status); got != want {
			t.Errorf("%d: kept = %v, want %v", status, got, want)
		}
	}
}

func TestGRPCAnswersThatAreForGoodAreKept(t *testing.T) {
	kept := map[uint32]bool{0: true, 3: true, 5: true, 6: true, 7: true, 9: true, 11: true}
	for code := range uint32(20) {
		if got := idempotency.KeepsCode(code); got != kept[code] {
			t.Errorf("code %d: kept %v, want %v", code, got, kept[code])
		}
	}
}

func TestKeepingServerErrorsIsAnOption(t *testing.T) {
	plain, keeping := idempotency.Config{}, idempotency.Config{KeepServerErrors: true}
	for status := range 700 {
		if want := idempotency.Keeps(status); plain.Keeps(status) != want {
			t.Errorf("%d: kept %v without the option", status, !want)
		}
		if want := idempotency.Keeps(status) || status >= 500 && status < 600; keeping.Keeps(status) != want {
			t.Errorf("%d: kept %v with the option", status, !want)
		}
	}
	added := map[uint32]bool{1: true, 2: true, 4: true, 12: true, 13: true, 14: true, 15: true}
	for code := range uint32(20) {
		if plain.KeepsCode(code) != idempotency.KeepsCode(code) ||
			keeping.KeepsCode(code) != (idempotency.KeepsCode(code) || added[code]) {
			t.Errorf("code %d: kept %v without the option, %v with it", code, plain.KeepsCode(code), keeping.KeepsCode(code))
		}
	}
}

func TestTheFloorOfAStoreThatMustNotForgetIsEndless(t *testing.T) {
	shorten := idempotency.Config{Methods: []string{"POST"}, Retention: time.Minute}.WithDefaults()
	refuse := idempotency.Config{Methods: []string{"POST"}, WhenFull: "refuse"}.WithDefaults()
	if shorten.Floor() != time.Minute || refuse.Floor() < 1<<62 {
		t.Errorf("%v and %v", shorten.Floor(), refuse.Floor())
	}
}
