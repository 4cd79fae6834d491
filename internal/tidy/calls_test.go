package tidy

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// called notes what a call does with its arguments; that it calls, mention and selects have noted.
func (g *graph) called(in *fn, c *ast.CallExpr) {
	fun := ast.Unparen(c.Fun)
	g.operands[fun] = true
	switch instance := fun.(type) {
	case *ast.IndexExpr:
		g.operands[ast.Unparen(instance.X)] = true
	case *ast.IndexListExpr:
		g.operands[ast.Unparen(instance.X)] = true
	}
	tv := g.info.Types[fun]
	switch {
	case tv.IsType():
		g.convert(c)
		return
	case tv.IsBuiltin():
		g.builtin(c)
		return
	}
	sig, ok := core(tv.Type).(*types.Signature)
	if !ok {
		return
	}
	callees, isStatic := g.callees(fun)
	if !isStatic {
		g.dynamic(in, fun, sig, c.Args, c)
		return
	}
	for _, to := range callees {
		if to.decl != nil {
			g.bind(to, c.Args, c)
		} else {
			g.handOut(in, to, sig, c)
		}
	}
}

// core is what all types that a type may stand for have in common.
func core(t types.Type) types.Type {
	p, ok := types.Unalias(t).(*types.TypeParam)
	if !ok {
		return t.Underlying()
	}
	for e := range p.Constraint().Underlying().(*types.Interface).EmbeddedTypes() {
		if u, ok := e.(*types.Union); ok {
			e = u.Term(0).Type()
		}
		if !types.IsInterface(e) {
			return e.Underlying()
		}
	}
	return t.Underlying()
}

// callees are whom the expression that is called names, if it is no variable.
func (g *graph) callees(fun ast.Expr) ([]*fn, bool) {
	switch fun := fun.(type) {
	case *ast.FuncLit:
		return []*fn{g.byDecl[fun]}, true
	case *ast.Ident:
		if f, ok := g.info.Uses[fun].(*types.Func); ok {
			return []*fn{g.object(f)}, true
		}
	case *ast.SelectorExpr:
		s, ok := g.info.Selections[fun]
		if !ok {
			return g.callees(fun.Sel)
		}
		if m, ok := s.Obj().(*types.Func); ok {
			return g.targets(s.Recv(), m), true
		}
	case *ast.IndexExpr:
		return g.callees(ast.Unparen(fun.X))
	case *ast.IndexListExpr:
		return g.callees(ast.Unparen(fun.X))
	}
	return nil, false
}

// bind hands arguments to the parameters of a function of ours, and its results to the call.
func (g *graph) bind(to *fn, args []ast.Expr, c *ast.CallExpr) {
	if to.sig == nil {
		return
	}
	params := to.sig.Params()
	for i, arg := range g.spread(args) {
		if params.Len() == 0 {
			break
		}
		p := params.At(min(i, params.Len()-1))
		g.assign(p, p.Type(), arg)
	}
	for i := range to.sig.Results().Len() {
		g.flow.edge(g.flow.at(result{to, i}), g.flow.at(result{c, i}))
	}
}

// argument is a value that is handed over: an expression, or one of the results of a call.
type argument struct {
	expr  ast.Expr
	index int
}

// spread are the values of expressions, one of which may be a call with several results.
func (g *graph) spread(exprs []ast.Expr) []argument {
	if len(exprs) == 1 {
		if several, ok := g.info.TypeOf(exprs[0]).(*types.Tuple); ok {
			all := make([]argument, several.Len())
			for i := range all {
				all[i] = argument{exprs[0], i}
			}
			return all
		}
	}
	all := make([]argument, len(exprs))
	for i, e := range exprs {
		all[i] = argument{e, 0}
	}
	return all
}

// handOut notes that somebody else's function gets arguments: it may call functions, and methods by an
// interface, may keep functions where it belongs to, and return them.
func (g *graph) handOut(in *fn, to *fn, sig *types.Signature, c *ast.CallExpr) {
	g.noteLock(in, to, c)
	if to.sig != nil && to.sig.Recv() != nil {
		g.callFields(in, to, c)
	}
	back := g.flow.at(result{c, 0})
	g.flow.add(back, g.harmless("made by "+to.name))
	if sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && g.info.Selections[sel] != nil {
		if kept := g.value(argument{sel.X, 0}); kept != nil {
			g.flow.edge(back, kept)
			g.flow.edge(kept, back)
		}
	}
	for i, arg := range g.spread(c.Args) {
		g.flow.edge(g.value(arg), back)
		t := g.typeOf(arg)
		if isFunc, ok := t.Underlying().(*types.Signature); ok {
			g.dynamic(in, arg.expr, isFunc, nil, nil)
		}
		if p := paramType(sig, i); types.IsInterface(p) {
			g.callBack(in, to, t, p, arg.expr)
		}
	}
	for i := 1; i < sig.Results().Len(); i++ {
		g.flow.edge(back, g.flow.at(result{c, i}))
	}
}

