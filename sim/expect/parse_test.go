package expect_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/expect"
)

func TestReadsEveryForm(t *testing.T) {
	tests := []struct {
		text, canonical string
		want            expect.Expectation
	}{
		{"recovery < 10s in 99% of runs", "recovery < 10s in 99% of runs",
			expect.Expectation{Measure: "recovery", Op: expect.Below, Value: 10, Share: 0.99}},
		{"amplification(payment-db) < 1.2", "amplification(payment-db) < 1.2 in 90% of runs",
			expect.Expectation{Measure: "amplification", Subject: "payment-db", Op: expect.Below, Value: 1.2, Share: 0.9}},
		{"goodput(after) > 95%", "goodput(after) > 95% in 90% of runs",
			expect.Expectation{Measure: "goodput", Window: expect.After, Op: expect.Above, Value: 0.95, Share: 0.9}},
		{"collapse < 1%", "collapse < 1%", expect.Expectation{Measure: "collapse", Op: expect.Below, Value: 0.01}},
		{"collapse >= 90%", "collapse >= 90%", expect.Expectation{Measure: "collapse", Op: expect.AtLeast, Value: 0.9}},
		{"latency(p99, after) < 800ms", "latency(p99, after) < 800ms in 90% of runs",
			expect.Expectation{Measure: "latency", Quantile: 0.99, Window: expect.After, Op: expect.Below, Value: 0.8,
				Share: 0.9}},
		{"latency(after,checkout,p99.9)<=1m30s", "latency(p99.9, checkout, after) <= 1m30s in 90% of runs",
			expect.Expectation{Measure: "latency", Subject: "checkout", Quantile: 0.999, Window: expect.After, Op: expect.AtMost,
				Value: 90, Share: 0.9}},
		{"queueWait(payment-db, after) < 100ms", "queueWait(payment-db, after) < 100ms in 90% of runs",
			expect.Expectation{Measure: "queueWait", Subject: "payment-db", Window: expect.After, Op: expect.Below, Value: 0.1,
				Share: 0.9}},
		{"queueWait(db, p99) < 1ns", "queueWait(p99, db) < 1ns in 90% of runs",
			expect.Expectation{Measure: "queueWait", Subject: "db", Quantile: 0.99, Op: expect.Below, Value: 1e-9, Share: 0.9}},
		{"attempts(payment-db, during) < 11,000.5/s", "attempts(payment-db, during) < 11000.5/s in 90% of runs",
			expect.Expectation{
				Measure: "attempts", Subject: "payment-db", Window: expect.During, Op: expect.Below, Value: 11000.5, Share: 0.9,
			}},
		{"  queue( db , all )  <  1,000,000\tin 99.95% of runs ", "queue(db) < 1000000 in 99.95% of runs",
			expect.Expectation{Measure: "queue", Subject: "db", Op: expect.Below, Value: 1e6, Share: 0.9995}},
		{"waste(db.v2/eu:1, before) > 7%", "waste(db.v2/eu:1, before) > 7% in 90% of runs",
			expect.Expectation{Measure: "waste", Subject: "db.v2/eu:1", Window: expect.Before, Op: expect.Above, Value: 0.07,
				Share: 0.9}},
		{"shed(db,after,SHEDDABLE_PLUS) < 5%", "shed(db, SHEDDABLE_PLUS, after) < 5% in 90% of runs",
			expect.Expectation{Measure: "shed", Subject: "db", Priority: "SHEDDABLE_PLUS", Window: expect.After,
				Op: expect.Below, Value: 0.05, Share: 0.9}},
		{"retries <= 0/s", "retries <= 0/s in 90% of runs", expect.Expectation{
			Measure: "retries", Op: expect.AtMost, Share: 0.9,
		}},
		{"collapse( batch ) <1%", "collapse(batch) < 1%",
			expect.Expectation{Measure: "collapse", Subject: "batch", Op: expect.Below, Value: 0.01}},
		{"recovery(batch) < 10s", "recovery(batch) < 10s in 90% of runs",
			expect.Expectation{Measure: "recovery", Subject: "batch", Op: expect.Below, Value: 10, Share: 0.9}},
		{"recovery > 60s", "recovery > 1m0s in 90% of runs", expect.Expectation{
			Measure: "recovery", Op: expect.Above, Value: 60, Share: 0.9,
		}},
	}
	for _, tt := range tests {
		tt.want.Text = strings.TrimSpace(tt.text)
		got, err := expect.Parse(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("Parse(%q) = %+v, %v\nwant %+v", tt.text, got, err, tt.want)
		}
		if got.String() != tt.canonical {
			t.Errorf("%q is %q, want %q", tt.text, got, tt.canonical)
		}
		roundTrip(t, got)
	}
}

