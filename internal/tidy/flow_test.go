package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
)

// flow is which functions may be in which variables. A field is one variable, whatever it is a field of, and
// so is what a map, slice or channel holds.
type flow struct {
	vals  map[any]*val // by variable (types.Object), result, or composite literal
	taken val          // every function that is used as a value
	queue []arrived
	calls []*dynamic
}

// val is a place where functions can be.
type val struct {
	has  map[*fn]bool
	to   []*val
	used []*dynamic
}

type arrived struct {
	at *val
	f  *fn
}

// result is one of a function (a *fn) or of a call (an *ast.CallExpr).
type result struct {
	of any
	i  int
}

// dynamic is a call of whatever is in a variable.
type dynamic struct {
	g    *graph
	in   *fn
	at   token.Pos
	name string
	sig  *types.Signature
	args []ast.Expr
	call *ast.CallExpr // nil if somebody else calls, with arguments that nobody knows
	met  map[*fn]bool

	optional bool // whoever calls does so if there is something to call
}

// at returns the place called so.
func (f *flow) at(key any) *val {
	v, ok := f.vals[key]
	if !ok {
		v = new(val)
		f.vals[key] = v
	}
	return v
}

// add puts a function into a place.
func (f *flow) add(v *val, in *fn) {
	if v.has[in] {
		return
	}
	if v.has == nil {
		v.has = make(map[*fn]bool)
	}
	v.has[in] = true
	f.queue = append(f.queue, arrived{v, in})
}

// edge lets everything that is in one place, or will be, be in another, too.
func (f *flow) edge(from, to *val) {
	if from == nil || to == nil || from == to {
		return
	}
	from.to = append(from.to, to)
	for in := range from.has {
		f.add(to, in)
	}
}

// settle moves functions until there are no news.
func (f *flow) settle() {
	for len(f.queue) > 0 {
		last := f.queue[len(f.queue)-1]
		f.queue = f.queue[:len(f.queue)-1]
		for _, to := range last.at.to {
			f.add(to, last.f)
		}
		for _, d := range last.at.used {
			d.meet(last.f)
		}
	}
}

// dynamic notes a call of what is in a variable.
func (g *graph) dynamic(in *fn, fun ast.Expr, sig *types.Signature, args []ast.Expr, c *ast.CallExpr) {
	v := g.value(argument{fun, 0})
	if v == nil {
		return
	}
	g.callOf(v, &dynamic{g: g, in: in, at: fun.Pos(), name: types.ExprString(fun), sig: sig, args: args, call: c})
}

// callOf notes a call of what is in a place.
func (g *graph) callOf(v *val, d *dynamic) {
	d.met = make(map[*fn]bool)
	g.flow.calls = append(g.flow.calls, d)
	v.used = append(v.used, d)
	for f := range v.has {
		d.meet(f)
	}
}

// meet notes that a function may be called here.
func (d *dynamic) meet(f *fn) {
	if d.met[f] || !fits(d.sig, f) {
		return
	}
	d.met[f] = true
	d.in.calls = append(d.in.calls, call{to: f, at: d.at})
	if d.call != nil && f.decl != nil {
		d.g.bind(f, d.args, d.call)
	}
}

// fits reports whether a function may be in a variable of this type.
func fits(sig *types.Signature, f *fn) bool {
	if f.sig == nil {
		return true
	}
	given := f.sig.Params().Len()
	if sig.Params().Len() != given {
		return f.sig.Recv() != nil && sig.Params().Len() == given+1 // a method expression
	}
	if f.sig.RecvTypeParams() != nil || f.sig.TypeParams() != nil || hasTypeParam(sig) || hasTypeParam(f.sig) {
		return true
	}
	return types.Identical(sig, f.sig)
}

// hasTypeParam reports whether a type parameter is somewhere in a type.
func hasTypeParam(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return true
	case interface{ Elem() types.Type }:
		return hasTypeParam(t.Elem())
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			if hasTypeParam(arg) {
				return true
			}
		}
		return t.TypeParams() != nil && t.TypeArgs() == nil
	case *types.Signature:
		return hasTypeParam(t.Params()) || hasTypeParam(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			if hasTypeParam(v.Type()) {
				return true
			}
		}
	}
	return false
}

// carries reports whether functions may be in a variable of type t, other than in its fields.
func carries(t types.Type) bool { return carriesWithin(t, 6) }

