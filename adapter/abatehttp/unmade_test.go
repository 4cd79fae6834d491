package abatehttp_test

import (
	"net/http"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

// A Transport whose guard nobody has made hands on the request itself: no header is added, and nothing is done twice.
func TestARequestWithoutAGuardIsLeftAsItIs(t *testing.T) {
	for name, g := range map[string]*abate.Guard{"nil": nil, "zero": new(abate.Guard)} {
		req, err := http.NewRequest("GET", "http://s.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for way, tr := range map[string]*abatehttp.Transport{
			"Guard": {Guard: g}, "Select": {Select: func(*http.Request) *abate.Guard { return g }},
		} {
			sent := 0
			tr.Base = roundTrip(func(got *http.Request) (*http.Response, error) {
				if sent++; got != req || len(got.Header) != 0 {
					t.Errorf("%s guard by %s: sent %v", name, way, got.Header)
				}
				return &http.Response{StatusCode: 503, Body: http.NoBody}, nil
			})
			if resp, err := tr.RoundTrip(req); err != nil || resp.StatusCode != 503 || sent != 1 {
				t.Errorf("%s guard by %s: %v, %v, sent %d times", name, way, resp, err, sent)
			}
		}
	}
}
