package engine_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms are the files of the engine from the bottom up: see the package comment. A file may use what files before it
// declare, and what its own line does.
var rooms = [][]string{
	{"doc.go"},
	{"slab.go"}, {"herd.go"}, {"line.go"}, {"load.go"}, {"topology.go"}, {"world.go"},
	{"histogram.go"},
	{"record.go", "topicrecord.go", "worldrecord.go", "sessionrecord.go", "classrecord.go", "worldvalue.go", "value.go",
		"lasting.go", "blank.go"},
	{"failure.go"}, {"family.go"}, {"trace.go"},
	{"recorder.go", "detail.go"},
	{"traffic.go", "tree.go", "chance.go"},
	{"replica.go"}, {"fleetlimit.go"}, {"gate.go"}, {"server.go", "given.go", "handshake.go", "ready.go"},
	{"guards.go"}, {"sharing.go", "finding.go"}, {"balance.go", "checks.go"}, {"pool.go", "dial.go"}, {"session.go"},
	{"else.go"}, {"shelf.go"}, {"cache.go"}, {"call.go", "fetch.go"}, {"request.go"},
	{"consumer.go", "deliver.go"},
	{"fleet.go"}, {"faults.go"}, {"lives.go", "autoscale.go"}, {"engine.go", "ahead.go", "climb.go"},
}

// upwards are the functions that a lower room calls although an upper one has set them.
var upwards = []string{"calls.ended", "requests.ended", "servers.begin"}

// sealed refuses all imports: names of other packages stay unknown, and those of this one are all that matters.
type sealed struct{}

func (sealed) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

func TestArrowsBetweenRoomsRunDown(t *testing.T) {
	level := make(map[string]int)
	for i, files := range rooms {
		for _, name := range files {
			level[name] = i
		}
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset, files := token.NewFileSet(), []*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if _, ok := level[name]; !ok {
			t.Errorf("%s is in no room", name)
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: sealed{}, Error: func(error) {}}
	pkg, _ := config.Check("engine", fset, files, &info)

	arrows := 0
	for id, used := range info.Uses {
		if used.Pkg() != pkg || !used.Pos().IsValid() {
			continue
		}
		from, to := fset.Position(id.Pos()), fset.Position(used.Pos()).Filename
		if from.Filename != to {
			arrows++
		}
		if level[from.Filename] < level[to] {
			t.Errorf("%s uses %s of %s, which is above it", from, id.Name, to)
		}
	}
	if arrows < 500 { // else the names were not resolved
		t.Errorf("%d arrows between files were found", arrows)
	}
	if got := functionsOf(info.Defs); !slices.Equal(got, upwards) {
		t.Errorf("functions in fields are %q, want %q: each of them is an arrow that runs up", got, upwards)
	}
}

// functionsOf lists the fields of structs in which others can put functions.
func functionsOf(defs map[*ast.Ident]types.Object) []string {
	found := make(map[string]bool)
	for _, def := range defs {
		name, ok := def.(*types.TypeName)
		if !ok {
			continue
		}
		s, ok := name.Type().Underlying().(*types.Struct)
		for i := 0; ok && i < s.NumFields(); i++ {
			if _, is := s.Field(i).Type().(*types.Signature); is && name.Name()+"."+s.Field(i).Name() != "arrival.wake" {
				found[name.Name()+"."+s.Field(i).Name()] = true // arrival.wake pushes an event of its own room
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
