package tidy

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
)

// fn is something that runs: a function, a method, a function literal, the initial value of a package's
// variable, or what is not ours.
type fn struct {
	name  string
	file  *goFile          // nil if it is not ours
	decl  ast.Node         // nil if it is not ours
	sig   *types.Signature // nil for a variable
	outer *fn              // of a literal: the function around it
	act   string           // what it does to the world, "" for what does nothing
	use   string           // instead of it
	calls []call
}

// call is a place where a function calls another or mentions it: what is mentioned may be called by whoever gets it.
type call struct {
	to    *fn
	at    token.Pos
	named bool // mentioned, and not called here
}

// graph is who calls whom in the programs of a tree, as far as the types tell.
type graph struct {
	*typed
	byDecl   map[ast.Node]*fn     // function literals
	byObject map[types.Object]*fn // functions, methods, and variables of packages
	byAct    map[string]*fn
	concrete []types.Type // that are no interfaces
	impls    map[method][]*types.Func
	within   map[types.Type][]types.Type // interfaces
	allowed  func(name string) bool      // a port, behind which everything is its user's
	polled   map[ast.Node]bool           // operations on channels that do not block, or are a select's
	deferred map[*ast.CallExpr]bool
	operands map[ast.Node]bool // what is called
	locks    []lock
	flow     flow
	used     map[string]bool // ports that there are
}

// method is one of an interface.
type method struct {
	of   types.Type
	name string
}

// lock is a place where a mutex is locked or unlocked.
type lock struct {
	in       *fn
	mutex    types.Object
	at       token.Pos
	unlocks  bool
	deferred bool
}

// connect finds out who calls whom. allowed is asked for the names of interfaces and of fields.
func connect(p *typed, allowed func(name string) bool) *graph {
	g := &graph{
		typed: p, allowed: allowed,
		byDecl: make(map[ast.Node]*fn), byObject: make(map[types.Object]*fn), byAct: make(map[string]*fn),
		within: make(map[types.Type][]types.Type),
		impls:  make(map[method][]*types.Func), polled: make(map[ast.Node]bool), deferred: make(map[*ast.CallExpr]bool),
		operands: make(map[ast.Node]bool),
		flow:     flow{vals: make(map[any]*val)},
	}
	for _, f := range g.programs {
		for _, d := range f.ast.Decls {
			g.declare(f, d)
		}
	}
	g.collect()
	for _, f := range g.programs {
		for _, d := range f.ast.Decls {
			g.enter(d)
		}
	}
	g.flow.settle()
	return g
}

// collect finds the types that may be in an interface: those with a name, and structs without one that embed others.
func (g *graph) collect() {
	at := make(map[types.Type]token.Pos)
	for id, obj := range g.info.Defs {
		if name, ok := obj.(*types.TypeName); ok && !name.IsAlias() && !types.IsInterface(name.Type()) {
			at[name.Type()] = id.Pos()
		}
	}
	for e, tv := range g.info.Types {
		if s, ok := tv.Type.(*types.Struct); ok && types.NewMethodSet(types.NewPointer(s)).Len() > 0 {
			at[s] = e.Pos()
		}
	}
	g.concrete = slices.SortedFunc(maps.Keys(at), func(a, b types.Type) int { return cmp.Compare(at[a], at[b]) })
}

// declare makes what a declaration declares.
func (g *graph) declare(f *goFile, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		obj := g.info.Defs[d.Name].(*types.Func)
		made := &fn{name: nameOf(obj), file: f, decl: d, sig: obj.Signature()}
		g.byObject[obj] = made
		g.declareLiterals(made, d)
		if d.Body == nil {
			made.calls = append(made.calls, call{to: g.actOf("a body that is not Go", "Go"), at: d.Pos()})
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			spec, ok := spec.(*ast.ValueSpec)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for i, name := range spec.Names {
				made := &fn{name: f.ast.Name.Name + "." + name.Name, file: f, decl: spec}
				g.byObject[g.info.Defs[name]] = made
				if i < len(spec.Values) {
					g.declareLiterals(made, spec.Values[i])
				}
			}
		}
	}
}

func (g *graph) declareLiterals(outer *fn, in ast.Node) {
	ast.Inspect(in, func(n ast.Node) bool {
		lit, ok := n.(*ast.FuncLit)
		if !ok {
			return true
		}
		made := &fn{name: "a literal in " + outermost(outer).name, file: outer.file, decl: lit, outer: outer}
		made.sig, _ = g.info.TypeOf(lit).(*types.Signature)
		g.byDecl[lit] = made
		g.declareLiterals(made, lit.Body)
		return false
	})
}

