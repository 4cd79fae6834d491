package haproxy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version whose defaults hold when nobody says which it is.
const assumedVersion = "3.2"

var (
	opening = regexp.MustCompile(`(?m)^(global|defaults|(frontend|backend|listen)[ \t]+[^\s:={};,]+([ \t]+\S*:\d+)?|` +
		`(defaults|frontend|backend|listen)([ \t]+[^\s:={};,]+)?([ \t]+from[ \t]+\S+)?|backend[ \t]+.*\{\{.*)` +
		`[ \t]*(#.*)?\r?$`)
	inside = regexp.MustCompile(`(?m)^[ \t]+(mode[ \t]+(http|tcp)|bind[ \t]+\S*:\S+.*|timeout[ \t]+[a-z-]+[ \t]+\S+|` +
		`balance[ \t]+\S+.*|default_backend[ \t]+\S+|use_backend[ \t]+\S+.*|retries[ \t]+\S+|` +
		`retry-on[ \t]+.*|maxconn[ \t]+\d+|` +
		`server(-template)?[ \t]+\S+[ \t]+(\d+[ \t]+)?\S*[:.{$]\S*.*)[ \t]*(#.*)?\r?$`)
)

// Recognise reports whether a document is a configuration of HAProxy.
func Recognise(d source.Document) bool {
	return !d.Root.IsMap() && !d.Root.IsList() && !d.Prose() && opening.Match(d.Data) && inside.Match(d.Data)
}

// Read returns what the documents say. Each file is one HAProxy; one that has neither a global nor a defaults section
// belongs to the file of its folder that has.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	var out topology.Form
	for _, group := range groups(docs) {
		all, remarks := sections(group)
		out.Remarks = append(out.Remarks, remarks...)
		in := &instance{form: &out, version: assume.For(group[0].File).Version("haproxy", assumedVersion),
			service:  group[0].Service("haproxy"),
			sections: all}
		in.read()
	}
	seen := map[topology.Remark]bool{} // of defaults that several backends inherit
	out.Remarks = slices.DeleteFunc(out.Remarks, func(r topology.Remark) bool {
		before := seen[r]
		seen[r] = true
		return before
	})
	return out
}

var beginning = regexp.MustCompile(`(?m)^(global|defaults)\b`)

func groups(docs []source.Document) [][]*source.Document {
	var out [][]*source.Document
	folder := func(d *source.Document) string { return path.Dir(d.File) + "\x00" + d.Owner }
	first := map[string]int{}
	for i := range docs {
		if d := &docs[i]; beginning.Match(d.Data) {
			if _, seen := first[folder(d)]; !seen {
				first[folder(d)] = len(out)
			}
			out = append(out, []*source.Document{d})
		}
	}
	for i := range docs {
		if d := &docs[i]; !beginning.Match(d.Data) {
			n, seen := first[folder(d)]
			if !seen {
				n = len(out)
				first[folder(d)], out = n, append(out, nil)
			}
			out[n] = append(out[n], d)
		}
	}
	return out
}

// instance is one HAProxy.
type instance struct {
	form     *topology.Form
	version  topology.Value[string]
	service  string
	sections []*section
	uses     map[string][]*section // the frontends of each backend
	dynamic  bool                  // a frontend chooses by an expression
	open     bool                  // there is a frontend
}

func (in *instance) product() string { return "HAProxy " + in.version.V }

func (in *instance) remark(rule string, at topology.Position, subject, text, fix string) {
	in.form.Remarks = append(in.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: in.service + " " + subject,
		Text: text, Fix: fix})
}

func (in *instance) read() {
	in.find()
	calls := 0
	for _, s := range in.sections {
		in.check(s)
		if s.kind != "backend" && s.kind != "listen" {
			continue
		}
		p := in.pool(s)
		if p.servers == 0 && p.unknown == "" || source.Template(s.name) != "" {
			continue
		}
		if in.unused(s) {
			in.remark("F602", s.at, "backend "+s.name, "no frontend uses this backend, so nothing it says has an effect",
				"remove it, or use it")
			continue
		}
		in.call(s, p, in.uses[s.name])
		calls++
	}
	if calls > 0 {
		made := in.form.Calls[len(in.form.Calls)-calls:]
		service := topology.Service{Name: in.service, At: in.sections[0].at, Cancels: made[0].Layers[0].Cancels}
		for _, c := range made {
			if c.Layers[0].Cancels.V != service.Cancels.V { // some of its work ends with its client, some does not
				service.Cancels = topology.Value[bool]{}
				break
			}
		}
		in.form.Services = append(in.form.Services, service)
	}
}

