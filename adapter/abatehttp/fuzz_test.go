package abatehttp_test

import (
	"net/http"
	"testing"
)

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{
		"1", "-1", "1000000000000000000", "soon", "Fri, 20 Nov 2026 08:00:30 GMT", "", "0x10", "१",
	} {
		f.Add(v, "Fri, 20 Nov 2026 08:00:00 GMT")
		f.Add("2", v)
	}
	f.Fuzz(func(t *testing.T, v, date string) {
		d := asked(t, 503, http.Header{"Retry-After": {v}, "Date": {date}})
		if d < 0 {
			t.Errorf("%q gives %v", v, d)
		}
		if _, err := http.ParseTime(date); err != nil {
			return // then our own clock counts, and goes on between two looks
		}
		if more := asked(t, 503, http.Header{"Retry-After": {v, v, "1"}, "Date": {date}}); more < d {
			t.Errorf("%q gives %v alone and %v in company", v, d, more)
		}
	})
}