func outermost(f *fn) *fn {
	for f.outer != nil {
		f = f.outer
	}
	return f
}

// nameOf is what a report calls a function or variable: package, type, name.
func nameOf(obj types.Object) string {
	name := obj.Name()
	if f, ok := obj.(*types.Func); ok && f.Signature().Recv() != nil {
		if t := typeName(f.Signature().Recv().Type()); t != nil {
			name = t.Name() + "." + name
		}
	}
	if obj.Pkg() == nil {
		return name
	}
	if _, isOurs := folder(obj.Pkg().Path()); isOurs {
		return obj.Pkg().Name() + "." + name
	}
	return obj.Pkg().Path() + "." + name
}

// typeName is the name of a type or of what it points to, nil if it has none.
func typeName(t types.Type) *types.TypeName {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		return t.Obj()
	case *types.TypeParam:
		return t.Obj()
	}
	return nil
}

// fieldName is a field with the type that it is one of, as types that somebody has named.
func (g *graph) fieldName(sel *ast.SelectorExpr, s *types.Selection) string {
	of := s.Recv()
	for _, i := range s.Index()[:len(s.Index())-1] {
		of = fieldOf(of, i).Type()
	}
	return portName(of) + "." + sel.Sel.Name
}

func fieldOf(t types.Type, i int) *types.Var {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.Underlying().(*types.Struct).Field(i)
}

// actOf is something that is done to the world without calling anybody of ours.
func (g *graph) actOf(what, use string) *fn {
	f, ok := g.byAct[what]
	if !ok {
		f = &fn{name: what, act: what, use: use}
		g.byAct[what] = f
	}
	return f
}

// object is the function for a function or a variable of a package, whoever's it is.
func (g *graph) object(obj types.Object) *fn {
	if f, ok := obj.(*types.Func); ok {
		obj = f.Origin()
	}
	if f, ok := g.byObject[obj]; ok {
		return f
	}
	if obj.Pkg() == nil { // error.Error
		return g.harmless("of the language")
	}
	f := &fn{name: nameOf(obj)}
	f.sig, _ = obj.Type().(*types.Signature)
	f.act, f.use = worldly(obj)
	g.byObject[obj] = f
	return f
}

// harmless is a function that only computes, of which nothing else is known.
func (g *graph) harmless(name string) *fn {
	f, ok := g.byAct[name]
	if !ok {
		f = &fn{name: name}
		g.byAct[name] = f
	}
	return f
}

// enter walks through a declaration.
func (g *graph) enter(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			g.walk(g.byObject[g.info.Defs[d.Name]], d.Body)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			spec, ok := spec.(*ast.ValueSpec)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for i, name := range spec.Names {
				if len(spec.Values) > 0 {
					g.walk(g.byObject[g.info.Defs[name]], spec.Values[min(i, len(spec.Values)-1)])
				}
			}
			g.define(spec)
		}
	}
}

// walk notes what a function does in a part of its body.
func (g *graph) walk(in *fn, part ast.Node) {
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			lit := g.byDecl[n]
			in.calls = append(in.calls, call{lit, n.Pos(), !g.operands[n]})
			g.walk(lit, n.Body)
			return false
		case *ast.Ident:
			g.mention(in, n, !g.operands[n])
		case *ast.SelectorExpr:
			g.selects(in, n)
			g.walk(in, n.X)
			return false
		case *ast.CallExpr:
			g.called(in, n)
		case *ast.DeferStmt:
			g.deferred[n.Call] = true
		default:
			g.blocks(in, n)
			g.carry(in, n)
		}
		return true
	})
}

// blocks notes goroutines and operations on channels.
func (g *graph) blocks(in *fn, n ast.Node) {
	act := func(what, use string) { in.calls = append(in.calls, call{to: g.actOf(what, use), at: n.Pos()}) }
	const decide = "a decision that a driver carries out"
	switch n := n.(type) {
	case *ast.GoStmt:
		act("a go statement", decide)
	case *ast.SendStmt:
		if !g.polled[n] {
			act("a send on a channel", decide)
		}
	case *ast.UnaryExpr:
		if n.Op == token.ARROW && !g.polled[n] {
			act("a receive from a channel", decide)
		}
	case *ast.SelectStmt:
		waits := true
		for _, clause := range n.Body.List {
			comm := clause.(*ast.CommClause).Comm
			waits = waits && comm != nil
			g.poll(comm)
		}
		if waits {
			act("a select without default", decide)
		}
	case *ast.RangeStmt:
		switch t := core(g.info.TypeOf(n.X)).(type) {
		case *types.Chan:
			act("a receive from a channel", decide)
		case *types.Signature:
			g.dynamic(in, n.X, t, nil, nil)
		}
	}
}