// carriesWithin looks so many types deep, because a type may contain itself.
func carriesWithin(t types.Type, depth int) bool {
	if depth == 0 {
		return false
	}
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam, *types.Signature:
		return true
	case *types.Map:
		return carriesWithin(t.Elem(), depth-1) || carriesWithin(t.Key(), depth-1)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		return carriesWithin(t.Elem(), depth-1)
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			if carriesWithin(arg, depth-1) {
				return true
			}
		}
		if _, isStruct := t.Underlying().(*types.Struct); !isStruct {
			return carriesWithin(t.Underlying(), depth-1)
		}
	}
	return false
}

func (g *graph) typeOf(a argument) types.Type {
	t := g.info.TypeOf(a.expr)
	if several, ok := t.(*types.Tuple); ok && several.Len() > a.index {
		return several.At(a.index).Type()
	}
	return t
}

// value is the place of what is handed over, nil if no functions are in it.
func (g *graph) value(a argument) *val {
	t := g.typeOf(a)
	if t == nil || !carries(t) {
		return nil
	}
	switch e := ast.Unparen(a.expr).(type) {
	case *ast.FuncLit:
		return g.one(e, g.byDecl[e])
	case *ast.Ident:
		return g.named(e, g.info.ObjectOf(e))
	case *ast.SelectorExpr:
		return g.selected(e)
	case *ast.IndexExpr:
		return g.inner(e.X)
	case *ast.IndexListExpr:
		return g.inner(e.X)
	case *ast.StarExpr:
		return g.inner(e.X)
	case *ast.UnaryExpr:
		return g.inner(e.X)
	case *ast.SliceExpr:
		return g.inner(e.X)
	case *ast.CompositeLit:
		return g.flow.at(e)
	case *ast.CallExpr:
		if g.info.Types[ast.Unparen(e.Fun)].IsType() {
			return g.inner(e.Args[0])
		}
		return g.flow.at(result{e, a.index})
	}
	return &g.flow.taken // out of an interface
}

// inner is the place of what an expression is made of.
func (g *graph) inner(e ast.Expr) *val {
	if t, ok := g.info.TypeOf(e).(*types.Tuple); ok && t.Len() > 0 {
		return g.value(argument{e, 0})
	}
	if v := g.value(argument{e, 0}); v != nil || g.info.Types[e].IsNil() {
		return v
	}
	return &g.flow.taken
}

// one is a place with one function in it.
func (g *graph) one(key any, f *fn) *val {
	v := g.flow.at(key)
	g.flow.add(v, f)
	g.flow.add(&g.flow.taken, f)
	return v
}

func (g *graph) named(key any, obj types.Object) *val {
	switch obj := obj.(type) {
	case *types.Func:
		return g.one(key, g.object(obj))
	case *types.Var:
		v := g.flow.at(obj.Origin())
		if _, isOurs := g.oursOf(obj); !isOurs {
			g.flow.add(v, g.object(obj))
		}
		return v
	}
	return nil // nil
}

func (g *graph) selected(e *ast.SelectorExpr) *val {
	s, ok := g.info.Selections[e]
	if !ok {
		return g.named(e, g.info.ObjectOf(e.Sel))
	}
	if m, ok := s.Obj().(*types.Func); ok {
		for _, f := range g.targets(s.Recv(), m) {
			g.one(e, f)
		}
		return g.flow.at(e)
	}
	if name := g.fieldName(e, s); g.allowed(name) {
		return g.one(e, g.harmless("a user's "+name))
	}
	return g.named(e, s.Obj())
}

// assign lets what is handed over be in a variable of type t.
func (g *graph) assign(to types.Object, t types.Type, a argument) {
	from := g.value(a)
	if from == nil {
		return
	}
	if v, ok := to.(*types.Var); ok {
		g.flow.edge(from, g.flow.at(v.Origin()))
	}
	g.receive(t, from)
}

// receive lets functions of a type that has methods be their receivers.
func (g *graph) receive(t types.Type, from *val) {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return
	}
	if _, isFunc := n.Underlying().(*types.Signature); isFunc {
		for m := range n.Origin().Methods() {
			g.flow.edge(from, g.flow.at(m.Signature().Recv()))
		}
	}
}

// store lets what is handed over be where an expression says.
func (g *graph) store(to ast.Expr, a argument) {
	from := g.value(a)
	if from == nil {
		return
	}
	if id, ok := to.(*ast.Ident); ok && id.Name == "_" {
		return
	}
	if t := g.info.TypeOf(to); t != nil && carries(t) {
		g.flow.edge(from, g.value(argument{to, 0}))
		g.receive(t, from)
	}
}

