package nginx_test

import (
	"slices"
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// Where the files beside an nginx.conf were given, a pattern for which there is none is for what others put there.
func TestAPatternMayMatchNoneOfTheFilesThatWereGiven(t *testing.T) {
	const rest = ";\nupstream a { server a:1; } }"
	lib := []string{"etc/lib/a.conf", "server { location / { proxy_pass http://a; } }"}
	for _, c := range []struct {
		text  string
		files []string
		want  int
	}{
		{"http { include custom.d/*.conf; include lib/a.conf", lib, 0},
		{"http { include custom.d/*.conf; include lib/a.conf", nil, 1}, // which names both
		{"http { include /etc/nginx/custom.d/*.conf; include lib/a.conf", lib, 1},
		{"http { include lib/b.conf; include lib/a.conf", lib, 1},
	} {
		f := read(t, source.Assume{}, append([]string{"etc/nginx.conf", c.text + rest}, c.files...)...)
		if len(f.Remarks) != c.want {
			t.Errorf("%s: %+v, want %d", c.text, f.Remarks, c.want)
		}
	}
}

// How many servers there are decides how often a request is tried, whether a list of failures has an effect, and
// whether a server can be taken out.
func TestServersThatAreNotInTheFileAreNotCounted(t *testing.T) {
	for server, want := range map[string]struct {
		known, alone bool
	}{
		"127.0.0.1:8080":                      {true, true},
		`127.0.0.1:{{env "PORT" "10444"}}`:    {true, true},
		"127.0.0.1:${PORT}":                   {true, true},
		"a:1; server b:1":                     {true, false},
		"service.consul service=http resolve": {false, false},
		"{{ .Host }}:8080":                    {false, false},
		"x:1 down;\n{{range .}}\nserver 127.0.0.1:{{.P}};\n{{end}}\nserver y:1 down": {false, false},
	} {
		f := read(t, source.Assume{}, "nginx.conf", "http { upstream a {\nserver "+server+";\n}\nserver { location / {\n"+
			"proxy_pass http://a; proxy_next_upstream http_503;\n} } }")
		l := one(t, f)
		_, known := l.Endpoints.Get()
		said := slices.ContainsFunc(f.Remarks, func(r topology.Remark) bool { return r.Rule == "F602" })
		if known != want.known || said != want.alone || l.Ejection.Consecutive.IsZero() != want.alone {
			t.Errorf("%s: endpoints %s, remarks %v, ejection %+v", server, l.Endpoints, f.Remarks, l.Ejection)
		}
	}
}
