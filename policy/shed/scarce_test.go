package shed_test

import (
	"testing"

	"github.com/abate-go/abate/policy/shed"
)

func TestSlotsAreScarceWhileFewerThanAQuarterIsFree(t *testing.T) {
	fixed := func(n int) shed.Config { return shed.Config{Concurrency: shed.Fixed, MaxConcurrency: n, MaxQueue: 5} }
	shadow := fixed(4)
	shadow.Shadow = true
	for _, row := range []struct {
		name    string
		c       shed.Config
		arrived int
		want    bool
	}{
		{"off", shed.Config{}, 100, false},
		{"nothing is learned yet", shed.Config{Concurrency: shed.BBR}, 100, false},
		{"shadow mode", shadow, 9, false},
		{"none taken", fixed(1), 0, false},
		{"the only one", fixed(1), 1, true},
		{"three of four", fixed(4), 3, false},
		{"all of four", fixed(4), 4, true},
		{"75 of 100", fixed(100), 75, false},
		{"76 of 100", fixed(100), 76, true},
		{"somebody waits", fixed(4), 5, true},
	} {
		s := shed.New(row.c)
		for range row.arrived {
			send(s, 0, shed.Request{Priority: shed.CriticalPlus})
		}
		if got := s.Scarce(); got != row.want {
			t.Errorf("%s: scarce %v", row.name, got)
		}
	}
}
