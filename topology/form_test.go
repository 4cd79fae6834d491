package topology_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/topology"
)

func at(line, column int) topology.Position {
	return topology.Position{File: "app.yaml", Line: line, Column: column}
}

// shop is a form in which every kind of value occurs with every origin.
func shop() topology.Form {
	return topology.Form{
		Services: []topology.Service{
			{Name: "orders.shop", At: at(1, 1), Aliases: []string{"orders.internal:8080"},
				Rate:        topology.Assume(50.5, "nothing measured it"),
				OwnTime:     topology.Write(20*time.Millisecond, at(3, 4)),
				AnswersWith: topology.Write("500", at(4, 4))},
			{Name: "db", Database: true, Replicas: topology.NotKnown[int]("template {{ .Values.n }}", at(9, 2))},
		},
		Calls: []topology.Call{{From: "orders.shop", To: "db", At: at(5, 1), Layers: []topology.Layer{{
			Kind: topology.SidecarOut, Product: "istio", At: at(6, 1),
			Version: topology.DefaultOf("1.27", "abate audit", topology.Position{}),
			Repeats: []topology.Repeat{{On: []topology.Outcome{topology.Refused, topology.S503, topology.Unavailable},
				Methods: topology.Safe, Word: "5xx", At: at(7, 3),
				Tries: topology.DefaultOf(3, "Istio 1.24 and later", at(6, 1))}},
			PerTry:  topology.Inherit(2*time.Second, at(2, 2), "virtual host shop"),
			Overall: topology.DefaultOf(time.Duration(0), "Istio", at(6, 1)),
			Cancels: topology.Write(true, at(8, 1)),
			Budget:  topology.Budget{Ratio: topology.Write(0.2, at(8, 2))},
			Answers: []topology.Answer{{After: topology.Hang, Gives: topology.S504}},
		}}}},
		Policies: []topology.Policy{{Callees: []string{"orders"}, Namespace: "shop",
			Layer: topology.Layer{Kind: topology.Client, At: at(10, 1),
				Repeats: []topology.Repeat{{On: []topology.Outcome{topology.Hang}, At: at(10, 1),
					Tries: topology.Write(topology.Unbounded, at(10, 9))}}}}},
		Remarks: []topology.Remark{{Rule: "F601", At: at(11, 5), Subject: "x", Text: "nobody knows x", Fix: "remove it"}},
	}
}

func TestAFormIsReadAsItWasWritten(t *testing.T) {
	want := shop()
	text := want.YAML()
	got, err := topology.Parse("topology.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// What has no place of its own gets that of the file it was read from.
	got.Services[1].At, got.Policies[0].Layer.At = topology.Position{}, at(10, 1)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%s\nwant\n%s", got.YAML(), text)
	}
}

func TestAValueWithoutASourceStandsWhereItIsWritten(t *testing.T) {
	f, err := topology.Parse("calls.yaml", []byte(`calls:
- from: checkout
  to: orders
  layers:
  - kind: client
    perTry: 2s
    repeats:
    - on: [hang]
      tries: 3
`))
	if err != nil {
		t.Fatal(err)
	}
	l := f.Calls[0].Layers[0]
	for _, c := range []struct{ got, want string }{
		{l.PerTry.Source(), "calls.yaml:6:13"},
		{l.Repeats[0].Tries.Source(), "calls.yaml:9:14"},
		{f.Calls[0].At.String(), "calls.yaml:2:3"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestBadFormsSayWhereAndWhat(t *testing.T) {
	_, err := topology.Parse("t.yaml", []byte(`calls:
- from: a
  to: b
  perRequest: -1
  layers:
  - kind: proxy
    perTry: 2
    retries: 3
    repeats: [{on: [timeout], tries: many}]
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`t.yaml:4:15:`, `"-1" is no number`, `"proxy" is no kind of layer`, `"2" is no duration`, `retries`,
		`no outcome is called "timeout"`, `"many" is no whole number`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

// It would count as no repeats at all, and nobody would hear of it.
func TestARuleWithoutTriesIsAMistake(t *testing.T) {
	for at, text := range map[string]string{
		"t.yaml:1:60: calls[0].layers[0].repeats[0]": "calls: " +
			"[{from: a, to: b, layers: [{kind: client, repeats: [{on: [refused]}]}]}]",
		"policies[0].layer.repeats[1]": "calls: [{from: a, to: b}]\npolicies: [{callees: [b], " +
			"layer: {kind: client, repeats: [{on: [refused], tries: 2}, {on: [hang]}]}}]",
	} {
		_, err := topology.Parse("t.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "tries: 3") {
			t.Errorf("%v, want a mistake at %s", err, at)
		}
	}
	known := "calls: [{from: a, to: b, layers: [{kind: client, repeats: [{on: [refused], tries: unknown}]}]}]"
	if _, err := topology.Parse("t.yaml", []byte(known)); err != nil {
		t.Error(err)
	}
}

func TestWhatNoServiceSpeaksIsAMistake(t *testing.T) {
	const call = "calls: [{from: a, to: b, layers: [{kind: client, speaks: GRPC}]}]"
	for at, text := range map[string]string{
		"t.yaml:1:30: services[0].speaks":             "services: [{name: b, speaks: foo}]",
		"t.yaml:1:58: calls[0].layers[0].speaks":      call,
		"policies[0].layer.speaks: \"17\" is nothing": "policies: [{callees: [b], layer: {kind: client, speaks: 17}}]",
	} {
		_, err := topology.Parse("t.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "grpc, http or other") {
			t.Errorf("%v, want a mistake at %s", err, at)
		}
	}
	if _, err := topology.Parse("t.yaml", []byte("services: [{name: b, speaks: unknown}]")); err != nil {
		t.Error(err)
	}
}

func FuzzFormsAreReadWithoutAPanicAndWrittenTheSame(f *testing.F) {
	f.Add(shop().YAML())
	f.Add([]byte("calls: [{from: a, to: b, perRequest: unknown (template)}]"))
	f.Add([]byte("calls: [{from: a, to: b, layers: [{kind: client, repeats: [{on: [refused]}]}]}]")) // no tries
	f.Fuzz(func(t *testing.T, data []byte) {
		form, err := topology.Parse("t.yaml", data)
		if err != nil {
			return
		}
		again, err := topology.Parse("t.yaml", form.YAML())
		if err != nil {
			t.Fatalf("%v\n%s", err, form.YAML())
		}
		if a, b := string(form.YAML()), string(again.YAML()); a != b {
			t.Fatalf("written\n%s\nthen\n%s", a, b)
		}
	})
}
