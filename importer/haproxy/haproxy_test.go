package haproxy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/haproxy"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func read(t *testing.T, files ...string) topology.Form {
	t.Helper()
	var docs []source.Document
	for i := 0; i < len(files); i += 2 {
		d := source.Document{File: files[i], Data: []byte(files[i+1])}
		if !haproxy.Recognise(d) {
			t.Errorf("%s is not recognised", files[i])
		}
		docs = append(docs, d)
	}
	return haproxy.Read(docs, source.Assume{Versions: map[string]string{"haproxy": "2.6"}})
}

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

// The cases were measured on HAProxy 2.6; tests/behaviour measures them again.
func TestTriesAreThoseOfTheRealProgram(t *testing.T) {
	const all = "retry-on all-retryable-errors\n"
	for name, c := range map[string]struct {
		servers int
		lines   string
		outcome topology.Outcome
		method  topology.Methods
		want    int
		longest time.Duration
	}{
		"dead port":                      {1, "", topology.Refused, post, 4, 3 * time.Second},
		"dead port, short connect limit": {1, "timeout connect 300ms\n", topology.Refused, get, 4, 900 * time.Millisecond},
		"503":                            {3, "", topology.S503, get, 1, 0},
		"hang":                           {1, "", topology.Hang, get, 1, time.Second},
		"all, hang":                      {1, all, topology.Hang, post, 4, 4 * time.Second},
		"all, 503":                       {1, all, topology.S503, post, 4, 0},
		"all, close":                     {1, all, topology.ResetSent, get, 4, 0},
		"all, 429":                       {1, all, topology.S429, get, 1, 0},
		"all, 404":                       {1, all, topology.S4xx, get, 1, 0},
		"all, dead port":                 {1, all, topology.Refused, get, 4, 3 * time.Second},
		"no retries":                     {1, "retries 0\n", topology.Refused, get, 1, 0},
		"retries 5, elsewhere":           {3, "retries 5\noption redispatch\n", topology.Refused, get, 6, 0},
		"retries 5, on the same server":  {3, "retries 5\n", topology.Refused, get, 6, 5 * time.Second},
		"elsewhere, of one server":       {1, "option redispatch\n", topology.Refused, get, 4, 3 * time.Second},
		"elsewhere, by connections": {3, "option redispatch\nbalance leastconn\n", topology.Refused, get, 4,
			0},
		"elsewhere, by a hash": {3, "option redispatch\nbalance source\n", topology.Refused, get, 4,
			3 * time.Second},
		"elsewhere each time, by a hash":  {3, "option redispatch 1\nbalance uri\n", topology.Refused, get, 4, 0},
		"a list without connections":      {1, "retry-on 503\n", topology.Refused, get, 1, 0},
		"a list without connections, 503": {1, "retry-on 503\n", topology.S503, post, 4, 0},
		"POST taken out": {1, all + "http-request disable-l7-retry if METH_POST\n", topology.S503, post,
			1, 0},
		"POST taken out, GET": {1, all + "http-request disable-l7-retry if METH_POST\n", topology.S503, get,
			4, 0},
		"POST taken out, dead port": {1, all + "http-request disable-l7-retry if METH_POST\n", topology.Refused,
			post, 4, 3 * time.Second},
		"all but GET taken out": {1, all + "http-request disable-l7-retry unless METH_GET\n", topology.S503,
			post, 1, 0},
		"an acl takes POST out": {1, all + "acl w method POST PUT\nhttp-request disable-l7-retry if w\n",
			topology.S503, post, 1, 0},
		"a condition that is about a path": {1, all + "http-request disable-l7-retry if { path /x }\n", topology.S503,
			post, 4, 0},
		"all taken out":  {1, all + "http-request disable-l7-retry\n", topology.S503, get, 1, 0},
		"tcp":            {1, "mode tcp\n" + all, topology.S503, get, 1, 0},
		"tcp, dead port": {1, "mode tcp\n", topology.Refused, get, 4, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := one(t, read(t, "haproxy.cfg", "defaults\n  mode http\n  timeout connect 5s\n  timeout server 1s\nlisten "+
				"orders\n bind :80\n"+
				c.lines+strings.Join([]string{" server a 10.0.0.1:80", " server b 10.0.0.2:80",
				" server c 10.0.0.3:80"}[:c.servers], "\n")))
			if got := l.Tries(c.outcome, c.method); got.N != c.want || !got.Known {
				t.Errorf("%+v, want %d", got, c.want)
			}
			if got, ends := l.Longest(c.outcome, c.method); got != c.longest || !ends {
				t.Errorf("longest %v, %v; want %v", got, ends, c.longest)
			}
		})
	}
}