// carry notes where a statement or literal puts functions.
func (g *graph) carry(in *fn, n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		g.assignAll(n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		g.define(n)
	case *ast.SendStmt:
		g.store(n.Chan, argument{n.Value, 0})
	case *ast.RangeStmt:
		g.iterate(n)
	case *ast.ReturnStmt:
		for i, a := range g.spread(n.Results) {
			g.flow.edge(g.value(a), g.flow.at(result{in, i}))
			g.receive(in.sig.Results().At(i).Type(), g.value(a))
		}
		if named := in.sig.Results(); len(n.Results) == 0 {
			for i := range named.Len() {
				g.flow.edge(g.flow.at(named.At(i)), g.flow.at(result{in, i}))
			}
		}
	case *ast.CompositeLit:
		g.compose(n)
	case *ast.CaseClause:
		if v := g.info.Implicits[n]; v != nil && carries(v.Type()) { // what a type switch has taken out of an interface
			g.flow.edge(&g.flow.taken, g.flow.at(v))
		}
	}
}

func (g *graph) assignAll(to, from []ast.Expr) {
	all := g.spread(from)
	for i, e := range to[:min(len(to), len(all))] {
		g.store(e, all[i])
	}
}

func (g *graph) define(spec *ast.ValueSpec) {
	to := make([]ast.Expr, len(spec.Names))
	for i, id := range spec.Names {
		to[i] = id
	}
	g.assignAll(to, spec.Values)
}

// iterate lets the variables of a loop be what it goes over.
func (g *graph) iterate(n *ast.RangeStmt) {
	_, calls := g.info.TypeOf(n.X).Underlying().(*types.Signature)
	for _, e := range []ast.Expr{n.Key, n.Value} {
		if e == nil {
			continue
		}
		if id, ok := e.(*ast.Ident); ok && id.Name == "_" {
			continue
		}
		if t := g.info.TypeOf(e); t == nil || !carries(t) {
			continue
		}
		from := g.value(argument{n.X, 0})
		if calls || from == nil {
			from = &g.flow.taken
		}
		g.flow.edge(from, g.value(argument{e, 0}))
	}
}

// compose lets fields and elements be what a literal puts there.
func (g *graph) compose(n *ast.CompositeLit) {
	t := g.info.TypeOf(n)
	if p, ok := t.Underlying().(*types.Pointer); ok { // an element of []*T{{...}}
		t = p.Elem()
	}
	fields, isStruct := t.Underlying().(*types.Struct)
	for i, e := range n.Elts {
		var key ast.Expr
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			key, e = kv.Key, kv.Value
		}
		switch {
		case !isStruct:
			g.flow.edge(g.value(argument{e, 0}), g.flow.at(n))
			if key != nil {
				g.flow.edge(g.value(argument{key, 0}), g.flow.at(n))
			}
		case key != nil:
			if field, ok := g.info.Uses[key.(*ast.Ident)].(*types.Var); ok {
				g.assign(field, field.Type(), argument{e, 0})
			}
		default:
			g.assign(fields.Field(i), fields.Field(i).Type(), argument{e, 0})
		}
	}
}

// convert lets functions have the methods of the type they are converted to, and fields those of another type.
func (g *graph) convert(c *ast.CallExpr) {
	to, from := g.info.TypeOf(c), g.info.TypeOf(c.Args[0])
	if v := g.value(argument{c.Args[0], 0}); v != nil {
		g.receive(to, v)
	}
	a, ok := to.Underlying().(*types.Struct)
	b, also := from.Underlying().(*types.Struct)
	for i := 0; ok && also && i < a.NumFields() && i < b.NumFields(); i++ {
		if carries(a.Field(i).Type()) {
			g.flow.edge(g.flow.at(b.Field(i).Origin()), g.flow.at(a.Field(i).Origin()))
		}
	}
}

// builtin lets append and copy put functions.
func (g *graph) builtin(c *ast.CallExpr) {
	for _, e := range c.Args {
		if g.info.Types[e].IsType() {
			continue
		}
		v := g.value(argument{e, 0})
		g.flow.edge(v, g.flow.at(result{c, 0}))
		if v != nil {
			g.flow.edge(v, g.value(argument{c.Args[0], 0}))
		}
	}
}
