package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// room is a part of a package: files that belong together. What is declared in a room may be used in it and in the
// rooms above, nowhere below.
type room struct {
	name  string
	files string // without .go, with a space between
}

// rooms lists the rooms of packages that are too large to be read as one, from the bottom up. Every file has one.
var rooms = map[string][]room{
	"proxy": {
		{"the wire", "backlog_linux backlog_other buffer clock config fieldmarks fields grpcstatus lendingconn " +
			"credentials listen listen_linux listen_other loglines mark_linux mark_other sharing socket_blind socket_linux " +
			"silence socket_other socket_unix streamconn tunnel watched"},
		{"services", "approach checkup checkupmetrics endpoint finding fleet handshake http2_pool outside pool post " +
			"question route screen secrets transport upstreamconn upstreamslots"},
		{"the plane", "plane"},
		{"the request", "arrival calltree calltreeingress client ingressfields keyed path request requestrpc strangers " +
			"traced"},
		{"its content", "content http2_feed upload"},
		{"the attempt", "answer attempt attempthead attemptspan framing handed http2_send http2_upstream upstream verdict " +
			"websocket"},
		{"the guarded call", "call hedge judge"},
		{"the reply", "grpc_answer problem refusal reply"},
		{"the transfer", "degrade keyedpass transfer transfer_grpc transfer_raw"},
		{"the exchange", "accesslog callspan claim connect exchange ingress outcome"},
		{"clients", "clientsocket conn conn_client http2 http2_tunnel output redirected requestbody"},
		{"the lobby", "announced clientslots discoverymetrics door hosts lobby metrics roost_linux roost_other " +
			"tunnelmetrics"},
		{"administration", "admin adminauth admingates adminoutside adminpage entrances health instances " +
			"profiles"},
		{"the proxy", "doc proxy"},
	},
	"adapter/abatekafka": {
		{"messages and identity", "doc message messageid chain forward panic reporter logger"},
		{"handled once", "onceclaim onceid once"},
		{"clients", "samepartition clients"},
		{"topics and names", "preflightfindings preflightnames preflightlook preflightcreate preflightcheck " +
			"preflightgroups preflight"},
		{"delivery and verdict", "service recent park deliverycontext delivery pending verdict deliverer"},
		{"the partition's work", "backlog ring window intake pauses alarm partition closing send worker inspect"},
		{"the session with the brokers", "troubles transactoffsets transact parkings session lag poison commit " +
			"rebalance poll"},
		{"the whole", "watch running consumer"},
	},
}

// plan is the rooms of packages, by their folders.
type plan map[string][]room

// of returns the number of a file's room, from the bottom up; -1 for none.
func (p plan) of(f *goFile) int {
	name := strings.TrimSuffix(path.Base(f.path), ".go")
	return slices.IndexFunc(p[f.dir], func(r room) bool { return slices.Contains(strings.Fields(r.files), name) })
}

// upward finds what is used below the room that declares it, and files without a room.
func (p plan) upward(t *tree) []finding {
	c := newChecker(t)
	var found []finding
	for dir := range p {
		if len(c.folders[dir]) == 0 {
			continue
		}
		if _, err := c.Import(ours + "/" + dir); err != nil {
			return []finding{{dir, 1, err.Error()}}
		}
	}
	for _, f := range t.files {
		if p[f.dir] != nil && !f.test && p.of(f) < 0 {
			found = append(found, finding{f.path, 1, "the file has no room; see rooms in internal/tidy/rooms_test.go"})
		}
	}
	home := make(map[string]*goFile)
	for _, f := range c.programs {
		home[f.path] = f
	}
	for _, f := range c.programs {
		if p.of(f) < 0 {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				found = append(found, p.use(c, f, id, home)...)
			}
			return true
		})
	}
	return found
}

// use finds out whether an identifier means something of a room above.
func (p plan) use(c *checker, f *goFile, id *ast.Ident, home map[string]*goFile) []finding {
	obj := c.info.Uses[id]
	if obj == nil || !obj.Pos().IsValid() {
		return nil
	}
	at := home[c.fset.Position(obj.Pos()).Filename]
	if at == nil || at.dir != f.dir || p.of(at) <= p.of(f) {
		return nil
	}
	return []finding{{f.path, c.line(id), fmt.Sprintf("use of %s, which is above: %q is a room below %q",
		id.Name, p[f.dir][p.of(f)].name, p[f.dir][p.of(at)].name)}}
}

func TestRoomsKnowNothingOfThoseAbove(t *testing.T) { holds(t, plan(rooms).upward) }

func TestRoomsRuleFails(t *testing.T) {
	two := plan{"proxy": {{"below", "a"}, {"above", "b c"}}}
	const decl = "package proxy\n\ntype T struct{ F int }\n\nfunc (T) M() {}\n"
	provoke(t, two.upward, []example{
		{"down", "", source{"proxy/a.go": decl, "proxy/b.go": "package proxy\n\nvar x T\n"}},
		{"along", "", source{"proxy/c.go": decl, "proxy/b.go": "package proxy\n\nvar x T\n"}},
		{"up, a type", `proxy/a.go:3: error: use of T, which is above: "below" is a room below "above"`,
			source{"proxy/b.go": decl, "proxy/a.go": "package proxy\n\nvar x T\n"}},
		{"up, a method", "proxy/a.go:5: error: use of M", source{
			"proxy/a.go": "package proxy\n\ntype T struct{}\n\nfunc f(x T) { x.M() }\n",
			"proxy/b.go": "package proxy\n\nfunc (T) M() {}\n",
		}},
		{"no room", "proxy/d.go:1: error: the file has no room", source{"proxy/d.go": "package proxy\n"}},
		{"a test is free", "", source{"proxy/b.go": decl, "proxy/a_test.go": "package proxy\n\nvar x T\n"}},
	})
}
