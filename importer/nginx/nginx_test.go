package nginx_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/nginx"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func old() source.Assume { return source.Assume{Versions: map[string]string{"nginx": "1.22.1"}} }

func read(t *testing.T, assume source.Assume, files ...string) topology.Form {
	t.Helper()
	var docs []source.Document
	for i := 0; i < len(files); i += 2 {
		d := source.Document{File: files[i], Data: []byte(files[i+1])}
		if !nginx.Recognise(d) {
			t.Errorf("%s is not recognised", files[i])
		}
		docs = append(docs, d)
	}
	return nginx.Read(docs, assume)
}

// one returns the layer of the only call.
func one(t *testing.T, f topology.Form) topology.Layer {
	t.Helper()
	if len(f.Calls) != 1 || len(f.Calls[0].Layers) != 1 {
		t.Fatalf("want one call with one layer:\n%s", f.YAML())
	}
	return f.Calls[0].Layers[0]
}

const (
	get  = topology.Safe
	post = topology.Unsafe
)

// The cases were measured on nginx 1.22; tests/behaviour measures them again.
func TestTriesAreThoseOfTheRealProgram(t *testing.T) {
	for name, c := range map[string]struct {
		servers int
		words   string
		version string
		outcome topology.Outcome
		method  topology.Methods
		want    int
		longest time.Duration
	}{
		"503, default list": {3, "", "", topology.S503, get, 1, 0},
		"GET reset":         {3, "", "", topology.ResetSent, get, 3, 0},
		"GET hang":          {3, "", "", topology.Hang, get, 3, 3 * time.Second},
		"POST reset":        {3, "", "", topology.ResetSent, post, 1, 0},
		"POST hang":         {3, "", "", topology.Hang, post, 1, time.Second},
		"POST refused":      {3, "", "", topology.Refused, post, 3, 0},
		"POST 503, non-idempotent": {3, "proxy_next_upstream error non_idempotent http_503;", "", topology.S503, post, 3,
			0},
		"POST 503":                   {3, "proxy_next_upstream error http_503;", "", topology.S503, post, 1, 0},
		"GET 503":                    {3, "proxy_next_upstream http_503;", "", topology.S503, get, 3, 0},
		"GET 500":                    {3, "proxy_next_upstream http_500;", "", topology.S500, get, 3, 0},
		"GET 429":                    {3, "proxy_next_upstream http_429;", "", topology.S429, get, 3, 0},
		"a list has no defaults":     {3, "proxy_next_upstream http_503;", "", topology.ResetSent, get, 1, 0},
		"off":                        {3, "proxy_next_upstream off;", "", topology.Refused, get, 1, 0},
		"tries 2, hang":              {3, "proxy_next_upstream_tries 2;", "", topology.Hang, get, 2, 2 * time.Second},
		"more tries than servers":    {2, "proxy_next_upstream_tries 9;", "", topology.Hang, get, 2, 2 * time.Second},
		"a limit of time cuts none":  {3, "proxy_next_upstream_timeout 1500ms;", "", topology.Hang, get, 2, 2 * time.Second},
		"one server":                 {1, "proxy_next_upstream error http_503 non_idempotent;", "", topology.S503, get, 1, 0},
		"a kept connection":          {1, "", "1.30.1", topology.ResetSent, get, 2, 0},
		"a kept connection, POST":    {1, "", "1.30.1", topology.ResetSent, post, 1, 0},
		"a kept connection, refused": {1, "", "1.30.1", topology.Refused, get, 1, 0},
		"a kept connection, 1.0":     {1, "proxy_http_version 1.0;", "1.30.1", topology.ResetSent, get, 1, 0},
		"a short body without a buffer": {3, "proxy_next_upstream error non_idempotent; proxy_request_buffering off;", "",
			topology.ResetSent, post, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assume := old()
			if c.version != "" {
				assume.Versions["nginx"] = c.version
			}
			l := one(t, read(t, assume, "nginx.conf", "http { upstream orders {\n"+
				strings.Join([]string{"server 10.0.0.1:80;", "server 10.0.0.2:80;", "server 10.0.0.3:80;"}[:c.servers], "\n")+
				"}\nproxy_read_timeout 1s; server { listen 80; location / { "+c.words+" proxy_pass http://orders; } } }"))
			if got := l.Tries(c.outcome, c.method); got.N != c.want || !got.Known {
				t.Errorf("%+v, want %d", got, c.want)
			}
			if got, ends := l.Longest(c.outcome, c.method); got != c.longest || !ends {
				t.Errorf("longest %v, %v; want %v", got, ends, c.longest)
			}
		})
	}
}