// callFields notes that a method of somebody else's type may call the functions in its fields, as that of
// sync.Pool does.
func (g *graph) callFields(in, to *fn, c *ast.CallExpr) {
	t := to.sig.Recv().Type()
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	fields, ok := t.Underlying().(*types.Struct)
	for i := 0; ok && i < fields.NumFields(); i++ {
		if sig, isFunc := fields.Field(i).Type().Underlying().(*types.Signature); isFunc && fields.Field(i).Exported() {
			d := &dynamic{g: g, in: in, at: c.Pos(), name: to.name, sig: sig, optional: true}
			g.callOf(g.flow.at(fields.Field(i).Origin()), d)
		}
	}
}

func paramType(sig *types.Signature, i int) types.Type {
	n := sig.Params().Len()
	if sig.Variadic() && i >= n-1 {
		if s, ok := sig.Params().At(n - 1).Type().(*types.Slice); ok {
			return s.Elem()
		}
	}
	return sig.Params().At(min(i, n-1)).Type()
}

// byConvention are methods that a package looks for in whatever it gets; those of no package, every other does.
var byConvention = map[string][]string{
	"errors": {"Unwrap", "Is", "As"},
	"fmt":    {"Error", "String", "GoString", "Format"},
	"":       {"Error", "String", "Unwrap", "Is", "As", "MarshalJSON", "MarshalText", "MarshalYAML", "LogValue"},
}

// callBack notes the methods of a t, and of what is in it, that somebody else's function may call, which
// takes it as an interface.
func (g *graph) callBack(in, by *fn, t, iface types.Type, at ast.Expr) {
	pkg, _, _ := strings.Cut(by.name, ".")
	names, ok := byConvention[pkg]
	if !ok {
		names = byConvention[""]
	}
	for m := range iface.Underlying().(*types.Interface).Methods() {
		names = append(slices.Clip(names), m.Name())
	}
	for _, part := range append(g.possible(t), within(t, 4)...) {
		for _, name := range names {
			obj, _, _ := types.LookupFieldOrMethod(part, true, nil, name)
			if m, ok := obj.(*types.Func); ok && !g.other(m) {
				for _, to := range g.targets(part, m) {
					in.calls = append(in.calls, call{to: to, at: at.Pos()})
				}
			}
		}
	}
}

// other reports whether a method of somebody else's has only its name in common with one by convention, as that of
// a testing.T has.
func (g *graph) other(m *types.Func) bool {
	_, isOurs := g.oursOf(m)
	return !isOurs && m.Name() == "Error" && m.Signature().Params().Len() > 0
}

// possible are the types of ours that may be in an interface. In an empty one may be all: then nothing is known.
func (g *graph) possible(t types.Type) []types.Type {
	iface, ok := t.Underlying().(*types.Interface)
	if !ok || iface.Empty() || g.allowed(portName(t)) {
		return nil
	}
	found, ok := g.within[t]
	if !ok {
		for _, c := range g.concrete {
			if p := types.NewPointer(c); implements(p, c, t) {
				found = append(found, p)
			}
		}
		g.within[t] = found
	}
	return found
}

// within are a type and those of its parts, so many levels deep.
func within(t types.Type, depth int) []types.Type {
	all := []types.Type{t}
	if depth == 0 || types.IsInterface(t) {
		return all
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			all = append(all, within(f.Type(), depth-1)...)
		}
	case *types.Map:
		all = append(all, append(within(u.Key(), depth-1), within(u.Elem(), depth-1)...)...)
	case interface{ Elem() types.Type }:
		all = append(all, within(u.Elem(), depth-1)...)
	}
	return all
}

// noteLock notes that a mutex is locked or unlocked.
func (g *graph) noteLock(in, to *fn, c *ast.CallExpr) {
	of, ok := strings.CutPrefix(to.name, "sync.")
	if !ok {
		return
	}
	of, what, _ := strings.Cut(of, ".")
	unlocks := what == "Unlock" || what == "RUnlock"
	if of != "Mutex" && of != "RWMutex" || !unlocks && what != "Lock" && what != "RLock" {
		return
	}
	sel, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	s := g.info.Selections[sel]
	var mutex types.Object
	if path := s.Index(); len(path) > 1 { // of a field without a name
		t := s.Recv()
		for _, i := range path[:len(path)-1] {
			field := fieldOf(t, i)
			mutex, t = field.Origin(), field.Type()
		}
	} else {
		mutex = g.variable(sel.X)
	}
	if mutex != nil {
		g.locks = append(g.locks, lock{in, mutex, c.Pos(), unlocks, g.deferred[c]})
	}
}

// variable is the variable or field that an expression names, nil for another expression.
func (g *graph) variable(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := g.info.ObjectOf(e).(*types.Var); ok {
			return v.Origin()
		}
	case *ast.SelectorExpr:
		if v, ok := g.info.ObjectOf(e.Sel).(*types.Var); ok {
			return v.Origin()
		}
	case *ast.StarExpr:
		return g.variable(e.X)
	case *ast.UnaryExpr:
		return g.variable(e.X)
	case *ast.IndexExpr:
		return g.variable(e.X)
	}
	return nil
}
