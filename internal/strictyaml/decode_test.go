package strictyaml_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
)

const good = `x-queue: &queue {limit: 5, order: lifo}
title: north
runs: 7
seed: 18446744073709551615
offset: -9223372036854775808
share: 30%
factor: 2.5
wait: 1m30s
skew: -10ms
fast: true
mode: closed
tags: [a, b]
marks: [1s, 0]
expect: [recovery < 10s, "goodput(after) > 95%"]
first: "1 > 0"
faults: [{at: 5s, kind: down}, {at: 6s}]
services:
  shop:
    workers: 4
    calls: [pay, {to: mail, optional: true}]
    steps: {scan: {cost: 2}, pack: }
  pay:
    queue: *queue
  a.b: {<<: {workers: 9}}
policy: {defaults: {maxRetries: 3}}
variants:
  small: {services: {pay: {workers: 1}}}
`

func TestEveryKindIsRead(t *testing.T) {
	got, at := decode(t, good)
	got.Policy, got.Variants = yaml.Node{}, nil
	want := plant{
		Title:  "north",
		Runs:   7,
		Seed:   math.MaxUint64,
		Offset: math.MinInt64,
		Share:  0.3,
		Factor: 2.5,
		Wait:   90 * time.Second,
		Skew:   -10 * time.Millisecond,
		Fast:   true,
		Mode:   "closed",
		Tags:   []string{"a", "b"},
		Marks:  []time.Duration{time.Second, 0},
		Expect: []claim{{"recovery < 10s"}, {"goodput(after) > 95%"}},
		First:  claim{"1 > 0"},
		Faults: []fault{{5 * time.Second, "down"}, {At: 6 * time.Second}},
		Services: []service{
			{Name: "shop", Workers: 4, Calls: []call{{To: "pay"}, {"mail", true}}, Steps: []step{{"scan", 2}, {Name: "pack"}}},
			{Name: "pay", Queue: queue{5, "lifo"}},
			{Name: "a.b", Workers: 9},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for path, want := range map[string]string{
		"title": "2:8", "services": "18:3", "services.shop": "18:3", "services.shop.calls[1].optional": "20:39",
		"services.shop.calls[0]": "20:13", "services.shop.calls[0].to": "20:13", "services.pay.queue.limit": "1:25",
		"services.a.b.workers": "24:23", "marks[1]": "13:13", "faults[1].at": "16:37", "expect[1]": "14:26",
		"services.shop.queue.limit": "18:3", "services.pay.calls": "22:3", "faults[1].kind": "16:32",
		"nothing": "1:1", "": "1:1",
	} {
		line, col := at.Place(path)
		if got := fmt.Sprintf("%d:%d", line, col); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
	if !at.Has("services.shop.calls[0].to") || at.Has("services.shop.calls[0].optional") || at.Has("limits") ||
		at.Has("faults[2]") {
		t.Error("Has tells of a key that is not there, or misses one")
	}
}

func TestWhatIsThereAlreadyStays(t *testing.T) {
	first := []service{{Name: "pay", Workers: 3, Queue: queue{9, "fifo"}}, {Name: "mail", Workers: 2}}
	got := plant{Runs: 50, Limits: limits{1, 2}, Tags: []string{"old"}, Services: first}
	_, errs := form.Decode("p.yaml",
		[]byte("limits: {width: 5}\ntags: [new]\nservices: {shop: {workers: 1}, pay: {queue: {limit: 4}}}"), &got)
	want := plant{Runs: 50, Limits: limits{1, 5}, Tags: []string{"new"},
		Services: []service{
			{Name: "pay", Workers: 3, Queue: queue{4, "fifo"}}, {Name: "mail", Workers: 2}, {Name: "shop", Workers: 1},
		}}
	if errs != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", errs, got, want)
	}
	if first[0].Queue.Limit != 9 {
		t.Error("the slice that was there was written to")
	}
}

func TestRawFieldsAreTakenAsTheyAre(t *testing.T) {
	got, _ := decode(t, "x-p: &p {defaults: {maxRetries: 3}}\npolicy: *p\nvariants: {a: {services: }, b: {}, c: "+
		"{services: [1]}}")
	if n := got.Policy; n.Kind != yaml.MappingNode || n.Line != 1 || n.Content[0].Value != "defaults" {
		t.Errorf("policy: %+v", n)
	}
	a, b, c := got.Variants[0].Services, got.Variants[1].Services, got.Variants[2].Services
	if a == nil || !strictyaml.IsNull(a) || b != nil || c.Kind != yaml.SequenceNode {
		t.Errorf("variants: %+v %+v %+v", a, b, c)
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	for _, c := range mistakes {
		var p plant
		at, errs := form.Decode("p.yaml", []byte(c.text), &p)
		if got := complaints(errs); got != strings.Join(c.want, "\n") {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", c.text, got, strings.Join(c.want, "\n"))
		}
		if at == nil || !reflect.DeepEqual(at.Errors(), errs) {
			t.Errorf("%s: the Positions know of other mistakes", c.text)
		}
	}
}

const allowedNames = "allowed: 1 to 253 printable characters without spaces around; for example payment-service"

var mistakes = []struct {
	text string
	want []string
}{
	{"", []string{"1:1: the file is empty; it needs a title; for example title: north"}},
	{"[]", []string{"1:1: a list is not a mapping; it needs a title; for example title: north"}},
	{"title: a\n---\ntitle: b", []string{
		"3:1: a second YAML document begins here; one file holds one plant: remove what follows the ---",
	}},
	{"title: a\n---", []string{
		"2:1: a second YAML document begins here; one file holds one plant: remove what follows the ---",
	}},
	{"title: a\n title: b", []string{
		"2:2: not valid YAML: mapping values are not allowed in this context; look at this line and the one before it: a " +
			"colon, the space after it, or the indentation is wrong",
	}},
	{"titel: a\nx-: 1\n[]: 1", []string{
		`1:1: unknown key "titel"; did you mean title?`,
		`2:1: unknown key "x-"; allowed: title, runs, seed, offset, share, factor, wait, skew, fast, mode, tags, marks, ` +
			`expect, first, faults, services, policy, variants, limits`,
		`3:1: a list cannot be a key; keys are plain words, for example title`}},
	{"title: a\ntitle: b", []string{`2:1: duplicate key "title"; it stands on line 1 already: remove one of the two`}},
	{"limits: &a {<<: *a}", []string{"1:17: limits: this is merged into itself; remove this alias"}},
	{"runs: 0\nseed: -1\noffset: 9223372036854775808", []string{
		"1:7: runs: 0 is out of range; allowed: 1 to 1000; for example 100",
		"2:7: seed: -1 is out of range; allowed: at least 0",
		"3:9: offset: 9223372036854775808 is out of range"}},
	{"seed: 18446744073709551616\noffset: 1.5\nruns: 010", []string{
		"1:7: seed: 18446744073709551616 is out of range; allowed: at least 0",
		"2:9: offset: the number 1.5 is not a whole number",
		"3:7: runs: 010 could mean 8 or 10; write it without the leading zero"}},
	{"seed: -99999999999999999999", []string{"1:7: seed: -99999999999999999999 is out of range; allowed: at least 0"}},
	{"share: 130%\nfactor: 30%", []string{
		"1:8: share: 130% is out of range; allowed: 0 to 1; for example 30%",
		`2:9: factor: the text "30%" is not a number; allowed: 1 to 10`}},
	{"share: -1%\nfactor: 250%", []string{
		"1:8: share: -1% is out of range; allowed: 0 to 1; for example 30%",
		`2:9: factor: the text "250%" is not a number; write 2.5`}},
	{"share: 0x1p3%", []string{
		`1:8: share: the text "0x1p3%" is not a number or a percentage; allowed: 0 to 1; for example 30%`,
	}},
	{"share: half", []string{
		`1:8: share: the text "half" is not a number or a percentage; allowed: 0 to 1; for example 30%`,
	}},
	{"share: .nan\nfactor: 1e999", []string{
		"1:8: share: .nan is not a finite number; allowed: 0 to 1; for example 30%",
		"2:9: factor: 1e999 is out of range; allowed: 1 to 10"}},
	{"wait: -1s\nskew: -2m\nmarks: [1s, -1s, 2, [3]]", []string{
		"1:7: wait: -1s is out of range; allowed: at least 0s; for example 5s",
		"2:7: skew: -2m is out of range; allowed: -1m to 1m; for example -10ms",
		"3:13: marks[1]: -1s is out of range; allowed: 0s to 1h; for example [1s, 2s]",
		`3:18: marks[2]: 2 has no unit; write "2s" for seconds or "2ms" for milliseconds; allowed: 0s to 1h; for example ` +
			`[1s, 2s]`,
		"3:21: marks[3]: a list is not a duration; allowed: 0s to 1h; for example [1s, 2s]"}},
	{"fast: yes please\nmode: opened\ntags: a", []string{
		`1:7: fast: the text "yes please" is not true or false; allowed: true or false`,
		`2:7: mode: "opened" is not known; did you mean open? allowed: open, closed`,
		`3:7: tags: the text "a" is not a list`}},
	{"expect: [maybe, a < b, plain, {a: b}, ]\nfirst: ''", []string{
		`1:10: expect[0]: "maybe" compares nothing; write < or >`,
		`1:24: expect[2]: is plainly; wrong; for example ["recovery < 10s"]`,
		`1:31: expect[3]: a mapping is not text; for example ["recovery < 10s"]`,
		"2:8: first: has no value; write text or remove the key"}},
	{"faults: [{at: soon, knd: slow}, down, ]", []string{
		`1:15: faults[0].at: the text "soon" is not a duration; units are ms, s, m and h; allowed: at least 0s`,
		`1:21: faults[0]: unknown key "knd"; did you mean kind?`,
		`1:33: faults[1]: the text "down" is not a mapping; write it as a mapping of: at, kind`}},
	{"services:\n  shop: {calls: [5, [a], {too: b}, ~, \"\"]}", []string{
		`2:18: services.shop.calls[0].to: the number 5 is not text; write it in quotes: "5"`,
		"2:21: services.shop.calls[1]: a list is not a mapping; write text or a mapping of: to, optional",
		`2:27: services.shop.calls[2]: unknown key "too"; did you mean to?`,
		"2:36: services.shop.calls[3].to: has no value; write text or remove the key"}},
	{"services: {a: 3, b: {workers: 0}, a: {}, \" c\": {}, \"\": {}}", []string{
		"1:15: services.a: the number 3 is not a mapping; write it as a mapping of: workers, queue, calls, steps",
		"1:31: services.b.workers: 0 is out of range; allowed: 1 to 100; for example 8",
		`1:35: services: duplicate service "a"; it stands on line 1 already: remove one of the two`,
		`1:42: services: " c" has characters that a name cannot have; ` + allowedNames,
		`1:52: services: "" is no name; ` + allowedNames}},
	{"services: {a: {steps: {b: {}, b: {}}}}", []string{
		`1:31: services.a.steps: duplicate step "b"; it stands on line 1 already: remove one of the two`}},
	{"services:\nlimits:", []string{"1:10: services: has no value; write {} or remove the key"}},
	{"services: [a]\nvariants: a", []string{
		"1:11: services: a list is not a mapping; write the name of each service, a colon, and a mapping of: workers, " +
			"queue, calls, steps",
		`2:11: variants: the text "a" is not a mapping; write the name of each variant, a colon, and a mapping of: ` +
			`services, limits`}},
	{"services: {a: {limit: 3, depth: 1, queue: {workers: 2, runs: 1}}}", []string{
		`1:16: services.a: unknown key "limit"; limit belongs in the section queue`,
		`1:26: services.a: unknown key "depth"; depth belongs in the section limits`,
		`1:44: services.a.queue: unknown key "workers"; workers stands beside the sections, not in one`,
		`1:56: services.a.queue: unknown key "runs"; runs stands beside the sections, not in one`}},
}

func TestSizesAreBounded(t *testing.T) {
	var p plant
	big := append([]byte("title: a\n#"), bytes.Repeat([]byte("x"), strictyaml.MaxBytes)...)
	at, errs := form.Decode("p.yaml", big, &p)
	if got := complaints(errs); got != "1:1: the file is larger than 1 MiB; allowed: at most 1048576 bytes; this is "+
		"hardly a plant file" || at.Has("title") {
		t.Errorf("got %s", got)
	}
	if _, err := form.Read("p.yaml", bytes.NewReader(big)); err == nil || err.Error() != errs.Error() {
		t.Errorf("Read: %v", err)
	}
	if data, err := form.Read("p.yaml", bytes.NewReader(big[:strictyaml.MaxBytes])); err != nil ||
		len(data) != strictyaml.MaxBytes {
		t.Errorf("Read: %v", err)
	}
	var names strings.Builder
	for i := range strictyaml.MaxNames + 1 {
		fmt.Fprintf(&names, "  s%d:\n", i)
	}
	_, errs = form.Decode("p.yaml", []byte("services:\n"+names.String()), &p)
	if got := complaints(errs); got != "10002:3: services: 10001 services are too many; allowed: at most 10000" {
		t.Errorf("got %s", got)
	}
	_, errs = form.Decode("p.yaml", []byte("tags: ["+strings.Repeat("a,", strictyaml.MaxMembers+1)+"]"), &p)
	if got := complaints(errs); got != "1:7: tags: 1001 members are too many; allowed: at most 1000" {
		t.Errorf("got %s", got)
	}
	_, errs = form.Decode("p.yaml", []byte("title: "+strings.Repeat("a", 1025)), &p)
	if got := complaints(errs); got != "1:8: title: 1025 bytes are too long; allowed: at most 1024" {
		t.Errorf("got %s", got)
	}
}

func TestAliasesCannotBlowTheWorkUp(t *testing.T) {
	text := "x-a: &a [" + strings.Repeat("{to: b},", 999) + "]\nservices:\n"
	for i := range 2_000 {
		text += fmt.Sprintf("  s%d: {calls: *a}\n", i)
	}
	var p plant
	_, errs := form.Decode("p.yaml", []byte(text), &p)
	if got := complaints(errs); !strings.HasSuffix(
		got, "the aliases in this file expand to more than 1000000 values; write fewer of them") || len(errs) != 1 {
		t.Errorf("got %s", got)
	}
}

func TestMoreMistakesCanBeAdded(t *testing.T) {
	_, at := decode(t, "title: a\nservices:\n  shop: {queue: {limit: 3}}\nfaults: [{at: 1s}]\n")
	at.Add("faults[0].kind", "is missing", "")
	at.Add("services.shop.queue.order", "does not fit", "write fifo")
	at.Reject("title", "is taken", "")
	at.Add("runs", "is missing", "write runs: 100")
	want := "1:1: runs: is missing; write runs: 100\n1:8: title: is taken\n" +
		"3:17: services.shop.queue.order: does not fit; write fifo\n4:10: faults[0].kind: is missing"
	if got := complaints(at.Errors()); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := at.Failed(); !reflect.DeepEqual(got, []string{"title"}) {
		t.Errorf("failed: %q", got)
	}
	var first strictyaml.Error
	if !errors.As(at.Errors(), &first) || first.Field != "runs" || first.File != "p.yaml" {
		t.Errorf("the first mistake: %+v", first)
	}
}

func TestZerosAndFailuresAreRemembered(t *testing.T) {
	var p plant
	at, _ := form.Decode("p.yaml",
		[]byte("seed: 0\noffset: 0\nshare: 0%\nruns: x\nservices: {a: 1, b: {queu: 1}}\ntags: [b, 1]\ntitl: x\nelse: 1"), &p)
	var zeros []string
	for _, f := range at.Zeros() {
		zeros = append(zeros, f.Path)
	}
	if got, want := fmt.Sprint(zeros, at.Failed()),
		"[seed share] [runs services.a services.b.queue tags[1] title]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnsignedNumbersAreNeverNegative(t *testing.T) {
	var few struct {
		Count uint64 `yaml:"count" range:"..5"`
	}
	_, errs := form.Decode("p.yaml", []byte("count: -1"), &few)
	if got := complaints(errs); got != "1:8: count: -1 is out of range; allowed: at most 5" || few.Count != 0 {
		t.Errorf("%d, %s", few.Count, got)
	}
}

func TestTypesThatNoFileCanHoldPanic(t *testing.T) {
	for _, v := range []any{
		struct {
			A map[string]int `yaml:"a"`
		}{},
		struct {
			A [][]string `yaml:"a"`
		}{},
		struct {
			A []queue `yaml:"a" keyed:"true"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%T is taken", v)
				}
			}()
			strictyaml.ShapeOf(reflect.TypeOf(v))
		}()
	}
}