func TestSettingsAreInheritedAndKnowTheirPlace(t *testing.T) {
	f := read(t, old(), "gw/nginx.conf", `# edge
http {
    upstream orders { server 10.0.0.1:80 max_fails=3 fail_timeout=30s max_conns=50; server 10.0.0.2:80 max_conns=50;
        server 10.0.0.9:80 down; } proxy_read_timeout 5s;
    server {
        server_name shop.example;
        proxy_connect_timeout 1s;
        location /api/ {
            proxy_next_upstream error timeout http_503;
            proxy_next_upstream_tries "2";
            proxy_pass http://orders/v1/;
        }
    }
}
`)
	l := one(t, f)
	for _, c := range []struct{ got, want string }{
		{l.PerTry.String(), "5s (inherited from http; gw/nginx.conf:4:55)"},
		{l.Connect.String(), "1s (inherited from server; gw/nginx.conf:7:31)"},
		{l.Overall.String(), "none (default of nginx 1.22.1; gw/nginx.conf:11:13)"},
		{l.Endpoints.String(), "2 (gw/nginx.conf:3:5)"},
		{l.Repeats[0].Tries.String(), "2 (gw/nginx.conf:10:39)"},
		{l.Repeats[3].At.String() + l.Repeats[3].Word, "gw/nginx.conf:9:47http_503"},
		{l.Ejection.Consecutive.String(), "3 (gw/nginx.conf:3:42)"},
		{l.Ejection.Base.String(), "30s (gw/nginx.conf:3:54)"},
		{l.Limits.Connections.String(), "100 (gw/nginx.conf:3:104)"},
		{l.Cancels.String(), "true (default of nginx 1.22.1; gw/nginx.conf:2:1)"},
		{l.Match.Host + " " + l.Match.Path, "shop.example /api/*"},
		{f.Calls[0].From + " " + f.Calls[0].To, "gw orders"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestIncludesAreReadWhereTheyStand(t *testing.T) {
	f := read(t, old(), "etc/nginx.conf", "http { include /etc/nginx/mime.types; proxy_read_timeout 7s; include "+
		"/etc/nginx/conf.d/*.conf;\n"+
		"include missing.conf; }",
		"etc/conf.d/a.conf", "server { listen 80; location / { include snippets/retry.conf; proxy_pass "+
			"http://orders:8080; } }",
		"etc/conf.d/snippets/retry.conf", "proxy_next_upstream_tries 4;\nproxy_next_upstream error;")
	l := one(t, f)
	if l.PerTry.V != 7*time.Second || l.Repeats[0].At.File != "etc/conf.d/snippets/retry.conf" {
		t.Errorf("%s", f.YAML())
	}
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F702" || f.Remarks[0].At.String() != "etc/nginx.conf:2:9" {
		t.Errorf("remarks %+v", f.Remarks)
	}
}

func TestWhereARequestGoes(t *testing.T) {
	for _, c := range []struct{ directives, want string }{
		{"location / { proxy_pass http://orders:8080; }", "orders"},
		{"location / { proxy_pass http://orders.shop.svc.cluster.local:8080/x; }", "orders.shop"},
		{"location / { proxy_pass http://127.0.0.1:8080; }", "localhost-8080"},
		{"set $up orders; location / { proxy_pass http://$up:80$request_uri; }", "orders"},
		{"location / { proxy_pass http://orders$request_uri; }", "orders"},
		{"location / { proxy_pass http://$host; }", ""},
		{"location / { if ($x) { grpc_pass grpc://orders:50051; } }", "orders"},
		{`location ~ \.php$ { fastcgi_pass unix:/run/php-fpm.sock; }`, "php-fpm"},
		{"location / { uwsgi_pass app:3031; }", "app"},
		{"location /a { location /a/b { proxy_pass http://u; } }", "u"},
		{"location / { proxy_pass http://two; }", "two"},
	} {
		f := read(t, old(), "x.conf", "upstream u { server 10.0.0.1; server 10.0.0.2; }\nupstream two { server a:1; "+
			"server b:1; }\nserver { listen 80; "+
			c.directives+" }")
		to := ""
		if len(f.Calls) == 1 {
			to = f.Calls[0].To
		}
		if to != c.want || (c.want == "") != (len(f.Remarks) > 0) {
			t.Errorf("%s: to %q, want %q; remarks %+v", c.directives, to, c.want, f.Remarks)
		}
		for _, s := range f.Services {
			if s.Name == "two" && strings.Join(s.Aliases, " ") != "a b" {
				t.Errorf("aliases %v", s.Aliases)
			}
		}
	}
}

func TestLocationsStandInTheOrderInWhichTheyAreChosen(t *testing.T) {
	f := read(t, old(), "x.conf", `server {
 location / { proxy_pass http://a:1; }
 location /orders/ { proxy_pass http://a:1; }
 location ~ \.php$ { proxy_pass http://a:1; }
 location ^~ /static/ { proxy_pass http://a:1; }
 location = /x { proxy_pass http://a:1; }
}`)
	var got []string
	for _, c := range f.Calls {
		got = append(got, c.Layers[0].Match.Path)
		if c.Layers[0].Choice != "nginx x" {
			t.Errorf("choice %q", c.Layers[0].Choice)
		}
	}
	if want := `/x /static/* ~\.php$ /orders/* /*`; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
}

func TestGRPCCallsAreRepeatedOnlyUnsent(t *testing.T) {
	conf := "upstream u { server 10.0.0.1:1; server 10.0.0.2:1; }\nserver { listen 80 http2; grpc_read_timeout 3s; " +
		"location / { grpc_pass grpc://u; WORDS } }"
	l := one(t, read(t, old(), "x.conf", strings.Replace(conf, "WORDS", "", 1)))
	if a, b := l.Tries(topology.ResetSent, get).N, l.Tries(topology.Refused, post).N; a != 1 || b != 2 ||
		l.PerTry.V != 3*time.Second {
		t.Errorf("sent %d, refused %d, per try %s", a, b, l.PerTry)
	}
	l = one(t, read(t, old(), "x.conf", strings.Replace(conf, "WORDS",
		"grpc_next_upstream error timeout non_idempotent;", 1)))
	if got := l.Tries(topology.Hang, post).N; got != 2 {
		t.Errorf("%d tries of a hang", got)
	}
}

func TestConnectionsArePassedOn(t *testing.T) {
	l := one(t, read(t, old(), "nginx.conf", "stream { upstream db { server 10.0.0.1:5432; server 10.0.0.2:5432; }\n"+
		"server { listen 5432; proxy_connect_timeout 1s; proxy_pass db; } }"))
	if l.Tries(topology.Refused, post).N != 2 || l.Tries(topology.ResetSent, get).N != 1 || l.PerTry.V != 10*time.Minute {
		t.Errorf("%+v", l)
	}
}

func TestWhatIsWrongOrWithoutEffectIsRemarked(t *testing.T) {
	for _, c := range []struct{ conf, rule, at, fix string }{
		{"upstream u { server 10.0.0.1; }\nserver { location / {\n proxy_next_upstream error http_503; proxy_pass " +
			"http://u; } }",
			"F602", "x.conf:3:2", "add a server"},
		{"server { location / { proxy_next_upstream error http_505; proxy_pass http://a:1; } }", "F601", "x.conf:1:49",
			"did you mean http_50"},
		{"server { location / { proxy_read_timeout 5sec; proxy_pass http://a:1; } }", "F702", "x.conf:1:42", "correct it"},
		{"{{ if .Gateway }}\nserver { location / { proxy_pass http://a:1; } }\n{{ end }}", "F702", "x.conf:1:1", "rendered"},
		{"server { location / { proxy_pass http://a:1; }", "F702", "x.conf:1:47", "close the block"},
		{"server { location / { proxy_pass http://a:1; } } }", "F702", "x.conf:1:50", "remove it"},
	} {
		f := read(t, old(), "x.conf", c.conf)
		found := false
		for _, r := range f.Remarks {
			found = found || r.Rule == c.rule && r.At.String() == c.at && strings.Contains(r.Fix, c.fix)
		}
		if !found || len(f.Calls) != 1 {
			t.Errorf("%s:\n%+v, %d calls", c.conf, f.Remarks, len(f.Calls))
		}
	}
}

func TestServersOfATemplateAreUnknown(t *testing.T) {
	l := one(t, read(t, old(), "x.conf", "upstream u {\n{{ range .Servers }}\nserver {{ .Host }}:80;\n{{ end }}\n}\n"+
		"server { location / { proxy_pass http://u; } }"))
	if got := l.Tries(topology.Refused, get); got.Known {
		t.Errorf("%+v, want unknown", got)
	}
}

func TestOtherFilesAreNotNginx(t *testing.T) {
	for _, text := range []string{"kind: Pod\nserver: {x: 1}\n", "resource \"x\" \"y\" {\n  server = 1\n}\n",
		"int main() { return 0; }\n",
		"global\n  maxconn 1\nbackend a\n  server s 1.1.1.1:80\n", ""} {
		docs, _ := source.YAML("f", []byte(text))
		d := source.Document{File: "f", Data: []byte(text)}
		if len(docs) > 0 {
			d = docs[0]
		}
		if nginx.Recognise(d) {
			t.Errorf("%q is taken for nginx", text)
		}
	}
}

func TestWhatIsQuotedInATextForPeopleIsNoConfiguration(t *testing.T) {
	const conf = "server { listen 80; location / { proxy_pass http://a:1; } }\n"
	for file, want := range map[string]bool{"nginx.conf": true, "README.md": false, "deploy/nginx.txt": false, "x": true} {
		if got := nginx.Recognise(source.Document{File: file, Data: []byte(conf)}); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

func TestAJobOfNomadThatHoldsAConfigurationIsNotNginx(t *testing.T) {
	const conf = "server {\n  listen 80;\n  location / {\n    proxy_pass http://a:1;\n  }\n}\n"
	for text, want := range map[string]bool{
		"job web {\n  datacenters = [\"dc1\"]\n  template {\n    data = <<EOF\n" + conf + "EOF\n  }\n}\n": false,
		"# The web.\n\njob \"web\" {\n  type = \"service\"\n  data = <<EOF\n" + conf + "EOF\n}\n":         false,
		"locals {\n  conf = <<EOF\n" + conf + "EOF\n}\n":                                                  false,
		"resource \"aws_instance\" \"web\" {\n  user_data = <<EOF\n" + conf + "EOF\n}\n":                  false,
		"upstream a {\n  server a:1;\n}\n" + conf:                                                         true,
		"events {\n}\nhttp {\n  map $a $b {\n    default 1;\n  }\n" + conf + "}\n":                        true,
		"init_by_lua_block {\n  x = 1\n}\n" + conf:                                                        true,
		"map $a $b {\n  x = 1;\n}\n" + conf:                                                               true,
		"server {\n  listen 80;\n  content_by_lua_block {\n    x = 1\n  }\n  location / {\n  }\n}\n":      true,
		"geo $a {\n  default 1;\n}\n# a = b\n" + conf:                                                     true,
	} {
		if got := nginx.Recognise(source.Document{File: "f", Data: []byte(text)}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// As in the template of a router that many clusters have.
func TestNamesOfATemplateAreNobody(t *testing.T) {
	f := read(t, old(), "x.conf.template", "{{/* one\n line; and { another\n*/}}\nserver { location / { proxy_pass "+
		"http://be_{{ .Name }}; }\n location /b { proxy_pass http://b:1; } }\n")
	if len(f.Calls) != 1 || f.Calls[0].To != "b" || len(f.Remarks) != 1 ||
		f.Remarks[0].At.String() != "x.conf.template:4:34" {
		t.Errorf("%s", f.YAML())
	}
}

func FuzzConfigurationsAreReadWithoutAPanic(f *testing.F) {
	f.Add("http { upstream u { server a:1 max_fails=2; keepalive 4; } server { location ~ ^/x { proxy_pass "+
		"http://u$uri; } } }", "include a;")
	f.Add("server { access_by_lua_block { if a then { } end } {{ if }} location / { proxy_pass {{x}}; } }",
		"include \"*\"; ${x} 'a\\'b';")
	f.Add("stream { server { proxy_pass $x; listen 1; } } include b;", "include a; include a; # }")
	f.Fuzz(func(t *testing.T, a, b string) {
		form := nginx.Read([]source.Document{{File: "a", Data: []byte(a)}, {File: "b", Data: []byte(b)}}, source.Assume{})
		for _, c := range form.Calls {
			if c.To == "" || c.At.Line < 1 {
				t.Errorf("a call to %q at %v", c.To, c.At)
			}
			for i := range c.Layers {
				for _, o := range topology.AllOutcomes() {
					c.Layers[i].Tries(o, topology.Safe)
				}
			}
		}
	})
}

// A file of cloud-init writes a site of nginx, among much else, and is none.
func TestATextThatBeginsWithAKeyOfYAMLIsNoConfiguration(t *testing.T) {
	const site = "    server {\n      listen 80;\n      location / {\n        proxy_pass http://a;\n      }\n    }\n"
	for text, want := range map[string]bool{
		"#cloud-config\n# a relay\n\nwrite_files:\n  - path: /etc/nginx/a.conf\n    content: |\n" + site: false,
		"users:\n" + site:                    false,
		"# users: all\n" + site:              true,
		"user www;\nhttp {\n" + site + "}\n": true,
	} {
		if got := nginx.Recognise(source.Document{File: "a.tftpl", Data: []byte(text)}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestLinesThatTerraformFillsInNeedNoSemicolon(t *testing.T) {
	for line, remarks := range map[string]int{`${join("\n", local.tokens)}`: 0, "default a": 1} {
		f := read(t, source.Assume{}, "n.conf", "map $a $b {\n  "+line+"\n}\nserver {\n  listen 80;\n  location / {\n"+
			"    proxy_pass http://a;\n  }\n}\n")
		if len(f.Remarks) != remarks || len(f.Calls) != 1 {
			t.Errorf("%s: %+v", line, f.Remarks)
		}
	}
}
