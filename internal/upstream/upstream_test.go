package upstream_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/upstream"
)

func TestABaseURLSaysWhereToDialAndWhatToSay(t *testing.T) {
	for raw, want := range map[string]string{
		"http://payments":                        "http payments tcp payments:80",
		"http://payments:8080/v2/":               "http payments:8080 tcp payments:8080 /v2",
		"https://payments":                       "https payments tcp payments:443",
		"https://[2001:db8::1]":                  "https [2001:db8::1] tcp [2001:db8::1]:443",
		"https://[2001:db8::1]:8443":             "https [2001:db8::1]:8443 tcp [2001:db8::1]:8443",
		"h2c://payments:9000":                    "h2c payments:9000 tcp payments:9000",
		"unix:/run/app.sock":                     "http localhost unix /run/app.sock",
		"unix:///run/app.sock":                   "http localhost unix /run/app.sock",
		"http+unix:/run/app.sock?host=shop":      "http shop unix /run/app.sock",
		"h2c+unix:/run/app.sock?host=shop:80":    "h2c shop:80 unix /run/app.sock",
		"https+unix:/run/a%20b.sock?host=a.shop": "https a.shop unix /run/a b.sock",
		"unix:run/app.sock":                      "",
		"unix:/":                                 "",
		"unix://host/run/app.sock":               "",
		"unix:/run/app.sock?port=1":              "",
		"unix:/run/app.sock?host=a%0d%0aX:b":     "",
		"ftp+unix:/run/app.sock":                 "",
		"ftp://payments":                         "",
		"payments:8080":                          "",
		"http:///x":                              "",
		"http://%zz":                             "",
		"+unix:/run/app.sock":                    "",
	} {
		u, ok := upstream.Parse(raw)
		network, address := u.Address()
		got := strings.TrimSpace(strings.Join([]string{u.Scheme, u.Host, network, address, u.Base}, " "))
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v; want %q", raw, got, ok, want)
		}
	}
	if u, _ := upstream.Parse("https://[2001:db8::1]:8443"); u.Name() != "2001:db8::1" {
		t.Error(u.Name())
	}
}

// FuzzParse looks for texts that are taken and cannot be dialled.
func FuzzParse(f *testing.F) {
	f.Add("http://a:1/b")
	f.Add("unix:/run/x.sock?host=a")
	f.Add("h2c+unix:///run/x.sock")
	f.Fuzz(func(t *testing.T, raw string) {
		u, ok := upstream.Parse(raw)
		if !ok {
			return
		}
		if network, address := u.Address(); address == "" || network == "unix" && address[0] != '/' || u.Host == "" {
			t.Errorf("%q: %+v", raw, u)
		}
	})
}
