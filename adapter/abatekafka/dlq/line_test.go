package dlq_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

func TestLineKeepsEveryByte(t *testing.T) {
	for _, b := range [][]byte{nil, {}, []byte("text <&> \u2028 ü"), {0xff, 0, 1}, []byte("\ufffd")} {
		e := &dlq.Entry{
			At:       letter.Place{Topic: "d-dlq", Partition: 2, Offset: 9},
			State:    dlq.Waiting,
			Problems: []error{errors.New("a header")},
			Letter:   letter.Letter{Class: "x", History: []letter.Past{{Topic: "d", At: noon, Class: "y"}}},
			Record: &kgo.Record{
				Key: b, Value: b, Headers: []kgo.RecordHeader{{Key: "a", Value: b}, {Key: "a"}, {Key: "k\xff", Value: []byte{}}},
			},
		}
		text, err := json.Marshal(dlq.NewLine(e))
		if err != nil {
			t.Fatal(err)
		}
		r, err := dlq.ReadLine(text, "other-dlq")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if r.Topic != "other-dlq" || r.Partition != 2 || !same(r.Key, b) || !same(r.Value, b) || len(r.Headers) != 4 ||
			r.Headers[3].Key != "abate-imported" || !same(r.Headers[0].Value, b) || r.Headers[1].Value != nil ||
			r.Headers[2].Key != "k\xff" {
			t.Errorf("%q comes back as %+v\n%s", b, r, text)
		}
	}
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func TestLinesTellWhatIsWrongWithThem(t *testing.T) {
	good := `{"at":"d-dlq/0/1","key":null,"value":{"text":"a"},"headers":[]}`
	if _, err := dlq.ReadLine([]byte(good), "d"); err != nil {
		t.Error(err)
	}
	for _, test := range [][2]string{
		{`nonsense`, "not a JSON object"},
		{`{}`, `it has no "at"`},
		{strings.Replace(good, `"key":null,`, "", 1), `it has no "key"`},
		{strings.Replace(good, `{"text":"a"}`, `"a"`, 1), `bytes are {"text": "..."}`},
		{strings.Replace(good, `{"text":"a"}`, `{"base64":"!"}`, 1), "illegal base64"},
		{strings.Replace(good, `{"text":"a"}`, `{"text":"a","base64":"YQ=="}`, 1), "bytes are"},
		{strings.Replace(good, `{"text":"a"}`, `{"hex":"00"}`, 1), "bytes are"},
		{strings.Replace(good, "d-dlq/0/1", "d-dlq", 1), "at: place"},
		{strings.Replace(good, `{"at"`, `{"more":1,"at"`, 1), `unknown field "more"`},
	} {
		if _, err := dlq.ReadLine([]byte(test[0]), "d"); err == nil || !strings.Contains(err.Error(), test[1]) ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", test[0], err)
		}
	}
}

func TestImportTellsOfEveryBadLineOnce(t *testing.T) {
	good := `{"at":"d-dlq/0/1","key":null,"value":null,"headers":[]}`
	n, sum, err := dlq.CheckLines(strings.NewReader("\n" + good + "\n\n  \n" + good))
	if n != 2 || sum == "" || err != nil {
		t.Error(n, sum, err)
	}
	if _, second, _ := dlq.CheckLines(strings.NewReader(good + "\r\n" + good + "\n")); second != sum {
		t.Error("the ends of lines make another file")
	}
	_, _, err = dlq.CheckLines(strings.NewReader(strings.Repeat("x\n", 60) + good))
	if err == nil || !strings.Contains(err.Error(), "line 50: ") || strings.Contains(err.Error(), "line 51") ||
		!strings.Contains(err.Error(), "10 more lines") {
		t.Error(err)
	}
	long := strings.Replace(good, `"value":null`, `"value":{"text":"`+strings.Repeat("x", 300_000)+`"}`, 1)
	if n, _, err := dlq.CheckLines(strings.NewReader(long + "\n" + long + "\n")); n != 2 || err != nil {
		t.Error(n, err)
	}
}

func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"at":"d-dlq/0/1","key":null,"value":{"text":"a"},"headers":[{"key":"a","value":{"base64":"AA=="}}]}`))
	f.Add([]byte(
		`{"at":"d-dlq/0/1","key":{"text":""},"value":{"base64":""},"headers":[{"key":"","keyBase64":"/w==","value":null}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := dlq.ReadLine(text, "d-dlq")
		if err != nil {
			return
		}
		again, err := json.Marshal(
			dlq.NewLine(&dlq.Entry{At: letter.Place{Topic: "d-dlq", Partition: r.Partition}, Record: r}))
		if err != nil {
			t.Fatal(err)
		}
		second, err := dlq.ReadLine(again, "d-dlq")
		if err != nil || !same(r.Key, second.Key) || !same(r.Value, second.Value) ||
			!reflect.DeepEqual(r.Headers, second.Headers) {
			t.Fatalf("%s\n%s\n%v", text, again, err)
		}
	})
}

func TestArrivalsOfAllGroupsShareTheirSlots(t *testing.T) {
	times := func(from time.Time, step time.Duration, n int) (list []time.Time) {
		for i := range n {
			list = append(list, from.Add(time.Duration(i)*step))
		}
		return list
	}
	for _, test := range []struct{ a, b []time.Time }{
		{times(noon, time.Second, 1), times(noon, time.Second, 1)},
		{times(noon, time.Second, 100), times(noon.Add(30*time.Second), time.Minute, 50)},
		{times(noon.Add(1000*time.Hour), -time.Hour, 1000), times(noon, 7*time.Minute, 3)},
		{times(time.Unix(-5, 0), time.Second, 10), times(time.Unix(100, 0), time.Hour, 2)},
	} {
		a, b := dlq.Draw(test.a, test.b)
		if len(a) != len(b) || len(a) > 24 || len(a) == 0 || sum(a) != len(test.a) || sum(b) != len(test.b) {
			t.Errorf("%v and %v", a, b)
		}
	}
	if a, b := dlq.Draw(times(noon, time.Minute, 24), times(noon.Add(23*time.Minute), 0, 5)); b[len(b)-1] != 5 ||
		a[0] == 0 {
		t.Errorf("%v and %v", a, b)
	}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		if c < 0 {
			return math.MinInt
		}
		n += c
	}
	return n
}