// roundTrip checks that the canonical text means the same.
func roundTrip(t *testing.T, e expect.Expectation) {
	t.Helper()
	text, err := e.MarshalText()
	if err != nil {
		t.Fatalf("%+v is written as %q, which does not read: %v", e, e.String(), err)
	}
	var again expect.Expectation
	if err := again.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	if again.Text != string(text) {
		t.Errorf("Text is %q, want %q", again.Text, text)
	}
	if again.Text = e.Text; again != e {
		t.Errorf("%q reads as %+v, want %+v", text, again, e)
	}
}

func TestSaysWhatIsWrongAndHowToFixIt(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "column 1: there is no expectation; for example goodput(after) > 95% in 99% of runs"},
		{"godput > 95%", `column 1: "godput" is not a measure; did you mean goodput?`},
		{"Recovery < 10s", `column 1: "Recovery" is not a measure; did you mean recovery?`},
		{"goodput after > 95%", `column 1: "goodput after" is not a measure; put what it is about in brackets: ` +
			`goodput(after)`},
		{"95% < goodput", `column 1: "95%" is not a measure; the measure comes first, then the comparison, then the value: ` +
			`for example goodput(after) > 95% in 99% of runs`},
		{"> 95%", "column 1: there is no measure before the '>'; for example goodput(after) > 95% in 99% of runs"},
		{"recovery 10s", "column 9: there is no comparison; write <, <=, > or >= between the measure and its value, for " +
			"example recovery < 10s in 99% of runs"},
		{"recovery = 10s", `column 10: "=" is not a comparison; what is measured is never exactly a value: write < or >`},
		{"recovery ≤ 10s", `column 10: "≤" is not a comparison; write <=`},
		{"recovery => 10s", `column 10: "=>" is not a comparison; write >=`},
		{"5s < recovery < 10s",
			`column 1: "5s" is not a measure; the measure comes first, then the comparison, then the value: for ` +
				`example goodput(after) > 95% in 99% of runs
column 15: there is a second comparison; write two expectations, one per line`},
		{"latency(p99", `column 8: a bracket has no partner; is this a part of a YAML list in [ ], where a comma ends a ` +
			`member? Then put the whole in quotes: ["latency(p99, after) < 800ms"]`},
		{"after) < 800ms", `column 6: a bracket has no partner; is this a part of a YAML list in [ ], where a comma ends a ` +
			`member? Then put the whole in quotes: ["latency(p99, after) < 800ms"]`},
		{"goodput(after > 95%", "column 8: the bracket is not closed; write ) after the last argument"},
		{"goodput(after) x > 95%", `column 15: "x" is not expected here; a comparison follows the bracket`},
		{"goodput() > 95%", "column 8: there is nothing in the brackets; leave them out, or say what the measure is about"},
		{"goodput(after,) > 95%", "column 15: there is an argument too few; put one name between two commas"},
		{"goodput(After) > 95%", `column 9: "After" is not a window; write after`},
		{"goodput(after, before) > 95%",
			"column 16: before is a second window after after; write one expectation per window"},
		{"goodput(a, b) > 95%", `column 12: "b" is a second name after "a"; write one expectation per line`},
		{"goodput(a b) > 95%", `column 9: "a b" is not a name; names have no spaces, brackets or comparisons and at most ` +
			`100 bytes; a comma stands between two arguments`},
		{"goodput(CRITICAL) > 1%", "column 9: goodput has no priority; write goodput([fleet][, window])"},
		{"shed(db, CRITICAL, SHEDDABLE) < 1%",
			"column 20: SHEDDABLE is a second priority after CRITICAL; write one expectation per priority"},
		{"connections(db, after) < 1", "column 17: connections has no window; write connections(service)"},
		{"collapse(a, b) < 1%", `column 13: "b" is a second name after "a"; write one expectation per line`},
		{"collapse(after) < 1%", "column 10: collapse has no window; write collapse([fleet or service])"},
		{"collapse(p99, db) < 1%", "column 10: collapse has no quantile; write collapse([fleet or service])"},
		{"collapse(db) < 1% in 90% of runs", `column 19: collapse is itself a share of runs; leave out "in 90% of runs"`},
		{"recovery(after) < 1s", "column 10: recovery has no window; write recovery([fleet or service])"},
		{"goodput(p99) > 95%", "column 9: goodput has no quantile; write goodput([fleet][, window])"},
		{"latency(p999) < 1s", `column 9: "p999" is not a quantile; write p99.9`},
		{"latency(p100) < 1s", `column 9: "p100" is out of range; quantiles are above p0 and below p100; write p50, p99 or ` +
			`p99.9`},
		{"latency(P99) < 1s", `column 9: "P99" is not a quantile; write p99`},
		{"latency(p50, p99) < 1s", "column 14: p99 is a second quantile after p50; write one expectation per quantile"},
		{"latency < 1s", "column 1: latency needs a quantile; write latency(quantile[, fleet][, window]), for example " +
			"latency(p99, after) < 800ms"},
		{"amplification < 1.2", "column 1: amplification needs the name of a service; write amplification(service[, " +
			"window]), for example amplification(payment-db) < 1.2"},
		{"recovery <", "column 11: there is no value; write a duration, for example recovery < 10s in 99% of runs"},
		{"recovery < in 99% of runs", "column 11: there is no value; write a duration, for example recovery < 10s in 99% " +
			"of runs"},
		{"recovery < never", `column 12: "never" is not a value; a run that never recovers has an infinite recovery, so ` +
			`write recovery > 60s, or collapse > 90%`},
		{"recovery < 10", `column 12: "10" is a number, but recovery is a duration; write 10s for seconds or 10ms for ` +
			`milliseconds`},
		{"recovery < 10 s", "column 12: there is a space in the value; write 10s"},
		{"recovery < 1d", `column 12: "1d" is not a value; the longest unit is h: write 24h for a day`},
		{"recovery < -1s", `column 12: "-1s" is negative; nothing that is measured here is below 0`},
		{"recovery < 1,000ms", `column 12: "1,000ms" is not a duration; durations have no commas: write 1.5s or 1000ms`},
		{"recovery < 169h", `column 12: "169h" is out of range; allowed: 0s to 168h`},
		{"recovery < 99999999999h", `column 12: "99999999999h" is out of range; allowed: 0s to 168h`},
		{"recovery < 0s", "column 12: recovery is never < 0s; write another value, or turn the comparison round"},
		{"recovery >= 0s", "column 13: recovery is always >= 0s; write another value, or turn the comparison round"},
		{"goodput > 0.95", `column 11: "0.95" is a number, but goodput is a share; write 95%`},
		{"goodput > 95", `column 11: "95" is a number, but goodput is a share; write 95%`},
		{"goodput > 10s", `column 11: "10s" is a duration, but goodput is a share; write a share, for example ` +
			`goodput(after) > 95%`},
		{"goodput > 101%", `column 11: "101%" is more than the whole; a share is 0% to 100%`},
		{"goodput > 100%", "column 11: goodput is never > 100%; write another value, or turn the comparison round"},
		{"goodput <= 100%", "column 12: goodput is always <= 100%; write another value, or turn the comparison round"},
		{"goodput > 95 %", "column 11: there is a space in the value; write 95%"},
		{"attempts(db) < 5", `column 16: "5" is a number, but attempts is a rate; write 5/s`},
		{"attempts(db) < 5rps", `column 16: "5rps" is not a value; rates are per second: write 5/s for that`},
		{"amplification(db) < 1.2x", `column 21: "1.2x" is not a value; write 1.2`},
		{"amplification(db) < 1,2", `column 21: "1,2" is not a number; the comma stands between thousands, as in 1,000; ` +
			`write 1.2 for a fraction`},
		{"amplification(db) < 1.2.3", `column 21: "1.2.3" is not a number; write digits, perhaps with a point, as in 0.5 ` +
			`or 1,000`},
		{"amplification(db) < NaN", `column 21: "NaN" is not a value; write a number, for example ` +
			`amplification(payment-db) < 1.2`},
		{"amplification(db) < 1e3", `column 21: "1e3" is not a value; write a number, for example ` +
			`amplification(payment-db) < 1.2`},
		{"queue(db) < 1.5", `column 13: "1.5" is not a whole number; write a count, for example queue(payment-db) < 1,000`},
		{"queue(db) < 9999999999999", `column 13: "9999999999999" is out of range; allowed: 0 to 1,000,000,000,000`},
		{"queue(db) < 1.0000000000000001", `column 13: "1.0000000000000001" has more than 15 digits; write a rounder number`},
		{"recovery < 1s in 99% of all runs", `column 15: "in 99% of all runs" is not expected here; after the value may ` +
			`stand only how many of the runs, for example in 99% of runs`},
		{"recovery < 1s in 99% of runs now", `column 15: "in 99% of runs now" is not expected here; after the value may ` +
			`stand only how many of the runs, for example in 99% of runs`},
		{"recovery < 1s in", `column 15: "in" is not expected here; after the value may stand only how many of the runs, ` +
			`for example in 99% of runs`},
		{"recovery < 1s in 0% of runs", `column 18: "0%" of runs is out of range; allowed: above 0% and below 100%`},
		{"recovery < 1s in 1,2% of runs", `column 18: "1,2" is not a number; the comma stands between thousands, as in ` +
			`1,000; write 1.2 for a fraction`},
		{"recovery < 1s in 100% of runs", "column 18: not even 1000000 runs could show this; write a share that is further " +
			"from all or none, for example 99.9% instead of 100% of runs, 0.1% instead of 0%"},
		{"collapse <= 0%", "column 13: not even 1000000 runs could show this; write a share that is further from all or " +
			"none, for example 99.9% instead of 100% of runs, 0.1% instead of 0%"},
		{"collapse < 1% in 90% of runs", `column 15: collapse is itself a share of runs; leave out "in 90% of runs"`},
		{"recovery < 1s\nin 90% of runs",
			"column 14: a character that is not text; an expectation is one line of plain text"},
		{"größe(ä, ä b) < 1s\xff", "column 19: a character that is not text; an expectation is one line of plain text"},
		{strings.Repeat("x", 301), "column 1: 301 bytes are too long; an expectation is one line of at most 300 bytes"},
		{"godput(a b) = 1,2 in 5% of run", `column 1: "godput" is not a measure; did you mean goodput?
column 8: "a b" is not a name; names have no spaces, brackets or comparisons and at most 100 bytes; a ` +
			`comma stands between two arguments
column 13: "=" is not a comparison; what is measured is never exactly a value: write < or >
column 15: "1,2" is not a number; the comma stands between thousands, as in 1,000; write 1.2 for a fraction
column 19: "in 5% of run" is not expected here; after the value may stand only how many of the runs, for ` +
			`example in 99% of runs`},
	}
	for _, tt := range tests {
		e, err := expect.Parse(tt.text)
		if err == nil || err.Error() != tt.want {
			t.Errorf("Parse(%q) = %+v and the error\n%v\nwant\n%s", tt.text, e, err, tt.want)
		}
	}
}

