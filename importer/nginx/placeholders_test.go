package nginx_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/nginx"
	"github.com/abate-go/abate/importer/source"
)

// filledIn reads a configuration whose placeholders an environment fills in.
func filledIn(t *testing.T, file, text string) (to, read, remarks string) {
	t.Helper()
	f := nginx.Read([]source.Document{{File: file, Data: []byte(text)}}, source.Assume{
		Environments: map[string]map[string]string{"web": {"ORDERS_HOST": "orders", "WAIT": "7s"}},
		Defaults: map[string]map[string]string{"web": {"ORDERS_HOST": "not-me", "STOCK": "http://stock:8080"},
			"other": {"MAIL": "mail"}},
	})
	var texts []string
	for _, r := range f.Remarks {
		texts = append(texts, r.Rule+" "+r.Text)
	}
	if len(f.Calls) == 1 {
		to, read = f.Calls[0].To, f.Calls[0].Layers[0].PerTry.V.String()
	}
	return to, read, strings.Join(texts, "; ")
}

// As the image of nginx fills in *.template with envsubst, and others with Jinja or a chart.
func TestAPlaceholderIsWhatTheEnvironmentSaysOrANameOfItsOwn(t *testing.T) {
	const isKnown = " is, is known only when the file is filled in; in the name of the service it is "
	for _, c := range []struct{ file, directives, to, remarks string }{
		{"web/default.conf.template", "proxy_pass http://${ORDERS_HOST}:8080/;", "orders", ""},
		{"web/default.conf.template", "proxy_pass http://$ORDERS_HOST;", "orders", ""},
		{"web/default.conf.template", "proxy_pass ${STOCK};", "stock", ""},
		{"web/nginx.conf.j2", "proxy_pass http://{{ ORDERS_HOST }}:1;", "orders", ""},
		{"web/x/default.conf", "proxy_pass http://${MAIL};", "(mail)", "F702 what ${MAIL}" + isKnown + "(mail) here"},
		{"other/default.conf", "proxy_pass http://${MAIL};", "mail", ""},
		{"web/nginx.conf.j2", "fastcgi_pass {{ PHP }}:9000;", "(php)", "F702 what {{ PHP }}" + isKnown + "(php) here"},
		{"web/nginx.conf.j2", "proxy_pass http://a-{{ .Values.site.env }}.example.com;", "a-(env).example.com",
			"F702 what {{ .Values.site.env }}" + isKnown + "(env) here"},
		{"web/nginx.conf.j2", "proxy_pass https://{{ $.Values.site.host }}/{{ . }}.html;", "(host)",
			"F702 what {{ $.Values.site.host }}" + isKnown + "(host) here"},
		{"web/nginx.conf.j2", "proxy_pass http://{{ .Name }};", "", "F702 where http://{{ .Name }} leads is known only " +
			"when the file is filled in"},
		{"web/nginx.conf", "proxy_pass http://$Host;", "", "F702 where http://$Host leads is known only when a request " +
			"comes"},
	} {
		to, _, remarks := filledIn(t, c.file, "server { listen 80; location / { "+c.directives+" } }")
		if to != c.to || remarks != c.remarks {
			t.Errorf("%s: to %q and %q, want %q and %q", c.directives, to, remarks, c.to, c.remarks)
		}
	}
}

func TestALimitMayStandInTheEnvironment(t *testing.T) {
	_, read, remarks := filledIn(t, "web/default.conf.template",
		"server { location / { proxy_read_timeout ${WAIT}; proxy_pass http://orders; } }")
	if read != (7*time.Second).String() || remarks != "" {
		t.Errorf("a limit of %s; %s", read, remarks)
	}
}

// What is to be done about all that others fill in is one thing: to audit what comes of it.
func TestPlaceholdersOfOneFolderAreOneRemark(t *testing.T) {
	_, _, remarks := filledIn(t, "a.template", "server { location /a { proxy_pass http://${A}:1; }\n"+
		" location /b { proxy_pass http://${A}:2; }\n location /c { proxy_pass http://${B}; } }")
	if want := "F702 what ${A} and ${B} are, is known only when the files are filled in; in the names of services they " +
		"are (a) and (b) here"; remarks != want {
		t.Errorf("%q, want %q", remarks, want)
	}
}

// That a file is a template says all that can be said of its includes, of where it leads, and of what does not look
// like nginx between its lines.
func TestOfATemplateItIsSaidThatItIsOneAndNoMore(t *testing.T) {
	const text = "{{- range $host, $c := . }}\n  {{- $_ := set $all (dict\n    \"a\" $c\n    \"b\" $host) }}\n" +
		"server { include {{ printf \"/etc/%s\" $host }};\n location / { proxy_pass {{ trim $c }}; } }\n{{- end }}\n"
	_, _, remarks := filledIn(t, "nginx.tmpl", text)
	if want := "F702 the file is a template: 3 of its lines were left out, and all branches were read"; remarks != want {
		t.Errorf("%q, want %q", remarks, want)
	}
}

