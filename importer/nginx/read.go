package nginx

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version whose defaults hold when nobody says which it is.
const assumedVersion = "1.30"

// arguments are what follows the name of a directive, with what somebody fills in: ${HOST}, {{ host }}.
const arguments = `(?:[^;{}\n]|\$\{\w+\}|\{\{[^{}\n]*\}\})+`

var (
	blocks = regexp.MustCompile(`(?m)^\s*(http|server|stream|upstream\s+\S+|location\s+[^\n{};]+|server\s+\{.*)` +
		`\s*\{`)
	setting = regexp.MustCompile(`(?m)(^|[{;])\s*(listen|server_name|server|include|worker_processes|` +
		`worker_connections|error_log|` +
		`(proxy|grpc|fastcgi|uwsgi|scgi)_[a-z_]+)\s+` + arguments + `;`)
	snippet = regexp.MustCompile(`(?m)^\s*(proxy|grpc|fastcgi|uwsgi|scgi)_(pass|next_upstream\w*|\w+_timeout)\s+` +
		arguments + `;`)
	// hcl is a file that begins with a block of HCL: job "web" {. A job of Nomad holds configurations of others in texts.
	hcl      = regexp.MustCompile(`\A(?:\s*(?:(?:#|//).*)?\n)*\s*(\w+)(?:[ \t]+"?[\w.-]+"?){0,2}[ \t]*\{[ \t]*\n`)
	assigned = regexp.MustCompile(`(?m)^[ \t]*\w+[ \t]*=[ \t]*[^;\n]+$`)
	ownWord  = regexp.MustCompile(`^(http|server|stream|events|mail|upstream|location|map|geo|types|split_clients|match|` +
		`if|\w+_block)$`)
)

// keyed is a text that begins with a key of YAML, as that of cloud-init does, which may write files of nginx. No
// directive has a colon after its name.
var keyed = regexp.MustCompile(`\A(?:\s*(?:#.*)?\n)*(?:---.*\n)?(?:\s*(?:#.*)?\n)*[A-Za-z_][\w.-]*:(?:\s|$)`)

// ofHCL reports whether a document is of Terraform, Nomad or Consul.
func ofHCL(data []byte) bool {
	first := hcl.FindSubmatch(data)
	return first != nil && !ownWord.Match(first[1]) && assigned.Match(data)
}

// Recognise reports whether a document is a configuration of nginx, or a part that others include.
func Recognise(d source.Document) bool {
	if d.Root.IsMap() || d.Root.IsList() || d.Prose() || ofHCL(d.Data) || keyed.Match(d.Data[:min(len(d.Data), 4096)]) {
		return false
	}
	return snippet.Match(d.Data) || blocks.Match(d.Data) && setting.Match(d.Data)
}

// Read returns what the documents say. Documents that others include are read where they are included. The rest of one
// folder, where nothing joins them, is one nginx: the files of conf.d.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	f := newFiles(docs, assume.Given)
	var out topology.Form
	for _, group := range f.groups() {
		in := &instance{files: f, form: &out, version: assume.For(group[0].File).Version("nginx", assumedVersion),
			service:     group[0].Service("nginx"),
			statusWords: map[topology.Position]*words{}, named: map[string]bool{}}
		var all []*directive
		for _, d := range group {
			all = append(all, f.expand(f.parsed[key(d)], []string{key(d)})...)
		}
		in.read(filled(all, environment(assume, group[0])))
	}
	out.Remarks = once(slices.Concat(f.remarks, f.gaps.remarks(), out.Remarks))
	return out
}

// once leaves out what was remarked for several locations that inherit one line.
func once(remarks []topology.Remark) []topology.Remark {
	seen := map[topology.Remark]bool{}
	return slices.DeleteFunc(remarks, func(r topology.Remark) bool {
		before := seen[r]
		seen[r] = true
		return before
	})
}

// groups returns the documents that nothing includes, those of one nginx together.
func (f *files) groups() [][]*source.Document {
	var out [][]*source.Document
	at := map[string]int{}
	for i := range f.docs {
		d := &f.docs[i]
		if f.included[key(d)] && !f.whole(d) {
			continue
		}
		folder := key(d)
		if !f.whole(d) {
			folder = path.Dir(d.File) + "\x00" + d.Owner
		}
		n, seen := at[folder]
		if !seen {
			n = len(out)
			at[folder], out = n, append(out, nil)
		}
		out[n] = append(out[n], d)
	}
	return out
}

// whole reports whether a document is a configuration of its own.
func (f *files) whole(d *source.Document) bool {
	return slices.ContainsFunc(f.parsed[key(d)], func(d *directive) bool {
		return d.opens && (d.name() == "http" || d.name() == "stream" || d.name() == "events")
	})
}

