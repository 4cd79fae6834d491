package nginx

import (
	"slices"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// statuses are the words for answers that are tried again.
var statuses = map[string]topology.Outcome{"http_500": topology.S500, "http_502": topology.S502,
	"http_503": topology.S503,
	"http_504": topology.S504, "http_403": topology.S4xx, "http_404": topology.S4xx, "http_429": topology.S429}

var known = []string{"error", "timeout", "denied", "invalid_header", "http_500", "http_502", "http_503", "http_504",
	"http_403",
	"http_404", "http_429", "non_idempotent", "off", "invalid_response", "updating"}

// Words returns what a list of words such as "error timeout http_503" repeats, and which of them nginx does not know.
// sent are the requests that are repeated after they were sent.
func Words(list []source.Part, sent topology.Methods, tries topology.Value[int]) (repeats []topology.Repeat,
	unknown []source.Part,
) {
	if has(list, "off") {
		return nil, nil
	}
	add := func(w source.Part, m topology.Methods, on ...topology.Outcome) {
		if m != 0 {
			repeats = append(repeats, topology.Repeat{On: on, Methods: m, Tries: tries, Word: w.Text, At: w.At})
		}
	}
	for _, w := range list {
		switch status, isStatus := statuses[w.Text]; {
		case w.Text == "error":
			add(w, topology.AllMethods, topology.Refused, topology.ResetUnsent)
			add(w, sent, topology.ResetSent)
		case w.Text == "timeout":
			add(w, sent, topology.Hang)
		case isStatus:
			add(w, sent, status)
		case !slices.Contains(known, w.Text) && source.Template(w.Text) == "":
			unknown = append(unknown, w)
		}
	}
	return repeats, unknown
}

// Meant says which word of such a list somebody probably meant who wrote another.
func Meant(word string) string { return source.Meant(word, known) }

// has reports whether a list has a word.
func has(list []source.Part, word string) bool {
	return slices.ContainsFunc(list, func(w source.Part) bool { return w.Text == word })
}

// repeats returns what a location repeats.
//
// A POST, PATCH or LOCK is repeated only while nothing of it was sent, unless the words have non_idempotent. The rule
// looks at the words of one directive; a block that has one inherits nothing of another's.
func (in *instance) repeats(s *scope, prefix string, pass *directive, u *upstream) []topology.Repeat {
	list := []source.Part{{Text: "error", At: pass.at()}, {Text: "timeout", At: pass.at()}}
	if d, _ := s.find(prefix + "_next_upstream"); d != nil {
		list = nil
		for _, w := range d.words[1:] {
			list = append(list, source.Part{Text: w.text, At: w.at})
		}
		in.note(d, u)
	}
	tries, sent := in.tries(s, prefix, pass.at(), u), sent(prefix, has(list, "non_idempotent"))
	out, unknown := Words(list, sent, tries)
	for _, w := range unknown {
		in.remark("F601", w.At, prefix+"_next_upstream "+w.Text,
			"nginx knows no "+w.Text+" here, and does not start with it", Meant(w.Text))
	}
	if has(list, "error") && !has(list, "off") {
		if cached, at := in.cached(s, prefix, u); cached {
			more := in.oneMore(tries, u, at)
			kept, _ := Words([]source.Part{{Text: "error", At: at}}, sent, more)
			for _, r := range kept {
				r.Word = "keepalive"
				r.On = slices.DeleteFunc(r.On, func(o topology.Outcome) bool { return o == topology.Refused })
				out = append(out, r)
			}
		}
	}
	for i := range out {
		out[i].Elsewhere = true
	}
	return out
}

// sent returns which requests are repeated after they were sent. With proxy_request_buffering off those with a long
// body are not, but short ones are: they came together with the head. So that setting changes no bound.
func sent(prefix string, nonIdempotent bool) topology.Methods {
	switch {
	case nonIdempotent:
		return topology.AllMethods
	case prefix == "grpc": // every gRPC call is a POST
		return 0
	}
	return topology.Safe
}

// cached reports whether requests may go out over a connection that was used before, and where that is said. When such
// a connection breaks, nginx gives the request one try more.
func (in *instance) cached(s *scope, prefix string, u *upstream) (bool, topology.Position) {
	if u.name == "" || prefix != "proxy" && prefix != "grpc" { // only groups have caches
		return false, topology.Position{}
	}
	byDefault := !source.Before(in.version.V, "1.29.7")
	at := u.at
	if u.keepalive != nil {
		at = u.keepalive.at()
		if n, ok := u.keepalive.arg(1); ok && n.text == "0" {
			return false, at
		}
	} else if !byDefault {
		return false, at
	}
	if prefix == "grpc" || byDefault {
		v := value(in, s, "proxy_http_version", source.Text, "1.1", at)
		return prefix == "grpc" || v.Or("") != "1.0", at
	}
	version := value(in, s, "proxy_http_version", source.Text, "1.0", at)
	return version.Or("") == "1.1" && s.clearsConnection(), at
}

// clearsConnection reports whether the header Connection, which is "close" by default, is taken away.
func (s *scope) clearsConnection() bool {
	_, from := s.find("proxy_set_header")
	if from == nil {
		return false
	}
	return slices.ContainsFunc(from.directives, func(d *directive) bool {
		name, _ := d.arg(1)
		v, ok := d.arg(2)
		return d.name() == "proxy_set_header" && name.text == "Connection" && ok && v.text == ""
	})
}

func (in *instance) oneMore(tries topology.Value[int], u *upstream, at topology.Position) topology.Value[int] {
	n, ok := tries.Get()
	if !ok {
		return tries
	}
	if u.keepalive != nil {
		return topology.Write(n+1, at)
	}
	return topology.DefaultOf(n+1, "nginx 1.29.7 and later, which keeps connections", at)
}

// note remembers a list of words, and whether it can have an effect: one server is tried once.
func (in *instance) note(d *directive, u *upstream) {
	w := in.statusWords[d.at()]
	if w == nil {
		w = &words{directive: d}
		in.statusWords[d.at()] = w
	}
	n, ok := u.count().Get()
	w.used = w.used || !ok || n > 1
}

// withoutEffect remarks lists of words that ask for more than the default and get nothing.
func (in *instance) withoutEffect() {
	var places []topology.Position
	for at, w := range in.statusWords {
		asks := slices.ContainsFunc(w.directive.words[1:], func(w word) bool {
			return w.text != "error" && w.text != "timeout" && w.text != "off"
		})
		if asks && !w.used {
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b topology.Position) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	for _, at := range places {
		name := in.statusWords[at].directive.name()
		in.remark("F602", at, name, name+" has no effect: nginx tries a request once for each server, and the upstream "+
			"has one",
			"add a server, or remove the line")
	}
}