func TestDefaultsAreThoseThatStandBefore(t *testing.T) {
	f := read(t, "lb/haproxy.cfg", `global
  maxconn 100
backend bare
  server s bare:80
defaults web
  mode http
  retries 2
  timeout server 7s
  option redispatch
frontend in
  bind :80
  use_backend bare if TRUE
  use_backend first if TRUE
  use_backend third if TRUE
  default_backend second
backend first
  no option redispatch
  server s1 first-1:80 maxconn 10
  server s2 first-2:80 maxconn 15
  server s3 first-3:80 backup
defaults other
  mode http
  option abortonclose
backend second
  timeout server 100
  server-template s 3 second:80 check observe layer7 error-limit 5
backend third from web
  server s third:80
`)
	if len(f.Calls) != 4 || len(f.Remarks) != 0 {
		t.Fatalf("%d calls, %+v", len(f.Calls), f.Remarks)
	}
	bare, first, second, third := f.Calls[0].Layers[0], f.Calls[1].Layers[0], f.Calls[2].Layers[0], f.Calls[3].Layers[0]
	for _, c := range []struct{ got, want string }{
		{bare.Repeats[0].Tries.String(), "4 (default of HAProxy 2.6; lb/haproxy.cfg:3:1)"},
		{bare.PerTry.String(), "none (default of HAProxy 2.6; lb/haproxy.cfg:3:1)"},
		{first.Repeats[0].Tries.String(), "3 (inherited from defaults web; lb/haproxy.cfg:7:11)"},
		{first.PerTry.String(), "7s (inherited from defaults web; lb/haproxy.cfg:8:18)"},
		{first.Cancels.String(), "false (default of HAProxy 2.6; lb/haproxy.cfg:16:1)"},
		{first.Limits.Requests.String(), "25 (lb/haproxy.cfg:19:32)"},
		{first.Endpoints.String(), "2 (lb/haproxy.cfg:16:1)"},
		{second.PerTry.String(), "100ms (lb/haproxy.cfg:25:18)"},
		{second.Cancels.String(), "false (default of HAProxy 2.6; lb/haproxy.cfg:10:1)"},
		{second.Endpoints.String(), "3 (lb/haproxy.cfg:24:1)"},
		{second.Ejection.Consecutive.String(), "5 (lb/haproxy.cfg:26:66)"},
		{third.Repeats[0].Tries.String(), "3 (inherited from defaults web; lb/haproxy.cfg:7:11)"},
		{f.Calls[0].From + " " + f.Calls[0].To + " " + f.Calls[1].To + " " + f.Calls[2].To, "lb bare first second"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if first.Repeats[0].Elsewhere || third.Repeats[0].Elsewhere {
		t.Error("one server, or no redispatch, and yet it goes elsewhere")
	}
}

// Measured on HAProxy 2.6: in the backend alone, or in the frontend alone, the option does nothing.
func TestItStopsOnlyWhereBothSidesSaySo(t *testing.T) {
	for _, c := range []struct {
		defaults, backend string
		want              bool
		remarks           int
	}{{"", "", false, 0}, {"", "option abortonclose", false, 1}, {"option abortonclose", "no option abortonclose",
		false, 0},
		{"option abortonclose", "", true, 0}, {"option abortonclose", "option abortonclose", true, 0}} {
		f := read(t, "f.cfg", "defaults\n  mode http\n  "+c.defaults+"\nfrontend f\n  bind :80\n  default_backend "+
			"b\nbackend b\n  "+c.backend+
			"\n  server s b:80\n")
		if l := one(t, f); l.Cancels.V != c.want || len(f.Remarks) != c.remarks || f.Services[0].Cancels.V != c.want {
			t.Errorf("%q, %q: %s, remarks %+v", c.defaults, c.backend, l.Cancels, f.Remarks)
		}
	}
}

func TestWordsAreTakenApartAsHAProxyDoes(t *testing.T) {
	f := read(t, "haproxy.cfg", "defaults # x\n  mode http\n  timeout   server\t'2s' # y\n  log-format \"%ci "+
		"\\\"x#y\\\" timeout\"\nlisten a\n"+
		"  bind :80\n  server s a:80\n  retries \"5\"\n")
	l := one(t, f)
	if l.PerTry.String() != "2s (inherited from defaults; haproxy.cfg:3:20)" || l.Tries(topology.Refused, get).N != 6 {
		t.Errorf("%s, %+v", l.PerTry, l.Repeats)
	}
}

func TestFilesOfOneFolderAreOneHAProxy(t *testing.T) {
	f := read(t, "etc/lb/haproxy.cfg", "global\n maxconn 1\ndefaults\n  mode http\n  retries 1\n",
		"etc/lb/orders.cfg", "listen orders\n  bind :80\n  server s orders:80\n")
	if l := one(t, f); l.Tries(topology.Refused, get).N != 2 || f.Calls[0].From != "lb" {
		t.Errorf("%s", f.YAML())
	}
}

func TestWhatIsWrongOrWithoutEffectIsRemarked(t *testing.T) {
	const head = "defaults\n  mode http\nlisten a\n  bind :80\n  server s a:80\n"
	for _, c := range []struct{ conf, rule, at, fix string }{
		{head + "  retry-on 503 conn-failures\n", "F601", "f.cfg:6:16", "conn-failure"},
		{head + "  timeout servr 1s\n", "F601", "f.cfg:6:11", "did you mean server"},
		{head + "  timeout server 1sec\n", "F702", "f.cfg:6:18", "correct it"},
		{head + "  srvtimeout 5000\n", "F606", "f.cfg:6:3", "timeout server"},
		{head + "  mode tcp\n  retry-on 503\n", "F602", "f.cfg:7:3", "mode http"},
		{head + "backend b\n  server s b:80\n", "F602", "f.cfg:6:1", "use it"},
		{head + "{{ range .Backends }}\n", "F702", "f.cfg:6:1", "rendered"},
	} {
		f := read(t, "f.cfg", c.conf)
		found := false
		for _, r := range f.Remarks {
			found = found || r.Rule == c.rule && r.At.String() == c.at && strings.Contains(r.Fix, c.fix)
		}
		if !found || len(f.Calls) != 1 {
			t.Errorf("%s:\n%+v, %d calls", c.conf, f.Remarks, len(f.Calls))
		}
	}
}

// What a version refuses is no error of a file of which nobody says for which version it is.
func TestAKeywordThatIsGoneIsGoneInItsVersion(t *testing.T) {
	d := source.Document{File: "f.cfg", Data: []byte("listen a\n  bind :80\n  reqadd X\n  server s a:80\n")}
	image := func(v string) source.Assume {
		return source.Assume{Images: map[string]topology.Value[string]{"haproxy": topology.Write(v, topology.Position{})}}
	}
	for _, c := range []struct {
		assume        source.Assume
		said, assumed bool
	}{{image("1.8"), false, false}, {image("2.6"), true, false}, {source.Assume{}, true, true}} {
		var said []topology.Remark
		for _, r := range haproxy.Read([]source.Document{d}, c.assume).Remarks {
			if r.Rule == "F606" {
				said = append(said, r)
			}
		}
		if len(said) > 0 != c.said || c.said && (said[0].Assumed != "") != c.assumed {
			t.Errorf("%+v: %+v", c, said)
		}
	}
}

func TestABackendChosenByAnExpressionIsUsed(t *testing.T) {
	f := read(t, "f.cfg", "frontend f\n  bind :80\n  use_backend %[req.hdr(host),lower]\nbackend b\n  server s ${B}:80\n")
	l := one(t, f)
	if len(f.Remarks) != 0 || !l.Endpoints.IsUnknown() || f.Calls[0].To != "b" {
		t.Errorf("%s", f.YAML())
	}
}

func TestOtherFilesAreNotHAProxy(t *testing.T) {
	for _, text := range []string{"backend:\n  server: x\n", "http { upstream a { server b; } }",
		"[global]\n  option = 1\n",
		"backend \"s3\" {\n  bucket = 1\n}\n", "",
		"listen to the server\n\n  bind your own timeout server 5s\n", "frontend code\n  option one\n  server side: x\n"} {
		docs, _ := source.YAML("f", []byte(text))
		d := source.Document{File: "f", Data: []byte(text)}
		if len(docs) > 0 {
			d = docs[0]
		}
		if haproxy.Recognise(d) {
			t.Errorf("%q is taken for HAProxy", text)
		}
	}
}

func FuzzConfigurationsAreReadWithoutAPanic(f *testing.F) {
	f.Add("defaults a\n retries 2\ndefaults b from a\n mode http\nlisten x from b\n server s a:1 maxconn 3 observe " +
		"layer7\n retry-on 503 all-retryable-errors\n")
	f.Add("frontend f\n use_backend %[x]\nbackend b\n server-template s 1-9 {{ a }}:1 \\\n http-request " +
		"disable-l7-retry if !METH_GET or { method POST }\n timeout server 9d # '\n\"")
	f.Add("defaults x from x\nbackend from\n server")
	f.Fuzz(func(t *testing.T, a string) {
		form := haproxy.Read([]source.Document{{File: "a", Data: []byte(a)}}, source.Assume{})
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

// The limit of a server in mode tcp is one of silence: behind it are connections that stay open.
func TestInModeTCPNoLimitEndsARequest(t *testing.T) {
	for mode, want := range map[string]bool{"tcp": true, "http": false} {
		f := read(t, "", "defaults\n  mode "+mode+"\n  timeout server 1h\nfrontend f\n  bind :1\n  default_backend b\n"+
			"backend b\n  server a a:1\n")
		if len(f.Calls) != 1 || f.Calls[0].Layers[0].StartsOnly != want {
			t.Errorf("%s: %s", mode, f.YAML())
		}
	}
}
