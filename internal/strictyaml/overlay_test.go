package strictyaml_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/strictyaml"
)

const base = `services:
  shop: {workers: 4, calls: [pay], steps: {scan: {cost: 1}}}
  pay: {workers: 2, queue: {limit: 9, order: fifo}}
limits: {depth: 1, width: 2}
`

func TestAnOverlayChangesACopy(t *testing.T) {
	got, at := decode(t, base+"variants:\n  v:\n    services: {pay: {queue: {limit: 3}}, shop: {calls: [{to: mail}], "+
		"steps: {pack: , scan: {cost: 5}}}}\n    limits: {width: 7}\n")
	before, _ := decode(t, base)
	services, lim := got.Services, got.Limits
	at.DecodeNode("variants.v.services", got.Variants[0].Services, &services)
	at.DecodeNode("variants.v.limits", got.Variants[0].Limits, &lim)
	if errs := at.Errors(); errs != nil {
		t.Fatal(errs)
	}
	want := []service{
		{Name: "shop", Workers: 4, Calls: []call{{To: "mail"}}, Steps: []step{{"scan", 5}, {Name: "pack"}}},
		{Name: "pay", Workers: 2, Queue: queue{3, "fifo"}}}
	if !reflect.DeepEqual(services, want) || lim != (limits{1, 7}) {
		t.Errorf("got  %+v %+v\nwant %+v", services, lim, want)
	}
	if !reflect.DeepEqual(got.Services, before.Services) || got.Limits != before.Limits {
		t.Errorf("the base has changed: %+v", got.Services)
	}
	if line, col := at.Place("variants.v.services.pay.queue.limit"); line != 7 || col != 37 {
		t.Errorf("the overlaid limit is at %d:%d", line, col)
	}
	at.DecodeNode("variants.v.more", nil, &lim)
	at.DecodeNode("variants.v.more", &got.Policy, &lim)
	if at.Errors() != nil || at.Has("variants.v.more") {
		t.Error("a node that is not there says something")
	}
}

func TestAnOverlayKnowsOnlyTheNamesOfItsBase(t *testing.T) {
	for _, c := range []struct{ overlay, want string }{
		{"{pya: {}, mail: {}}", `6:18: variants.v.services: no such service "pya"; did you mean pay?` + "\n" +
			`6:27: variants.v.services: no such service "mail"; allowed: shop, pay`},
		{"{pay: {workers: 0}, pay: {}}", "6:33: variants.v.services.pay.workers: 0 is out of range; allowed: 1 to 100; for " +
			"example 8\n" +
			`6:37: variants.v.services: duplicate service "pay"; it stands on line 6 already: remove one of the two`},
		{"{pay: {limit: 1}}", `6:24: variants.v.services.pay: unknown key "limit"; limit belongs in the section queue`},
		{"[]", "6:17: variants.v.services: a list is not a mapping; write the name of each service, a colon, and a mapping " +
			"of: workers, queue, calls, steps"},
		{"", "6:17: variants.v.services: has no value; write {} or remove the key"},
	} {
		got, at := decode(
			t, strings.TrimSuffix(base, "limits: {depth: 1, width: 2}\n")+"variants:\n\n  v: {services: "+c.overlay+"}")
		services := got.Services
		at.DecodeNode("variants.v.services", got.Variants[0].Services, &services)
		if got := complaints(at.Errors()); got != c.want {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", c.overlay, got, c.want)
		}
		if len(services) != 2 {
			t.Errorf("%s: %+v", c.overlay, services)
		}
	}
}

func TestLongListsOfNamesAreCut(t *testing.T) {
	names := make([]string, 45)
	for i := range names {
		names[i] = strings.Repeat("z", i+1)
	}
	got := strictyaml.Suggest("abcdefgh", names)
	if !strings.HasSuffix(got, names[39]+", and 5 more") || strings.Contains(got, names[40]) {
		t.Errorf("got %s", got)
	}
}

// FuzzDecode: no input panics, and every mistake has a place inside the file.
func FuzzDecode(f *testing.F) {
	f.Add(good)
	f.Add(base + "variants: {v: {services: {pay: {queue: {limit: 3}}}, limits: {width: 7}}}\n")
	for _, c := range mistakes {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p plant
		at, _ := form.Decode("p.yaml", []byte(text), &p)
		for i, v := range p.Variants {
			services, lim := p.Services, p.Limits
			at.DecodeNode("variants."+v.Name+".services", v.Services, &services)
			at.DecodeNode("variants."+v.Name+".limits", v.Limits, &lim)
			if len(services) != len(p.Services) || i > 20 {
				break
			}
		}
		at.DecodeNode("policy", &p.Policy, &limits{})
		at.Add("services.nobody.queue", "is not there", "")
		lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") +
			strings.Count(text, "\u2028") + strings.Count(text, "\u2029")
		last := 0
		for _, e := range at.Errors() {
			if e.Line == 0 && strings.HasPrefix(e.Problem, "and more") {
				continue
			}
			if e.Line < max(1, last) || e.Line > lines || e.Col < 1 || e.Problem == "" || len(e.Error()) > 8<<10 {
				t.Fatalf("%d lines, after line %d: %+v", lines, last, e)
			}
			last = e.Line
		}
	})
}
