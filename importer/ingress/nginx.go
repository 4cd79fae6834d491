package ingress

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/nginx"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// What ingress-nginx writes where nobody says anything.
const (
	nginxTries   = 3
	nginxConnect = 5 * time.Second
	nginxRead    = time.Minute
)

// controlled is one Ingress of ingress-nginx.
type controlled struct {
	*reader
	o    source.Resource
	who  string
	at   topology.Position // of its annotations, or where they would be
	grpc bool
}

// nginx returns how ingress-nginx tries what an Ingress leads to. A canary takes that from the Ingress that it stands
// beside, and is not known where that is in no file.
//
// The balancer asks for one try more at each try, whatever endpoints there are, so a Service with one endpoint, or an
// address that stands for all of them (service-upstream), is tried as often as another.
func (r *reader) nginx(o source.Resource) func(target, string) (topology.Layer, bool) {
	if isCanary(o) {
		r.ignored(o)
		return func(t target, _ string) (topology.Layer, bool) {
			for _, key := range t.keys(o.Namespace) {
				if l, known := r.beside[key]; known {
					return l, true
				}
			}
			return topology.Layer{}, false
		}
	}
	n := &controlled{reader: r, o: o, who: r.who(ingressNginx), at: o.Root.Get("metadata", "annotations").At()}
	if len(o.Root.Get("metadata", "annotations").Pairs()) == 0 {
		n.at = o.Root.Get("metadata").At()
	}
	switch strings.ToUpper(o.Annotation(nginxPrefix + "backend-protocol").Text()) {
	case "GRPC", "GRPCS":
		n.grpc = true
	}
	l := n.layer()
	return func(t target, _ string) (topology.Layer, bool) {
		for _, key := range t.keys(o.Namespace) {
			if _, taken := r.beside[key]; !taken {
				r.beside[key] = l
			}
		}
		return l, true
	}
}

func (n *controlled) layer() topology.Layer {
	limit := func(key string, byDefault time.Duration) topology.Value[time.Duration] {
		return or(setting(n, key, source.Whole(time.Second, "seconds")), topology.DefaultOf(byDefault, n.who, n.at))
	}
	l := topology.Layer{Kind: topology.Gateway, Product: ingressNginx, Version: n.version(ingressNginx), StartsOnly: true,
		PerTry: limit("proxy-read-timeout", nginxRead), Connect: limit("proxy-connect-timeout", nginxConnect),
		Backoff:  topology.Backoff{First: topology.DefaultOf(time.Duration(0), n.who+", which has no back-off", n.at)},
		Cancels:  topology.DefaultOf(true, n.who, n.at),
		Upgrades: topology.DefaultOf(true, n.who, n.at), // which passes on that a client wants a websocket
		Answers: []topology.Answer{{After: topology.Refused, Gives: topology.S502},
			{After: topology.ResetUnsent, Gives: topology.S502}, {After: topology.ResetSent, Gives: topology.S502},
			{After: topology.Hang, Gives: topology.S504}},
	}
	if n.grpc {
		l.Overall = topology.DefaultOf(time.Duration(0), n.who, n.at)
		l.Repeats = n.ofGRPC()
		l.Speaks = topology.Write(topology.SpeaksGRPC, n.o.Annotation(nginxPrefix+"backend-protocol").At())
		return l
	}
	l.Overall = limit("proxy-next-upstream-timeout", 0)
	tries := or(setting(n, "proxy-next-upstream-tries", source.Int), topology.DefaultOf(nginxTries, n.who, n.at))
	if got, known := tries.Get(); known && got == 0 {
		tries.V = topology.Unbounded
	}
	words := n.words()
	methods := topology.Safe
	if again := n.config("retry-non-idempotent"); slices.ContainsFunc(words, isNonIdempotent) ||
		read(n.reader, again, source.Bool).Or(false) {
		methods = topology.AllMethods
	}
	l.Repeats, _ = nginx.Words(words, methods, tries)
	return l
}

func isNonIdempotent(w source.Part) bool { return w.Text == "non_idempotent" }

// words returns the list of what is tried again. One with a word that nobody knows is left out as a whole.
func (n *controlled) words() []source.Part {
	const key = "proxy-next-upstream"
	for _, list := range []source.Node{n.o.Annotation(nginxPrefix + key), n.config(key)} {
		words := list.Parts(" ")
		if len(words) == 0 {
			continue
		}
		_, unknown := nginx.Words(words, topology.Safe, topology.Value[int]{})
		if len(unknown) == 0 {
			return words
		}
		n.remark("F601", unknown[0].At, n.o.String()+" "+key, "ingress-nginx knows no "+strconv.Quote(unknown[0].Text)+
			" here, and leaves out the whole list", nginx.Meant(unknown[0].Text))
	}
	return []source.Part{{Text: "error", At: n.at}, {Text: "timeout", At: n.at}}
}

var triesOfGRPC = regexp.MustCompile(`\bgrpc_next_upstream_tries\s+(\d{1,6})\s*;`)

// ofGRPC is what is repeated of calls of gRPC. ingress-nginx writes no directive for them, so nginx's own list holds,
// whose number of tries is without a limit, and its balancer asks for a try more at each. Every call is a POST, so it
// is repeated only while nothing of it was sent.
func (n *controlled) ofGRPC() []topology.Repeat {
	tries := topology.DefaultOf(topology.Unbounded, n.who+", which sets no grpc_next_upstream_tries", n.at)
	for _, snippet := range []source.Node{n.o.Annotation(nginxPrefix + "configuration-snippet"),
		n.o.Annotation(nginxPrefix + "server-snippet"), n.config("location-snippet"), n.config("server-snippet"),
		n.config("http-snippet")} {
		if m := triesOfGRPC.FindStringSubmatch(snippet.Text()); m != nil {
			if number, _ := strconv.Atoi(m[1]); number > 0 {
				tries = topology.Write(number, snippet.At())
			}
			break
		}
	}
	for _, key := range []string{"proxy-next-upstream", "proxy-next-upstream-tries", "proxy-next-upstream-timeout"} {
		if a := n.o.Annotation(nginxPrefix + key); a.Exists() {
			n.remark("F602", a.At(), n.o.String()+" "+key, key+" has no effect on calls of gRPC: ingress-nginx writes it "+
				"for HTTP only", "write grpc_next_upstream_tries 3; into "+nginxPrefix+"configuration-snippet")
		}
	}
	list := []source.Part{{Text: "error", At: n.at}, {Text: "timeout", At: n.at}}
	repeats, _ := nginx.Words(list, 0, tries)
	return repeats
}

// setting reads a value of the Ingress, or of the ConfigMap of the controller.
func setting[T topology.Scalar](n *controlled, key string, parse func(string) (T, error)) topology.Value[T] {
	v := dropped(n.reader, n.o.Annotation(nginxPrefix+key), n.o.String()+" "+key, parse)
	if !v.IsZero() {
		return v
	}
	v = dropped(n.reader, n.config(key), "ConfigMap "+key, parse)
	if v.Origin == topology.Written {
		v = topology.Inherit(v.V, v.At, "the ConfigMap of ingress-nginx")
	}
	return v
}