func TestErrorsSayEachPart(t *testing.T) {
	_, err := expect.Parse("godput = 95%")
	var list expect.Errors
	var first *expect.Error
	if !errors.As(err, &list) || len(list) != 2 || !errors.As(err, &first) || first != list[0] {
		t.Fatalf("%v is not a list of two", err)
	}
	if first.Column != 1 || first.Problem != `"godput" is not a measure` || first.Fix() != "did you mean goodput?" {
		t.Errorf("first is %+v", first)
	}
	if list[1].Column != 8 {
		t.Errorf("second is %+v", list[1])
	}
	e := expect.Expectation{Measure: "queue", Value: 3}
	if e.UnmarshalText([]byte("godput")) == nil || e != (expect.Expectation{Measure: "queue", Value: 3}) {
		t.Errorf("a failed UnmarshalText left %+v", e)
	}
}

func TestEveryMeasureHasAnExampleOfItsForm(t *testing.T) {
	for _, m := range expect.Measures() {
		e, err := expect.Parse(m.Example)
		if err != nil || e.Measure != m.Name {
			t.Errorf("%s: the example %q reads as %+v, %v", m.Name, m.Example, e, err)
			continue
		}
		roundTrip(t, e)
		if m.Meaning == "" || !strings.HasPrefix(m.Form(), m.Name) {
			t.Errorf("%+v is not described", m)
		}
	}
	forms := map[string]string{
		"collapse": "collapse([fleet or service])", "recovery": "recovery([fleet or service])",
		"latency":   "latency(quantile[, fleet][, window])",
		"queueWait": "queueWait(service[, window][, quantile])", "retries": "retries([service][, window])",
	}
	for _, m := range expect.Measures() {
		if want, ok := forms[m.Name]; ok && m.Form() != want {
			t.Errorf("form %q, want %q", m.Form(), want)
		}
	}
	if a := expect.Measures(); &a[0] == &expect.Measures()[0] {
		t.Error("Measures gives out its own table")
	}
}

