package report_test

import (
	"math"
	"testing"

	"github.com/abate-go/abate/sim/report"
)

func TestNumbersAreWrittenForPeople(t *testing.T) {
	tests := []struct {
		got, want string
	}{
		{report.Number(0), "0"}, {report.Number(1.2), "1.2"}, {report.Number(3.987), "3.99"}, {report.Number(12.34), "12.3"},
		{report.Number(812.4), "812"}, {report.Number(39997.2), "39,997"}, {report.Number(-1234567), "-1,234,567"},
		{report.Number(0.0627), "0.063"}, {report.Number(99.97), "100"}, {report.Number(-0.000001), "0"},
		{report.Number(math.NaN()), "–"}, {report.Number(math.Inf(1)), "–"},
		{report.Percent(0), "0 %"}, {report.Percent(1), "100 %"}, {report.Percent(0.35), "35 %"},
		{report.Percent(0.0095), "0.95 %"},
		{report.Percent(0.9905), "99.05 %"}, {report.Percent(0.0825), "8.2 %"}, {report.Percent(0.00001), "< 0.01 %"},
		{report.Percent(0.99999), "> 99.99 %"}, {report.Percent(1.2), "120 %"}, {report.Percent(math.NaN()), "–"},
		{report.Percent(math.MaxFloat64), "–"},
		{report.Seconds(0), "0 s"}, {report.Seconds(0.00035), "350 µs"}, {report.Seconds(0.0042), "4.2 ms"},
		{report.Seconds(0.85), "850 ms"},
		{report.Seconds(0.9997), "1 s"}, {report.Seconds(8.216), "8.22 s"}, {report.Seconds(47.38), "47.4 s"},
		{report.Seconds(119.96), "2 min"},
		{report.Seconds(125), "2 min 5 s"}, {report.Seconds(7199.9), "120 min"}, {report.Seconds(7500), "2 h 5 min"},
		{report.Seconds(360000), "100 h"},
		{report.Seconds(math.Inf(1)), "–"},
		{report.Quantity(3.98, "x"), "3.98 ×"}, {report.Quantity(1234.5, "1/s"), "1,234/s"},
		{report.Quantity(1234.5, "count"), "1,234"},
		{report.Quantity(0.5, "share"), "50 %"}, {report.Quantity(0.5, "s"), "500 ms"}, {report.Quantity(0.5, ""), "0.5"},
	}
	for _, tt := range tests {
		if got := plain(tt.got); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