// poll takes the operation of a select's case for one that does not block: the select does.
func (g *graph) poll(comm ast.Stmt) {
	switch comm := comm.(type) {
	case *ast.SendStmt:
		g.polled[comm] = true
	case *ast.ExprStmt:
		g.polled[ast.Unparen(comm.X)] = true
	case *ast.AssignStmt:
		g.polled[ast.Unparen(comm.Rhs[0])] = true
	}
}

// mention notes the use of a function or of a package's variable.
func (g *graph) mention(in *fn, id *ast.Ident, named bool) {
	switch obj := g.info.Uses[id].(type) {
	case *types.Func:
		in.calls = append(in.calls, call{g.object(obj), id.Pos(), named})
	case *types.Var:
		if obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope() {
			in.calls = append(in.calls, call{g.object(obj), id.Pos(), true})
		}
	}
}

// selects notes the use of a method, or of something of another package.
func (g *graph) selects(in *fn, sel *ast.SelectorExpr) {
	s, ok := g.info.Selections[sel]
	if !ok {
		g.mention(in, sel.Sel, !g.operands[sel])
		return
	}
	if m, ok := s.Obj().(*types.Func); ok {
		for _, to := range g.targets(s.Recv(), m) {
			in.calls = append(in.calls, call{to, sel.Sel.Pos(), !g.operands[sel]})
		}
	}
}

// portName is how lists call an interface, "" if it has no name.
func portName(t types.Type) string {
	name := typeName(t)
	if name == nil || name.Pkg() == nil {
		return ""
	}
	return path.Base(name.Pkg().Path()) + "." + name.Name()
}

// targets are the functions that a method of a type may be: one, or those of all types that implement the interface.
func (g *graph) targets(of types.Type, m *types.Func) []*fn {
	recv := m.Signature().Recv().Type()
	if !types.IsInterface(recv) {
		return []*fn{g.object(m)}
	}
	if !types.IsInterface(of) { // it embeds the interface; of a type parameter this is its constraint
		of = recv
	}
	for _, t := range []types.Type{of, recv} {
		if name := portName(t); name != "" && (g.allowed(name) || g.allowed(name+"."+m.Name())) {
			return []*fn{g.harmless("a user's " + name)}
		}
	}
	var all []*fn
	if _, isOurs := g.oursOf(m); !isOurs && !harmlessInterface(of) {
		all = append(all, g.object(m))
	}
	for _, impl := range g.implementations(of, m) {
		all = append(all, g.object(impl))
	}
	if _, isOurs := g.oursOf(m); isOurs && len(all) == 0 && !g.allowed(nameOf(m)) {
		return []*fn{g.actOf(nameOf(m)+", which only users have,", "an entry in ports of internal/tidy/pure_test.go")}
	}
	return all
}

func (g *graph) oursOf(obj types.Object) (string, bool) {
	if obj.Pkg() == nil {
		return "", false
	}
	return folder(obj.Pkg().Path())
}

// implementations are the methods, of all types of ours that implement an interface, that its method may be.
func (g *graph) implementations(of types.Type, m *types.Func) []*types.Func {
	key := method{of, m.Name()}
	found, ok := g.impls[key]
	if ok {
		return found
	}
	g.impls[key] = nil
	for _, t := range g.concrete {
		p := types.NewPointer(t)
		obj, _, _ := types.LookupFieldOrMethod(p, true, m.Pkg(), m.Name())
		impl, ok := obj.(*types.Func)
		if !ok || !implements(p, t, of) {
			continue
		}
		if recv := impl.Signature().Recv().Type(); types.IsInterface(recv) {
			found = append(found, g.implementations(recv, impl)...) // of an interface that t embeds
			continue
		}
		found = append(found, impl)
	}
	g.impls[key] = found
	return found
}

// implements reports whether p, which points to a t, may be in a variable of an interface's type. With type
// parameters, names decide.
func implements(p *types.Pointer, t, of types.Type) bool {
	iface := of.Underlying().(*types.Interface)
	if !hasTypeParam(t) && !hasTypeParam(of) && iface.IsMethodSet() {
		return types.Implements(p, iface)
	}
	for m := range iface.Methods() {
		if obj, _, _ := types.LookupFieldOrMethod(p, true, m.Pkg(), m.Name()); obj == nil {
			return false
		}
	}
	return true
}