func (in *instance) call(s *section, p *pool, entrances []*section) {
	to, aliases := source.Behind(s.name, p.hosts)
	if to == "" {
		to = in.service + "-" + s.kind
	}
	if len(aliases) > 0 {
		in.form.Services = append(in.form.Services, topology.Service{Name: to, At: s.at, Aliases: aliases})
	}
	in.form.Calls = append(in.form.Calls, topology.Call{From: in.service, To: to, At: s.at,
		Layers: []topology.Layer{in.layer(s, p, entrances)}})
}

// find notes which frontends use which backend.
func (in *instance) find() {
	in.uses = map[string][]*section{}
	for _, s := range in.sections {
		if s.kind != "frontend" && s.kind != "listen" {
			continue
		}
		in.open = true
		for _, l := range append(s.inherited("default_backend"), s.lines...) {
			name, ok := l.arg(1)
			if !ok || l[0].text != "use_backend" && l[0].text != "default_backend" {
				continue
			}
			in.dynamic = in.dynamic || strings.ContainsAny(name.text, "%[{$")
			if users := in.uses[name.text]; len(users) == 0 || users[len(users)-1] != s {
				in.uses[name.text] = append(users, s)
			}
		}
	}
}

// unused reports that no frontend can lead to a backend: there are frontends, and none of them chooses it, or chooses
// by an expression.
func (in *instance) unused(backend *section) bool {
	return backend.kind == "backend" && in.open && !in.dynamic && len(in.uses[backend.name]) == 0
}

// inherited returns the lines of a section's defaults that begin with a keyword.
func (s *section) inherited(keyword string) []line {
	var out []line
	for d := s.defaults; d != nil; d = d.defaults {
		for _, l := range d.lines {
			if l.is(keyword) {
				out = append(out, l)
			}
		}
	}
	return out
}

// gone are keywords of former versions, which HAProxy refuses since 2.1.
var gone = map[string]string{"contimeout": "timeout connect", "clitimeout": "timeout client",
	"srvtimeout": "timeout server",
	"redispatch": "option redispatch", "reqadd": "http-request add-header", "block": "http-request deny"}

var timeouts = []string{"server", "connect", "client", "queue", "check", "http-request", "http-keep-alive", "tunnel",
	"tarpit",
	"client-fin", "server-fin", "client-hs"}

// gone remarks a keyword that HAProxy refuses since 2.1. Where no file says the version, that rests on it.
func (in *instance) gone(s *section, keyword word, now string) {
	v := in.version
	if source.Before(v.V, "2.1") {
		return
	}
	in.remark("F606", keyword.at, s.kind+" "+keyword.text,
		"HAProxy does not start with "+keyword.text+", which was removed in 2.1", "write "+now)
	if v.Origin == topology.Assumed {
		in.form.Remarks[len(in.form.Remarks)-1].Assumed = "haproxy " + v.V + ": " + v.Why
	}
}

// check remarks what HAProxy refuses or ignores.
func (in *instance) check(s *section) {
	if !slices.Contains([]string{"defaults", "frontend", "backend", "listen"}, s.kind) {
		return
	}
	for _, l := range s.lines {
		if now := gone[l[0].text]; now != "" {
			in.gone(s, l[0], now)
		}
		if w, ok := l.arg(1); ok && l.is("timeout") && !slices.Contains(timeouts, w.text) && source.Template(w.text) == "" {
			in.remark("F601", w.at, s.kind+" timeout "+w.text, fmt.Sprintf("HAProxy knows no timeout %s", w.text),
				source.Meant(w.text, timeouts))
		}
	}
}