func TestAnIncludeFindsTheTemplateOfItsFile(t *testing.T) {
	f := nginx.Read([]source.Document{
		{File: "conf/nginx.conf.j2", Data: []byte("http { server { listen 80; include /etc/nginx/includes/site.conf; } }")},
		{File: "conf/site.conf.j2", Data: []byte("location / { proxy_read_timeout 3s; proxy_pass http://a:1; }")}},
		source.Assume{})
	if len(f.Remarks) > 0 || len(f.Calls) != 1 || f.Calls[0].Layers[0].PerTry.V != 3*time.Second {
		t.Errorf("%s", f.YAML())
	}
}

func TestAPatternThatMatchesNothingIsAGapInAnEmptyFrameOnly(t *testing.T) {
	for text, want := range map[string]int{
		"http { include /etc/nginx/conf.d/*.conf; }":                                                            1,
		"http { server { listen 80; return 204; } include /etc/nginx/conf.d/*.conf; }":                          1,
		"http { server { listen 80; location / { proxy_pass http://a; } } include /etc/nginx/conf.d/*.conf; }":  0,
		"http { server { listen 80; location / { proxy_pass http://a; } include /etc/nginx/locations.conf; } }": 1,
	} {
		f := nginx.Read([]source.Document{{File: "nginx.conf", Data: []byte(text)}}, source.Assume{})
		if len(f.Remarks) != want {
			t.Errorf("%s: %d remarks, want %d: %+v", text, len(f.Remarks), want, f.Remarks)
		}
	}
}

func TestAPlaceholderIsOneServerAndFailTimeout0EjectsNone(t *testing.T) {
	for servers, want := range map[string]string{
		"server ${A};":                "none of 1",
		"server a:1; server ${B};":    "some of 2",
		"server {{ range }}{{ .X }};": "some of unknown",
		"server a:1 fail_timeout=0; server b:1 fail_timeout=0;": "none of 2",
	} {
		f := nginx.Read([]source.Document{{File: "a.template", Data: []byte("upstream u { " + servers + " }\n" +
			"server { listen 80; location / { proxy_pass http://u; } }")}}, source.Assume{})
		l := f.Calls[0].Layers[0]
		got, number := "some", l.Endpoints.String()
		if l.Ejection.Consecutive.IsZero() {
			got = "none"
		}
		number, _, _ = strings.Cut(number, " ")
		if got+" of "+number != want {
			t.Errorf("%s: %s of %s, want %s", servers, got, number, want)
		}
	}
}

// An image copies nginx.conf and the parts of its http block from one folder of a repository to two of its own.
func TestWhatIsIncludedMayLieInTheFolderOfNginxConf(t *testing.T) {
	docs := []source.Document{
		{File: "web/nginx.conf", Data: []byte("events {}\nhttp { proxy_read_timeout 3s; " +
			"include /etc/nginx/conf.d/*.conf; }")},
		{File: "web/default.conf", Data: []byte("server { listen 80; include /etc/nginx/snippets/headers.conf; location / " +
			"{ proxy_pass http://a; } }")},
	}
	f := nginx.Read(docs, source.Assume{Given: []string{"web/nginx.conf", "web/default.conf", "web/headers.conf"}})
	if len(f.Remarks) > 0 || len(f.Calls) != 1 || f.Calls[0].Layers[0].PerTry.V != 3*time.Second {
		t.Errorf("%s", f.YAML())
	}
	f = nginx.Read(docs, source.Assume{Given: []string{"web/nginx.conf", "web/default.conf"}})
	if len(f.Remarks) != 1 {
		t.Errorf("headers.conf is nowhere: %+v", f.Remarks)
	}
}

func TestAScriptThatWritesAConfigurationIsNone(t *testing.T) {
	const conf = "cat > x << EOF\nserver {\n  listen 80;\n  location / {\n    proxy_pass http://a;\n  }\n}\nEOF\n"
	for file, want := range map[string]bool{"a.sh.tmpl": false, "a.sh": false, "a.conf.tmpl": true, "a": true} {
		if got := nginx.Recognise(source.Document{File: file, Data: []byte(conf)}); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	if nginx.Recognise(source.Document{File: "a", Data: []byte("#!/bin/sh\n" + conf)}) {
		t.Error("a script without an extension is taken for a configuration")
	}
}

func TestAnIncludeThatIsNowhereIsRemarkedOnceInAFile(t *testing.T) {
	f := nginx.Read([]source.Document{{File: "nginx.conf", Data: []byte("http { server { listen 80;\n location /a { " +
		"include /run/pass; include wsgi_params; }\n location /b { include /run/pass; } } }")}}, source.Assume{})
	if len(f.Remarks) != 1 || f.Remarks[0].At.String() != "nginx.conf:2:24" {
		t.Errorf("%+v", f.Remarks)
	}
}
