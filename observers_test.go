package abate_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
)

// teller is an observer that notes its name. Two with one name are equal.
type teller struct {
	name string
	to   *strings.Builder
}

func (w teller) Observe(abate.Event)           { w.to.WriteString(w.name) }
func (w teller) ObserveGate(inbound.GateEvent) { w.to.WriteString(w.name) }

// lists are observers put together: a letter is one, "-" none, a list one that is made of several.
var lists = []struct {
	of   []any
	told string
}{
	{[]any{}, ""},
	{[]any{"-", "-"}, ""},
	{[]any{"a"}, "a"},
	{[]any{"-", "a", "-"}, "a"},
	{[]any{"a", "b", "c", "d"}, "abcd"},
	{[]any{[]any{"a", "b"}, []any{"c", []any{"d"}}}, "abcd"},
	{[]any{[]any{[]any{"a", "b"}, "-", "c"}, "d"}, "abcd"},
	{[]any{"a", "b", "a"}, "ba"},
	{[]any{"b", []any{"a", "b"}}, "ab"},
	{[]any{[]any{"c", "a"}, []any{"a", "b"}}, "cab"},
}

func built[O any](of any, join func(...O) O, one func(name string) O) (o O) {
	switch of := of.(type) {
	case string:
		if of != "-" {
			o = one(of)
		}
	case []any:
		var parts []O
		for _, part := range of {
			parts = append(parts, built(part, join, one))
		}
		o = join(parts...)
	}
	return o
}

// hears puts the lists together, and checks whom they tell and that they are equal if they tell the same.
func hears[O any](t *testing.T, join func(...O) O, one func(teller) O, tell func(O)) {
	to := new(strings.Builder)
	made := map[string]any{"": nil, "a": teller{"a", to}}
	for _, l := range lists {
		to.Reset()
		o := built(l.of, join, func(name string) O { return one(teller{name, to}) })
		if any(o) != nil {
			tell(o)
		}
		if to.String() != l.told {
			t.Errorf("%v tells %q, want %q", l.of, to, l.told)
		}
		if same, seen := made[l.told]; seen && any(o) != same {
			t.Errorf("%v is not equal to another that tells %q", l.of, l.told)
		}
		made[l.told] = o
	}
}

func TestSeveralObserversAreToldInTheirOrderEachOnce(t *testing.T) {
	hears(t, abate.Observers, func(w teller) abate.Observer {
		return w
	}, func(o abate.Observer) { o.Observe(abate.Event{}) })
	hears(t, inbound.GateObservers, func(w teller) inbound.GateObserver {
		return w
	}, func(o inbound.GateObserver) { o.ObserveGate(inbound.GateEvent{}) })
}

func TestObserversThatCannotBeComparedAreToldAsOftenAsTheyAreThere(t *testing.T) {
	n := 0
	count := abate.ObserverFunc(func(abate.Event) { n++ })
	plain := new(recording)
	o := abate.Observers(count, plain, count)
	if o = abate.Observers(plain, o); reflect.ValueOf(o).Comparable() {
		t.Error("a list with a function is comparable: to compare it would panic")
	}
	if o.Observe(abate.Event{}); n != 2 || len(*plain) != 1 {
		t.Errorf("the function was told %d times, want 2; the other %d times, want 1", n, len(*plain))
	}
}

func TestTellingSeveralObserversAllocatesNothing(t *testing.T) {
	to := new(strings.Builder)
	to.Grow(1 << 20)
	o := abate.Observers(teller{"a", to}, teller{"b", to}, teller{"c", to})
	g := inbound.GateObservers(teller{"a", to}, teller{"b", to}, teller{"c", to})
	if n := testing.AllocsPerRun(1000, func() { o.Observe(abate.Event{}); g.ObserveGate(inbound.GateEvent{}) }); n != 0 {
		t.Errorf("two events allocate %v times", n)
	}
}

// silent is an observer that costs nothing.
type silent struct{ _ int }

func (*silent) Observe(abate.Event) {}

func BenchmarkObservers(b *testing.B) {
	for name, o := range map[string]abate.Observer{
		"one": new(silent), "two": abate.Observers(new(silent), new(silent)),
		"four": abate.Observers(new(silent), new(silent), new(silent), new(silent)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.Observe(abate.Event{})
			}
		})
	}
}

func TestTellsFindsWhoIsToldWhoeverMadeTheList(t *testing.T) {
	to := new(strings.Builder)
	a, b, c := teller{"a", to}, teller{"b", to}, teller{"c", to}
	count := abate.ObserverFunc(func(abate.Event) {})
	for _, l := range []struct {
		list, of abate.Observer
		told     bool
	}{
		{nil, a, false}, {a, a, true}, {a, b, false}, {a, nil, false}, {nil, nil, false},
		{abate.Observers(a, b), b, true}, {abate.Observers(c, abate.Observers(a, b)), a, true},
		{abate.Observers(a, b), c, false},
		{abate.Observers(count, a), a, true}, {count, a, false}, {count, count, false},
	} {
		if core.Reaches(l.list, l.of) != l.told {
			t.Errorf("%v in %v: want %v", l.of, l.list, l.told)
		}
	}
}
