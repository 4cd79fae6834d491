package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// room is a part of a package: files that belong together.
type room struct {
	name  string
	files string // without .go, with spaces between them
}

// rooms are the parts of packages that are too large for one idea and too close to be several packages, from the bottom
// up. What is in a room may use what is in the same room and below it, nothing above.
var rooms = map[string][]room{
	"adapter/abatekafka": {
		{"messages and identity", "doc message messageid chain forward panic reporter logger"},
		{"handled once", "once onceclaim onceid"},
		{"clients", "clients samepartition"},
		{"topics and names", "preflightfindings preflightnames preflightlook preflightcreate preflightcheck " +
			"preflightgroups preflight"},
		{"delivery and verdict", "service pending deliverer delivery deliverycontext verdict park recent"},
		{"the partition's work", "window ring backlog pauses alarm intake partition closing worker send inspect"},
		{"the session with the brokers", "troubles transactoffsets transact parkings session lag poison commit " +
			"rebalance poll"},
		{"the whole", "running watch consumer"},
	},
}

// upward finds what a file uses of a room above its own.
func upward(t *tree) (found []finding) {
	c := newChecker(t)
	for _, dir := range slices.Sorted(maps.Keys(rooms)) {
		if len(c.folders[dir]) == 0 {
			continue
		}
		if _, err := c.Import(ours + "/" + dir); err != nil {
			return append(found, finding{path: dir, line: 1, text: err.Error()})
		}
		floor := make(map[string]int)
		for i, r := range rooms[dir] {
			for name := range strings.FieldsSeq(r.files) {
				floor[path.Join(dir, name+".go")] = i
			}
		}
		for _, f := range c.folders[dir] {
			found = append(found, c.above(f, rooms[dir], floor)...)
		}
	}
	return found
}

// above finds what one file uses of the rooms above it.
func (c *checker) above(f *goFile, all []room, floor map[string]int) (found []finding) {
	mine, ok := floor[f.path]
	if !ok {
		return []finding{{f.path, 1, "is in no room: list it in rooms"}}
	}
	seen := make(map[types.Object]bool)
	ast.Inspect(f.ast, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		obj := c.info.Uses[id]
		if obj == nil || !obj.Pos().IsValid() || seen[obj] {
			return true
		}
		at, known := floor[c.fset.Position(obj.Pos()).Filename]
		if known && at > mine {
			seen[obj] = true // once for each file
			found = append(found, finding{f.path, c.line(id), fmt.Sprintf(
				"%s is in the room %q, above %q", obj.Name(), all[at].name, all[mine].name)})
		}
		return true
	})
	return found
}

func TestRoomsKnowNothingOfThoseAbove(t *testing.T) { holds(t, upward) }

func TestRoomRuleFails(t *testing.T) {
	tree := func(low, high string) source {
		const dir = "adapter/abatekafka/"
		return source{dir + "message.go": "package p\n\n" + low, dir + "running.go": "package p\n\n" + high}
	}
	const high = "type top struct{ n int }\n\nfunc (top) run() {}\n\nfunc start() { new(message).read() }\n"
	provoke(t, upward, []example{
		{"arrows down", "", tree("type message struct{}\n\nfunc (*message) read() {}\n", high)},
		{"a call up", "adapter/abatekafka/message.go:5: error: start is in the room",
			tree("type message struct{}\n\nfunc (*message) read() { start() }\n", high)},
		{"a type from above", "adapter/abatekafka/message.go:3: error: top is in the room",
			tree("type message struct{ t *top }\n\nfunc (*message) read() {}\n", high)},
		{"a value of a type from above", "adapter/abatekafka/message.go:5: error: start is in the room",
			tree("type message struct{}\n\nvar read = start\n\nfunc (*message) read() {}\n", high)},
		{"a file in no room", "adapter/abatekafka/else.go:1: error: is in no room",
			source{"adapter/abatekafka/else.go": "package p\n"}},
	})
}
