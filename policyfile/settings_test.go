package policyfile_test

import (
	"testing"

	"github.com/abate-go/abate/policyfile"
)

func TestSettingsAreTheKeysThatChangeAPolicy(t *testing.T) {
	file, err := policyfile.Parse("p.yaml", []byte(`services:
  a:
    maxRetries: 2
    rateLimit: {limit: 10/s, burst: 3}
    routes: [{host: x.example.com, path: /a}, {path: /b}]
    upstreams: ["http://a:80"]
`))
	if err != nil {
		t.Fatal(err)
	}
	p := &file.Services[0].Policy
	got := map[string]policyfile.Setting{}
	for _, s := range p.Settings() {
		got[s.Key] = s
	}
	for key, want := range map[string]string{"maxRetries": "2", "rateLimit": "{limit: 10/s, burst: 3}",
		"routes": `[{host: x.example.com, path: "/a"}, {path: "/b"}]`, "upstreams": `["http://a:80"]`} {
		if got[key].Text != want {
			t.Errorf("%s is %q, want %q", key, got[key].Text, want)
		}
	}
	if w := got["rateLimit"].Without; w.RateLimit.Enabled() || w.MaxRetries != 2 || len(w.Routes) != 2 {
		t.Errorf("without rateLimit: %+v", w)
	}
	if parts := got["rateLimit"].Parts; len(parts) != 2 || parts[1].Key != "rateLimit.burst" {
		t.Errorf("parts of rateLimit: %+v", parts)
	}
	if _, changes := got["fallback"]; changes || !p.RateLimit.Enabled() {
		t.Error("what is not set is a setting, or the policy itself was changed")
	}
}