// instance is one nginx.
type instance struct {
	files   *files
	form    *topology.Form
	version topology.Value[string]
	service string
	at      topology.Position
	names   []string        // server_name
	named   map[string]bool // names, and placeholders that were remarked
	calls   []located
	// statusWords are the lists of words of which one may be without effect, by their places.
	statusWords map[topology.Position]*words
}

// located is a call and how nginx prefers its location: by the form first, then the longer the better.
type located struct {
	call topology.Call
	rank int
}

// rank returns the place of a location among those of its server; the lowest is looked at first.
func (s *scope) rank() int {
	length := min(len(s.path), 999)
	switch {
	case strings.HasPrefix(s.path, "~"):
		return 2000
	case s.firm:
		return 1999 - length
	case strings.HasSuffix(s.path, "*"):
		return 3999 - length
	}
	return 0 // exact, or inside another server
}

// words is one directive that says what is repeated.
type words struct {
	directive *directive
	used      bool // by a location whose upstream has several servers
}

func (in *instance) remark(rule string, at topology.Position, subject, text, fix string) {
	in.form.Remarks = append(in.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: in.service + " " + subject,
		Text: text, Fix: fix})
}

func (in *instance) read(all []*directive) {
	if len(all) == 0 {
		return
	}
	in.at = all[0].at()
	http := &scope{kind: "http"}
	var stream []*scope
	for _, d := range all {
		switch d.name() {
		case "http":
			http.directives = append(http.directives, d.block...)
		case "stream":
			stream = append(stream, &scope{kind: "stream", directives: d.block})
		default:
			http.directives = append(http.directives, d) // a part that http includes
		}
	}
	in.http(http)
	for _, s := range stream {
		in.stream(s)
	}
	if len(in.calls) == 0 && len(in.names) == 0 {
		return
	}
	slices.SortStableFunc(in.calls, func(a, b located) int { return a.rank - b.rank })
	for _, c := range in.calls {
		in.form.Calls = append(in.form.Calls, c.call)
	}
	cancels := topology.DefaultOf(true, "nginx", in.at)
	if d, _ := http.find("proxy_ignore_client_abort"); d != nil {
		cancels = flag(in, http, "proxy_ignore_client_abort", false, true)
	}
	in.form.Services = append(in.form.Services, topology.Service{Name: in.service, At: in.at, Aliases: in.names,
		Cancels: cancels})
	in.withoutEffect()
}

func (in *instance) http(s *scope) {
	groups := upstreams(s)
	for _, d := range s.directives {
		if d.name() == "server" && d.opens {
			in.server(&scope{outer: s, kind: "server", directives: d.block, upstreams: groups})
		}
		if d.name() == "location" && d.opens { // a file that a server includes, without it
			in.location(d, &scope{outer: s, kind: "server", upstreams: groups})
		}
	}
}

func (in *instance) server(s *scope) {
	for _, d := range s.directives {
		if d.name() == "server_name" {
			for _, w := range d.words[1:] {
				if s.name == "" {
					s.name = w.text
				}
				if strings.Contains(w.text, ".") && !strings.ContainsAny(w.text, "*~$^{") && !in.named[w.text] {
					in.named[w.text] = true
					in.names = append(in.names, w.text)
				}
			}
		}
	}
	in.passes(s)
	in.locations(s)
}

func (in *instance) locations(s *scope) {
	for _, d := range s.directives {
		if !d.opens {
			continue
		}
		switch d.name() {
		case "location":
			in.location(d, s)
		case "if", "limit_except":
			inner := &scope{outer: s, kind: d.name(), directives: d.block, name: s.name, path: s.path, firm: s.firm,
				upstreams: s.upstreams,
				other:     strings.TrimSpace(d.name() + " " + text(d.words[1:]))}
			in.passes(inner)
			in.locations(inner)
		}
	}
}

func (in *instance) location(d *directive, outer *scope) {
	s := &scope{outer: outer, kind: "location", directives: d.block, name: outer.name, upstreams: outer.upstreams}
	s.path, s.other = locationOf(d)
	if modifier, _ := d.arg(1); modifier.text == "^~" {
		s.firm = true
	}
	in.passes(s)
	in.locations(s)
}

// locationOf returns which requests a location is for.
func locationOf(d *directive) (path, other string) {
	first, _ := d.arg(1)
	second, two := d.arg(2)
	switch {
	case two && first.text == "=":
		return second.text, ""
	case two && strings.HasPrefix(first.text, "~"):
		return "~" + second.text, ""
	case two && first.text == "^~":
		return second.text + "*", ""
	case strings.HasPrefix(first.text, "@"):
		return "", first.text
	case strings.HasPrefix(first.text, "="):
		return first.text[1:], ""
	case strings.HasPrefix(first.text, "~"):
		return "~" + strings.TrimLeft(first.text, "~*"), ""
	}
	return first.text + "*", ""
}

func text(ws []word) string {
	var parts []string
	for _, w := range ws {
		parts = append(parts, w.text)
	}
	return strings.Join(parts, " ")
}