func TestWhatCannotBeWrittenIsNotMarshalled(t *testing.T) {
	for _, e := range []expect.Expectation{
		{}, {Measure: "nonsense", Value: 1}, {Measure: "latency", Value: 1}, {Measure: "goodput", Value: math.NaN()},
		{Measure: "goodput", Op: 9, Value: 0.5}, {Measure: "recovery", Value: math.Inf(1)},
		{Measure: "goodput", Window: 7, Value: 0.5},
	} {
		if text, err := e.MarshalText(); err == nil {
			t.Errorf("%+v is written as %q", e, text)
		}
	}
}

func TestChecksNames(t *testing.T) {
	names := func(kind expect.SubjectKind) []string {
		switch kind {
		case expect.Fleet:
			return []string{"checkout", "phones"}
		case expect.Service:
			return []string{"payment-db", "payment"}
		}
		return nil
	}
	tests := []struct{ text, want string }{
		{"goodput(after) > 95%", ""},
		{"goodput(phones, after) > 95%", ""},
		{"queue(payment-db) < 10", ""},
		{"collapse < 1%", ""},
		{"latency(p99, phoness) < 1s", `column 14: "phoness" is not a fleet; did you mean phones?`},
		{"goodput(after, aft) > 95%", `column 16: "aft" is not a fleet; there are: checkout, phones`},
		{"queue(queue) < 10", `column 7: "queue" is not a service; there are: payment-db, payment`},
		{"queue(phones) < 10", `column 7: "phones" is a fleet, but queue is about a service; there are: payment-db, payment`},
		{"goodput(payment) > 95%", `column 9: "payment" is a service, but goodput is about a fleet; there are: checkout, ` +
			`phones; what a service does for its callers is its yield: yield(payment)`},
		{"collapse(phones) < 1%", ""},
		{"collapse(payment) < 1%", ""},
		{"recovery(checkout) < 1s", ""},
		{"collapse(phoness) < 1%", `column 10: "phoness" is not a fleet or service; did you mean phones? fleets: ` +
			`checkout, phones; services: payment-db, payment`},
		{"recovery(x) < 1s", `column 10: "x" is not a fleet or service; fleets: checkout, phones; services: payment-db, ` +
			`payment`},
	}
	for _, tt := range tests {
		e, err := expect.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		err = e.Check(names)
		if got := message(err); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
	byHand := expect.Expectation{Measure: "queue", Subject: "nobody", Value: 3}
	empty := func(expect.SubjectKind) []string { return nil }
	if got, want := message(byHand.Check(empty)),
		`column 7: "nobody" is not a service; the scenario has no service`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNamesThatMeanSomethingElseAreNotNames(t *testing.T) {
	for name, want := range map[string]bool{
		"payment-db": true, "p99-cache": true, "größe": true, "in": true, "a.b/c:d": true, strings.Repeat("m", 100): true,
		"CRITICAL": false, "": false, "after": false, "All": false, "p99": false, "P9.5": false, "a b": false,
		"a,b": false, "a(b": false, "a<b": false,
		"a\x00": false, "a\xff": false, strings.Repeat("n", 101): false,
	} {
		if expect.CanName(name) != want {
			t.Errorf("CanName(%q) is %v", name, !want)
		}
		e, err := expect.Parse("queue(" + name + ") < 10")
		if (err == nil && e.Subject == name && name != "") != want {
			t.Errorf("queue(%q) reads as %+v, %v", name, e, err)
		}
	}
}

func TestWordsForEveryConstant(t *testing.T) {
	got := []string{
		expect.Number.String(), expect.Rate.String(), expect.Fleet.String(), expect.During.String(), expect.AtLeast.String(),
		expect.Undecided.String(), expect.Pass.String(), expect.Fail.String(), expect.Verdict(7).String(),
		expect.Kind(200).String(),
	}
	if want := []string{"number", "rate", "fleet", "during", ">=", "UNDECIDED", "PASS", "FAIL", "<unknown>",
		"<unknown>"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range expect.Measures() {
		f.Add(m.Example)
	}
	f.Add("latency(p99.9, checkout, after) <= 1m30s in 99.9% of runs")
	f.Add("godput(a b, = 1,2 in 5% of run")
	f.Add("collapse(checkout) < 1%")
	f.Add("recovery(payment-db) <= 1m30s in 60% of runs")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := expect.Parse(text)
		if err != nil {
			var list expect.Errors
			if !errors.As(err, &list) || len(list) == 0 || !reflect.ValueOf(e).IsZero() {
				t.Fatalf("%q: %+v and the error %v", text, e, err)
			}
			for _, one := range list {
				if one.Column < 1 || one.Column > len(text)+1 || one.Problem == "" || one.Fix() == "" {
					t.Fatalf("%q: %+v", text, one)
				}
			}
			return
		}
		if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) || e.Value < 0 || e.Share < 0 || e.Share >= 1 {
			t.Fatalf("%q reads as %+v", text, e)
		}
		needed := expect.RunsNeeded(e)
		if needed < 1 || e.Judge(expect.Tally{Runs: needed, Held: needed}).Verdict != expect.Pass {
			t.Fatalf("%q: %d runs are not enough", text, needed)
		}
		roundTrip(t, e)
	})
}
