package abatekafka_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/redelivery"
)

func TestEventIDs(t *testing.T) {
	const own = "record payments/3/7"
	for _, tt := range []struct {
		name          string
		header, field string
		m             *abatekafka.Message
		key, problem  string
	}{
		{"neither asked for", "", "", message(7, `{"id":"x"}`, "id", "y"), own, ""},
		{"header", "id", "", message(7, "", "id", "e 1"), "event e 1", ""},
		{"last of several headers", "id", "", message(7, "", "id", "old", "x", "", "id", "new"), "event new", ""},
		{"a header before others", "id", "", message(7, "", "id", "e", "x", "y"), "event e", ""},
		{"empty header", "id", "", message(7, "", "id", ""), own, `no header "id"`},
		{"names differ in case", "id", "", message(7, "", "ID", "x"), own, `no header "id"`},
		{"header before field", "id", "id", message(7, `{"id":"f"}`, "id", "h"), "event h", ""},
		{"field where there is no header", "id", "id", message(7, `{"id":"f"}`), "event f", ""},
		{"field", "", "id", message(7, ` { "x": [1], "id" : "f" }`), "event f", ""},
		{"field on the way", "", "event.id", message(7, `{"event":{"id":"f"},"id":"g"}`), "event f", ""},
		{"number, as it is written", "", "id", message(7, `{"id":9007199254740993}`), "event 9007199254740993", ""},
		{"negative number", "", "id", message(7, `{"id":-1.50}`), "event -1.50", ""},
		{"escapes", "", "id", message(7, `{"id":"a\u0062"}`), "event ab", ""},
		{"no such field", "", "id", message(7, `{"ID":"f"}`), own, `no field "id"`},
		{"no such field on the way", "", "event.id", message(7, `{"event":"f"}`), own, `no field "event.id"`},
		{"empty field", "", "id", message(7, `{"id":""}`), own, "is empty"},
		{"null", "", "id", message(7, `{"id":null}`), own, "neither a string nor a number"},
		{"boolean", "", "id", message(7, `{"id":true}`), own, "neither a string nor a number"},
		{"object", "", "id", message(7, `{"id":{}}`), own, "neither a string nor a number"},
		{"tombstone", "", "id", message(7, ""), own, `no field "id"`},
		{"no JSON", "", "id", message(7, "\x00\x01"), own, `no field "id"`},
		{"cut off", "", "id", message(7, `{"id":"f"`), own, `no field "id"`},
		{"array", "", "id", message(7, `[{"id":"f"}]`), own, `no field "id"`},
		{"neither header nor field there", "h", "id", message(7, `{}`), own,
			"no header \"h\" with an id\nits value has no field"},
		{"an event called like a record", "h", "", message(7, "", "h", "payments/3/7"), "event payments/3/7", ""},
	} {
		d := abatekafka.Deduper{Header: tt.header, Field: tt.field}
		key, _, compared, problem := d.EventOf(tt.m)
		if strings.HasPrefix(tt.key, own) {
			tt.key = "record " + tt.m.ID()
		}
		if key != tt.key || (problem == nil) != (tt.problem == "") ||
			problem != nil && !strings.Contains(problem.Error(), tt.problem) {
			t.Errorf("%s: %q, %v, want %q, %q", tt.name, key, problem, tt.key, tt.problem)
		}
		if compared != strings.HasPrefix(key, "event ") {
			t.Errorf("%s: values compared: %v", tt.name, compared)
		}
	}
}

func TestRetentionCoversTheChain(t *testing.T) {
	chain := redelivery.Config{Tiers: []time.Duration{30 * time.Second, 5 * time.Minute, 30 * time.Minute}}.WithDefaults()
	same := redelivery.Config{Delay: time.Minute, Multiplier: 1, Attempts: 6}.WithDefaults()
	forgets := chain
	forgets.DLTStrategy = redelivery.DropLast
	quick := chain
	quick.HandlerTimeout = 2 * time.Second
	for _, tt := range []struct {
		name                       string
		d                          abatekafka.Deduper
		c                          redelivery.Config
		required, retention, lease time.Duration
	}{
		{"the issue's chain", abatekafka.Deduper{}, chain, 35*time.Minute + 30*time.Second,
			35*time.Minute + 30*time.Second + (168+720)*time.Hour, 30 * time.Second},
		{"one topic, several deliveries", abatekafka.Deduper{}, same, 5 * time.Minute, 5*time.Minute + (168+720)*time.Hour,
			30 * time.Second},
		{"no dead letters", abatekafka.Deduper{}, forgets, 35*time.Minute + 30*time.Second,
			35*time.Minute + 30*time.Second + 168*time.Hour, 30 * time.Second},
		{"quick handlers", abatekafka.Deduper{}, quick, 35*time.Minute + 30*time.Second,
			35*time.Minute + 30*time.Second + (168+720)*time.Hour, 2 * time.Second},
		{"set", abatekafka.Deduper{Retention: time.Hour, Lease: time.Minute}, quick, 35*time.Minute + 30*time.Second,
			time.Hour, time.Minute},
		{"off", abatekafka.Deduper{}, redelivery.Config{}, 0, 24 * time.Hour, 30 * time.Second},
	} {
		required, retention, lease := tt.d.Kept(tt.c)
		if required != tt.required || retention != tt.retention || lease != tt.lease {
			t.Errorf("%s: required %v, retention %v, lease %v, want %v, %v, %v", tt.name, required, retention, lease,
				tt.required, tt.retention, tt.lease)
		}
	}
}

func TestWithoutOnceThereIsNoClaim(t *testing.T) {
	if c, ok := abatekafka.ClaimOf(context.Background()); ok {
		t.Errorf("%+v", c)
	}
}

func FuzzEventID(f *testing.F) {
	f.Add("id", []byte(`{"id":"x"}`))
	f.Add("a.b", []byte(`{"a":{"b":12}}`))
	f.Add(".", []byte(`{"":{"":""}}`))
	f.Add("", []byte(" null"))
	f.Fuzz(func(t *testing.T, path string, value []byte) {
		d := abatekafka.Deduper{Header: "h", Field: path}
		m := message(7, string(value))
		key, text, _, problem := d.EventOf(m)
		again, _, _, _ := d.EventOf(m)
		event := strings.HasPrefix(key, "event ")
		if key != again || text == "" || event == (problem != nil) || !event && key != "record "+m.ID() {
			t.Fatalf("%q, then %q, text %q, problem %v", key, again, text, problem)
		}
		if err := idempotency.CheckKey(idempotency.StoreKey("g", "t", key)); err != nil {
			t.Fatal(err)
		}
	})
}
